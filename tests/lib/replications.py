# SPDX-License-Identifier: GPL-2.0-or-later
"""Invented replications of the published studies, for tests of the claims' answers.

Each claim's truth is what the paper states: its figure where it gives one, else the range that the
claim's check reads into the sentence; "better" without a number is 10 %. A repetition's values
share a drift of 3 % and have 1 % of noise each. No number was measured.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import polars as pl

from rocelab.record.results_table import SCHEMA
from rocelab.studies.claims import Adds, Average, Bounds, Compare, Operand, Sizes, Study
from rocelab.studies.samples import Ranks, Results, Samples

DRIFT, NOISE = 0.03, 0.01
SIZES = tuple(2**power for power in range(21))
_BETTER = 1.1
_EDGE = 0.05
"""From this difference on, a claim is false."""
_EMPTY = pl.DataFrame(
    [("r", "t", "t", "tcp", 1, 1, "n", "m", "k", 1.0, "ns", "native", "d", "p")],
    schema=SCHEMA,
    orient="row",
)


@dataclass(frozen=True)
class Replication(Results):
    """Results with the values of a few operands."""

    values: dict[Operand, Samples] = field(default_factory=dict)

    def samples(self, operand: Operand) -> Samples | None:
        return self.values.get(operand)


Truth = Callable[[int, int], float]
"""The true ratio or difference at the size of an index, out of so many."""


def spread_over(low: float, high: float) -> Truth:
    """From one end of a range at the smallest size to the other at the largest."""
    return lambda at, count: low + (high - low) * (at / (count - 1) if count > 1 else 0.5)


def published(study: Study, check: Compare) -> float | None:
    """The ratio of two published figures of all sizes, if the check is about them."""
    values = []
    for side in (check.first, check.second):
        place = (side.transport, side.tool, side.test, side.metric)
        values += [
            f.low
            for f in study.figures
            if (f.transport, f.tool, f.test, f.metric) == place and f.statistic == "best"
        ]
    return values[1] / values[0] if len(values) == 2 and check.over == "best" else None


def true(bounds: Bounds, how: str = "ratio") -> Truth:
    """What a claim says: over its whole range; "at most" half of what that allows; 10 % on the
    claimed side of 1."""
    low, high = bounds.low, bounds.high
    if low == 1:
        return spread_over(_BETTER, _BETTER)
    if high == 1:
        return spread_over(1 / _BETTER, 1 / _BETTER)
    if math.isinf(high):
        return spread_over(low, low)
    if low > 0:
        return spread_over(low, high)
    half = high / 2 if how == "difference" or high < 1 else (1 + high) / 2
    return spread_over(half, half)


def false(bounds: Bounds, how: str) -> Iterator[Truth]:
    """Just as wrong at every size: by 5 %, or twice the tolerance if that is more; no difference,
    and 5 % the other way, if a difference is claimed."""
    low, high, tolerance = bounds.low, bounds.high, bounds.tolerance
    if how == "difference":
        off = 2 * tolerance.value
        if not tolerance.source:
            off = _EDGE * max(abs(end) for end in (low, high) if math.isfinite(end))
        ends = [low - off, high + off]
    elif 1 in (low, high):
        ends = [1.0, 1 - _EDGE if low == 1 else 1 + _EDGE]
    else:
        off = max(_EDGE, 2 * tolerance.value)
        ends = [low * (1 - off), high * (1 + off)]
    return (
        spread_over(end, end) for end in ends if math.isfinite(end) and (end > 0 or how != "ratio")
    )


def limits(bounds: Bounds, how: str) -> Iterator[Truth]:
    """Truths at the very limit of what is tolerated, where a claim may hold by chance only."""
    low, high, tolerance = bounds.low, bounds.high, bounds.tolerance
    if how == "ratio" and 1 in (low, high):
        ends = [1 + tolerance.value if low == 1 else 1 - tolerance.value]
    elif how == "ratio":
        ends = [low * (1 - tolerance.value), high * (1 + tolerance.value)]
    else:
        off = tolerance.value
        if not tolerance.source:
            off *= max(abs(end) for end in (low, high) if math.isfinite(end))
        ends = [low - off, high + off]
    return (
        spread_over(end, end) for end in ends if math.isfinite(end) and (end > 0 or how != "ratio")
    )


def _counts(operand: Operand) -> bool:
    return operand.metric.startswith("wire.")


@dataclass
class Maker:
    """Makes the results of one replication after the other."""

    dice: random.Random
    repetitions: int = 10
    noise: float = NOISE

    def comparison(self, check: Compare, truth: Truth) -> Replication:
        """Both sides of a comparison; the second is so many times, or so much more than, the
        first."""
        sizes = self._sizes(check.sizes)
        base = {size: 2000.0 + size / 10 for size in sizes}
        second = {}
        for at, (size, value) in enumerate(base.items()):
            apart = truth(at, len(sizes))
            second[size] = value * apart if check.how == "ratio" else value + apart
        return self._results({check.first: base, check.second: second}, check.switches)

    def average(self, check: Average, truth: Truth) -> Replication:
        """Both sides of an average over several tests, which take different times."""
        values: dict[Operand, dict[int, float]] = {}
        for at, test in enumerate(check.tests):
            time = 1e9 * (1 + at)
            values[replace(check.first, test=test)] = {0: time}
            values[replace(check.second, test=test)] = {0: time * truth(at, len(check.tests))}
        return self._results(values)

    def curve(self, operand: Operand, values: dict[int, float]) -> Replication:
        """One operand with these values."""
        return self._results({operand: values})

    def switch_cost(self, check: Adds, added: float) -> tuple[Replication, Replication]:
        """Two runs, the second through one switch more; they have no drift in common."""
        sizes = self._sizes(check.sizes)
        base = dict.fromkeys(sizes, 1500.0)
        more = {size: value + added for size, value in base.items()}
        fewer = {check.operand: base} | ({check.beyond: base} if check.beyond else {})
        through = {check.operand: more} | ({check.beyond: base} if check.beyond else {})
        return self._results(fewer, 0, drift=0), self._results(through, 1, drift=0)

    def _results(
        self,
        values: dict[Operand, dict[int, float]],
        switches: int | None = None,
        drift: float = DRIFT,
    ) -> Replication:
        drifts = [self.dice.gauss(0, drift) for _ in range(self.repetitions)]
        made = {
            operand: Samples(
                {
                    size: {
                        r + 1: value * self._noise(drifts[r], operand)
                        for r in range(self.repetitions)
                    }
                    for size, value in by_size.items()
                },
                "bytes/s" if operand.metric == "bandwidth" else "ns",
                is_time=not _counts(operand),
            )
            for operand, by_size in values.items()
        }
        ranks = {o.benchmark: Ranks(o.ranks or 2, o.ranks_per_node or 1) for o in values}
        return Replication(_EMPTY, switches, ranks=ranks, values=made)

    def _noise(self, drift: float, operand: Operand) -> float:
        return 1.0 if _counts(operand) else math.exp(drift + self.dice.gauss(0, self.noise))

    def _sizes(self, bounds: Sizes) -> list[int]:
        """Those of the usual sizes that a claim is about."""
        return [size for size in SIZES if size in bounds] or [bounds.low]
