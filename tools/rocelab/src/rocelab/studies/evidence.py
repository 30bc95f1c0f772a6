# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run says about one ratio or difference, with a confidence interval at any confidence."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rocelab.stats import paired, two_samples
from rocelab.stats.summary import Interval

How = Literal["ratio", "difference"]


@dataclass(frozen=True)
class Evidence:
    """An estimate; `interval` and `fewest` take a confidence."""

    estimate: float
    interval: Callable[[float], Interval | None]
    """None if there are too few repetitions."""
    fewest: Callable[[float], int]
    """The least number of repetitions that has an interval."""
    count: int
    """Repetitions."""
    stdev: float | None
    """Of the repetitions' differences, for ratios of their logarithms; None: unknown."""
    how: How


def of_pairs(first: Mapping[int, float], second: Mapping[int, float], how: How) -> Evidence | None:
    """Compare what the same repetitions measured, second against first.

    Returns None if no repetition has both. Raises ValueError if a value of a ratio is not above 0.
    """
    both = sorted(first.keys() & second.keys())
    if not both:
        return None
    if how == "ratio":
        gaps = [math.log(second[r]) - math.log(first[r]) for r in both]
    else:
        gaps = [second[r] - first[r] for r in both]
    walsh = paired.averages(gaps)

    def interval(confidence: float) -> Interval | None:
        between = paired.shift(walsh, confidence).interval
        return between and _back(between, how)

    estimate = _linear(statistics.median(walsh), how)
    return Evidence(estimate, interval, paired.fewest, len(both), _stdev(gaps), how)


def of_counts(first: Mapping[int, float], second: Mapping[int, float], how: How) -> Evidence:
    """Compare counts, which are exact: the interval is the range of all pairs."""
    every = [
        two_samples.ratio([a], [b]).estimate if how == "ratio" else b - a
        for a in first.values()
        for b in second.values()
    ]
    span = Interval(min(every), max(every), 1.0)
    middle = statistics.median(every)
    return Evidence(middle, lambda _: span, lambda _: 1, min(len(first), len(second)), 0.0, how)


def of_runs(before: Sequence[float], after: Sequence[float], parts: int) -> Evidence:
    """Compare two runs, whose repetitions are not pairs: after minus before, divided by `parts`."""

    def interval(confidence: float) -> Interval | None:
        between = two_samples.difference(before, after, confidence).interval
        return between and Interval(between.low / parts, between.high / parts, between.coverage)

    def fewest(confidence: float) -> int:
        return next(count for count in range(1, 100) if two_samples.enough(count, confidence))

    spreads = [_stdev(values) for values in (before, after)]
    known = [spread for spread in spreads if spread is not None]
    stdev = math.hypot(*known) / parts if len(known) == len(spreads) else None
    estimate = two_samples.difference(before, after).estimate / parts
    count = min(len(before), len(after))
    return Evidence(estimate, interval, fewest, count, stdev, "difference")


def _stdev(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None


def _linear(value: float, how: How) -> float:
    return math.exp(value) if how == "ratio" else value


def _back(between: Interval, how: How) -> Interval:
    return Interval(_linear(between.low, how), _linear(between.high, how), between.coverage)
