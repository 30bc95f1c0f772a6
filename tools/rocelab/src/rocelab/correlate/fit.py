# SPDX-License-Identifier: GPL-2.0-or-later
"""What the time outside the driver's stages grows with (docs/correlation.md).

    rest = measured - stages = base + factor * amount + residual

for one amount at a time: bytes, packets, header bytes, CPU time. The rest is fitted, not what was
measured: stages are parts of that, so a line through both fits whatever the rest does. Messages of
one packet and of several are fitted apart, because each further packet costs what the first does.
Least squares with weights 1 / measured², because disturbances grow with what was measured.
Intervals are percentiles of a bootstrap that draws whole repetitions, because the sizes of a
repetition were measured in sequence and share its disturbances. They need ENOUGH_REPETITIONS.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from rocelab.plans.plan import ENOUGH_REPETITIONS

RESAMPLES = 2000
FEWEST_SIZES = 3
"""A line through two sizes fits always."""
_COVERAGE = 0.95
_SEED = 1
_RESOLUTION = 0.01
"""Amounts that differ less, relative to their mean, do not determine a line."""


class Regime(StrEnum):
    """How many packets a message takes."""

    ONE = "one packet"
    SEVERAL = "several packets"


@dataclass(frozen=True)
class Point:
    """One size in one repetition: `measured` and `stages` in ns per message."""

    size: int
    repetition: int
    measured: float
    stages: float
    """0 where nothing sees stages: TCP, adapters."""
    regime: Regime = Regime.ONE
    amounts: Mapping[str, float] = field(default_factory=dict)
    """Name to number per message; ns for CPU time."""

    @property
    def rest(self) -> float:
        """What no stage covers, ns per message."""
        return self.measured - self.stages


@dataclass(frozen=True)
class Estimate:
    """A number, and its 95 % interval if there are enough repetitions."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Fit:
    """The line of the rest over one amount; `r_squared` is the share of variance it explains."""

    regime: Regime
    amount: str
    base: Estimate
    factor: Estimate
    """ns per unit of the amount; ns per ns for CPU time."""
    r_squared: float
    points: int
    sizes: int


def rest(points: Sequence[Point]) -> dict[int, Estimate]:
    """Return the time that no stage covers, by size: the mean over repetitions, ns per message."""
    by_size: defaultdict[int, list[Point]] = defaultdict(list)
    for point in points:
        by_size[point.size].append(point)
    estimates = {}
    for size, some in sorted(by_size.items()):
        blocks = _blocks(some, lambda point: (1.0, point.rest))
        (estimates[size],) = _estimates(blocks, lambda sums: (sums[1] / sums[0],))
    return estimates


def fits(points: Sequence[Point]) -> list[Fit]:
    """Fit the rest to each amount in each regime, where enough sizes determine a line.

    Amounts that do not differ within a regime, such as the packets of a one-packet message, and
    those that some point lacks give none.
    """
    lines = []
    for regime in Regime:
        some = [point for point in points if point.regime is regime]
        for amount in dict.fromkeys(name for point in some for name in point.amounts):
            known = all(amount in point.amounts for point in some)
            line = _fit(some, regime, amount) if known else None
            if line is not None:
                lines.append(line)
    return lines


def _fit(points: Sequence[Point], regime: Regime, amount: str) -> Fit | None:
    sizes = len({point.size for point in points})
    if sizes < FEWEST_SIZES:
        return None
    whole = math.fsum(1 / point.measured**2 for point in points)
    x = math.fsum(point.amounts[amount] / point.measured**2 for point in points) / whole
    y = math.fsum(point.rest / point.measured**2 for point in points) / whole
    blocks = _blocks(points, lambda point: _moments(point, amount, x, y))
    sums = [math.fsum(column) for column in zip(*blocks, strict=True)]
    line = _line(sums, x, y)
    if line is None:
        return None
    base, factor = _estimates(blocks, lambda drawn: _line(drawn, x, y))
    total, slope = sums[5], line[1]
    explained = slope * sums[4]
    return Fit(
        regime=regime,
        amount=amount,
        base=base,
        factor=factor,
        r_squared=min(1.0, explained / total) if total > 0 else 0.0,
        points=len(points),
        sizes=sizes,
    )


_Sums = Sequence[float]


def _moments(point: Point, amount: str, x: float, y: float) -> tuple[float, ...]:
    """Weighted moments of a point around (x, y): those of several points are their sums."""
    weight = 1 / point.measured**2
    a, b = point.amounts[amount] - x, point.rest - y
    return weight, weight * a, weight * b, weight * a * a, weight * a * b, weight * b * b


def _line(sums: _Sums, x: float, y: float) -> tuple[float, float] | None:
    """Intercept and slope from moments around (x, y); None if they do not determine them."""
    whole, a, b, aa, ab, _ = sums
    spread = aa - a * a / whole
    if spread <= whole * (_RESOLUTION * x) ** 2:
        return None
    slope = (ab - a * b / whole) / spread
    return y + b / whole - slope * (x + a / whole), slope


def _blocks(points: Sequence[Point], sums_of: Callable[[Point], _Sums]) -> list[_Sums]:
    """The sums of `sums_of` over each repetition, from which a bootstrap draws."""
    blocks: defaultdict[int, list[_Sums]] = defaultdict(list)
    for point in points:
        blocks[point.repetition].append(sums_of(point))
    return [tuple(map(sum, zip(*each, strict=True))) for each in blocks.values()]


def _estimates(
    blocks: Sequence[_Sums], estimate: Callable[[_Sums], tuple[float, ...] | None]
) -> tuple[Estimate, ...]:
    """Estimates from the sums of all blocks, with their intervals."""

    def sums(some: Sequence[_Sums]) -> list[float]:
        return [sum(column) for column in zip(*some, strict=True)]

    values = estimate(sums(blocks))
    if values is None:
        raise ValueError("these points do not determine the estimate")
    if len(blocks) < ENOUGH_REPETITIONS:
        return tuple(Estimate(value) for value in values)
    dice = random.Random(_SEED)
    samples = (estimate(sums(dice.choices(blocks, k=len(blocks)))) for _ in range(RESAMPLES))
    drawn = [sample for sample in samples if sample is not None]
    tail = (1 - _COVERAGE) / 2
    low, high = math.floor(tail * (len(drawn) - 1)), math.ceil((1 - tail) * (len(drawn) - 1))
    columns = [sorted(column) for column in zip(*drawn, strict=True)]
    return tuple(
        Estimate(value, ordered[low], ordered[high])
        for value, ordered in zip(values, columns, strict=True)
    )
