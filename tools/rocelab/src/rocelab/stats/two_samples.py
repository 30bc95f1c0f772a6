# SPDX-License-Identifier: GPL-2.0-or-later
"""Estimate the shift between two samples, without assuming a distribution. Pure functions.

The Hodges-Lehmann estimate is the median of all differences between a value of one sample and a
value of the other. Its confidence interval comes from the Mann-Whitney-Wilcoxon test: it reaches
from the k-th smallest to the k-th largest of those differences, where k follows from the test's
exact distribution (M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric Statistical
Methods, 3rd ed., sections 4.2 and 4.3; J. L. Hodges, E. L. Lehmann, Ann. Math. Stat. 34 (1963),
598-611). Ties make the interval wider, never narrower.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from rocelab.stats.summary import CONFIDENCE, Interval, median


@dataclass(frozen=True)
class Apart:
    """The difference or the ratio of the second sample to the first."""

    estimate: float
    interval: Interval | None
    """None if the samples are too small for the requested confidence."""


def difference(
    first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE
) -> Apart:
    """Estimate second - first. Raises StatisticsError if a sample is empty."""
    gaps = sorted(b - a for a in first for b in second)
    order = _order(len(first), len(second), 1 - confidence)
    if order is None:
        return Apart(median(gaps), None)
    k, coverage = order
    return Apart(median(gaps), Interval(gaps[k - 1], gaps[-k], coverage))


def ratio(first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE) -> Apart:
    """Estimate second / first of positive values, as the difference of their logarithms.

    Raises StatisticsError if a sample is empty, ValueError if a value is not above 0.
    """
    logs = difference([math.log(a) for a in first], [math.log(b) for b in second], confidence)
    between = logs.interval
    return Apart(
        math.exp(logs.estimate),
        between and Interval(math.exp(between.low), math.exp(between.high), between.coverage),
    )


def enough(each: int, confidence: float = CONFIDENCE) -> bool:
    """Return whether two samples of `each` values are large enough for an interval."""
    return _order(each, each, 1 - confidence) is not None


def _order(m: int, n: int, alpha: float) -> tuple[int, float] | None:
    """Return the largest k that keeps the confidence, and the interval's coverage."""
    counts, ways = _distribution(min(m, n), max(m, n)), math.comb(m + n, n)
    k, below, tail = 0, 0, 0
    while k < len(counts):
        tail += counts[k]
        if 2 * tail > alpha * ways:
            break
        k, below = k + 1, tail
    return (k, 1 - 2 * below / ways) if k else None


@functools.cache
def _distribution(m: int, n: int) -> tuple[int, ...]:
    """Count the orders of m and n values whose Mann-Whitney count is 0, 1, … m * n.

    These are the coefficients of the Gaussian binomial: the product over i = 1 … m of
    (1 - x^(n + i)) / (1 - x^i).
    """
    size = m * n + 1
    counts = [1] + [0] * (size - 1)
    for i in range(1, m + 1):
        for u in range(size - 1, n + i - 1, -1):
            counts[u] -= counts[u - n - i]
        for u in range(i, size):
            counts[u] += counts[u - i]
    return tuple(counts)
