# SPDX-License-Identifier: GPL-2.0-or-later
"""How far the driver's stage times account for what was measured (docs/correlation.md).

    measured = base + factor * stages + residual

by ordinary least squares over all sizes and repetitions of one benchmark and transport. The rest,
`measured - stages` by size, is the time that no stage covers. Intervals are percentiles of a
bootstrap that draws whole repetitions, because the sizes of a repetition were measured in sequence
and share its disturbances. They need ENOUGH_REPETITIONS, as every interval does.
"""

from __future__ import annotations

import math
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rocelab.plans.plan import ENOUGH_REPETITIONS

RESAMPLES = 2000
_COVERAGE = 0.95
_SEED = 1
_RESOLUTION = 1e-6
"""ns; a smaller difference between stage times is none."""


@dataclass(frozen=True)
class Point:
    """One size in one repetition: `stages` and `measured` in ns per message."""

    size: int
    repetition: int
    stages: float
    measured: float


@dataclass(frozen=True)
class Estimate:
    """A number, and its 95 % interval if there are enough repetitions."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Fit:
    """The fitted line; `r_squared` is the share of variance that it explains."""

    base: Estimate
    factor: Estimate
    r_squared: float
    points: int
    repetitions: int


def rest(points: Sequence[Point]) -> dict[int, Estimate]:
    """Return the time that no stage covers, by size: the mean over repetitions, ns per message."""
    by_size: defaultdict[int, list[Point]] = defaultdict(list)
    for point in points:
        by_size[point.size].append(point)

    def mean(some: Sequence[Point]) -> float | None:
        return sum(point.measured - point.stages for point in some) / len(some)

    return {size: _estimate(some, mean) for size, some in sorted(by_size.items())}


def fit(points: Sequence[Point]) -> Fit | None:
    """Fit a line to `points`; None if there are fewer than three or all stage times are equal."""
    if len(points) < 3 or _line(points) is None:
        return None
    slope = _estimate(points, lambda some: line[1] if (line := _line(some)) else None)
    base = _estimate(points, lambda some: line[0] if (line := _line(some)) else None)
    mean = statistics.fmean(point.measured for point in points)
    total = math.fsum((point.measured - mean) ** 2 for point in points)
    left = math.fsum(
        (point.measured - base.value - slope.value * point.stages) ** 2 for point in points
    )
    return Fit(
        base=base,
        factor=slope,
        r_squared=1 - left / total if total else 1.0,
        points=len(points),
        repetitions=len({point.repetition for point in points}),
    )


def _line(points: Sequence[Point]) -> tuple[float, float] | None:
    """Intercept and slope; None if the points do not determine them."""
    xs, ys = [point.stages for point in points], [point.measured for point in points]
    if max(xs) - min(xs) <= max(_RESOLUTION, 1e-9 * max(map(abs, xs))):
        return None
    # statistics.linear_regression sums exactly, which is too slow for a bootstrap
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    slope = covariance / sum((a - x) ** 2 for a in xs)
    return y - slope * x, slope


def _estimate(points: Sequence[Point], of: Callable[[Sequence[Point]], float | None]) -> Estimate:
    value = of(points)
    if value is None:
        raise ValueError("these points do not determine the estimate")
    blocks: defaultdict[int, list[Point]] = defaultdict(list)
    for point in points:
        blocks[point.repetition].append(point)
    if len(blocks) < ENOUGH_REPETITIONS:
        return Estimate(value)
    dice = random.Random(_SEED)
    drawn = []
    every = list(blocks.values())
    for _ in range(RESAMPLES):
        sample = of([point for block in dice.choices(every, k=len(every)) for point in block])
        if sample is not None:
            drawn.append(sample)
    drawn.sort()
    tail = (1 - _COVERAGE) / 2
    last = len(drawn) - 1
    return Estimate(value, drawn[math.floor(tail * last)], drawn[math.ceil((1 - tail) * last)])
