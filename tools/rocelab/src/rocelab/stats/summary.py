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
    """A confidence interval and its actual coverage, at least the requested one."""

    low: float
    high: float
    coverage: float


@dataclass(frozen=True)
class Spread:
    """Summary of the repetitions of one measurement."""

    count: int
    median: float
    mean: float
    stdev: float | None
    """Sample standard deviation; None for a single value."""
    low: float
    """Smallest value."""
    high: float
    """Largest value."""
    interval: Interval | None
    """Confidence interval of the median; None below six values."""


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean, with an exact sum. Raises StatisticsError if there are no values."""
    return statistics.fmean(values)


def median(values: Sequence[float]) -> float:
    """Middle value, or the mean of the two middle ones."""
    return statistics.median(values)


def sample_stdev(values: Sequence[float]) -> float:
    """Standard deviation with n-1; 0 for a single value."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` (0 < share <= 1) of all values do not exceed.

    `ordered` must be sorted and not empty. By this nearest-rank definition, the result is always
    one of the values.
    """
    if not 0 < share <= 1:
        raise ValueError("share must be in (0, 1]")
    # rounding may put the product above a whole number: 0.07 * 100 is 7.000000000000001
    rank = math.ceil(round(share * len(ordered), 9))
    return ordered[max(rank, 1) - 1]


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Confidence interval of the median from order statistics; None if there are too few values.

    The interval [x(k), x(n+1-k)] covers the median of any continuous distribution with exactly
    the probability 1 - 2 P(B < k), where B is binomial(n, 1/2) (H. A. David and
    H. N. Nagaraja, Order Statistics, 3rd ed., section 7.1; J.-Y. Le Boudec, Performance Evaluation
    of Computer and Communication Systems, section 2.2). We use the largest k that keeps the
    confidence. 95 % needs six values.
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
    """Summarise values; with six or more, the result has a confidence interval."""
    return Spread(
        count=len(values),
        median=median(values),
        mean=mean(values),
        stdev=statistics.stdev(values) if len(values) > 1 else None,
        low=min(values),
        high=max(values),
        interval=median_interval(values),
    )
