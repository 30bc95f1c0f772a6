# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics of samples and repetitions: pure functions over numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A confidence interval with the coverage that it really has (at least the one asked for)."""

    low: float
    high: float
    coverage: float


@dataclass(frozen=True)
class Spread:
    """What repetitions of one measurement say together."""

    count: int
    median: float
    mean: float
    stdev: float | None
    """Sample standard deviation; none for a single value."""
    low: float
    """Smallest value."""
    high: float
    """Largest value."""
    interval: Interval | None
    """Of the median; none below six values."""


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean, summed without loss. Raises StatisticsError when there is no value."""
    return statistics.fmean(values)


def median(values: Sequence[float]) -> float:
    """Middle value, or the mean of the two middle ones."""
    return statistics.median(values)


def sample_stdev(values: Sequence[float]) -> float:
    """Standard deviation with n-1; 0 for a single value."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 < share <= 1) of all values do not exceed.

    `ordered` must be sorted and not empty. The nearest-rank definition never makes up a value
    that nobody measured.
    """
    if not 0 < share <= 1:
        raise ValueError("share must be in (0, 1]")
    # the product may lie above a whole number by rounding only: 0.07 * 100 is 7.000000000000001
    rank = math.ceil(round(share * len(ordered), 9))
    return ordered[max(rank, 1) - 1]


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Confidence interval of the median from order statistics; None when the values are too few.

    The interval [x(k), x(n+1-k)] covers the median of any continuous distribution with
    probability 1 - 2 P(B < k), B binomial(n, 1/2): exact, and no shape is assumed (H. A. David and
    H. N. Nagaraja, Order Statistics, 3rd ed., section 7.1; J.-Y. Le Boudec, Performance Evaluation
    of Computer and Communication Systems, section 2.2). For 95 % it takes six values. The largest k
    that keeps the confidence is used.
    """
    count = len(values)
    ordered = sorted(values)
    best = None
    below = 0.0
    for k in range(1, count // 2 + 1):
        below += math.comb(count, k - 1) / 2**count
        coverage = 1 - 2 * below
        if coverage < confidence:
            break
        best = Interval(ordered[k - 1], ordered[count - k], coverage)
    return best


def spread(values: Sequence[float]) -> Spread:
    """Median, mean, deviation and range; from six values on, an interval of the median."""
    return Spread(
        count=len(values),
        median=median(values),
        mean=mean(values),
        stdev=statistics.stdev(values) if len(values) > 1 else None,
        low=min(values),
        high=max(values),
        interval=median_interval(values),
    )
