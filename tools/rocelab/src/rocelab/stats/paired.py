# SPDX-License-Identifier: GPL-2.0-or-later
"""Estimate the shift between paired values, without assuming a distribution. Pure functions.

The repetitions of a run are blocks: each measures everything once, so what drifts from one
repetition to the next affects both values of a pair, and cancels in their difference. The estimate
is the median of the Walsh averages, the means of all pairs of differences (Hodges-Lehmann). Its
confidence interval comes from the Wilcoxon signed-rank test: it reaches from the k-th smallest to
the k-th largest Walsh average, where k follows from the test's exact distribution (M. Hollander,
D. A. Wolfe, E. Chicken, Nonparametric Statistical Methods, 3rd ed., sections 3.1 to 3.3). Ties
make the interval wider, never narrower.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

from rocelab.stats.summary import CONFIDENCE, Interval, median
from rocelab.stats.two_samples import Apart


def averages(gaps: Sequence[float]) -> list[float]:
    """Return the Walsh averages of differences, in ascending order."""
    return sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(gaps, 2))


def shift(walsh: Sequence[float], confidence: float = CONFIDENCE) -> Apart:
    """Return the shift of differences whose ordered Walsh averages are `walsh`.

    Raises StatisticsError if there are none.
    """
    count = (math.isqrt(8 * len(walsh) + 1) - 1) // 2
    order = _order(count, confidence)
    if order is None:
        return Apart(median(walsh), None)
    k, coverage = order
    return Apart(median(walsh), Interval(walsh[k - 1], walsh[-k], coverage))


def fewest(confidence: float = CONFIDENCE) -> int:
    """Return the least number of pairs that has an interval."""
    # the most extreme of 2^n equally likely orders, on either side
    return max(1, math.ceil(math.log2(2 / (1 - confidence)) - 1e-9))


@functools.cache
def _order(count: int, confidence: float) -> tuple[int, float] | None:
    """Return the largest k that keeps the confidence, and the interval's coverage."""
    counts, ways = _distribution(count), 2**count
    k, below, tail = 0, 0, 0
    while k < len(counts):
        tail += counts[k]
        if 2 * tail > (1 - confidence) * ways * (1 + 1e-9):
            break
        k, below = k + 1, tail
    return (k, 1 - 2 * below / ways) if k else None


@functools.cache
def _distribution(count: int) -> tuple[int, ...]:
    """Count the signs of the ranks 1 … n whose positive ranks sum to 0, 1, … n (n + 1) / 2."""
    counts = [1]
    for rank in range(1, count + 1):
        longer = counts + [0] * rank
        for total, ways in enumerate(counts):
            longer[total + rank] += ways
        counts = longer
    return tuple(counts)
