# SPDX-License-Identifier: GPL-2.0-or-later
"""The difference of two samples: exact distributions, and the coverage that intervals claim."""

from __future__ import annotations

import itertools
import math
import random
import statistics

import pytest

from rocelab.stats import two_samples
from rocelab.stats.two_samples import _distribution


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 3), (3, 3), (4, 5)])
def test_the_distribution_matches_enumeration(m: int, n: int) -> None:
    """Count every order of m + n values one by one."""
    counted = [0] * (m * n + 1)
    for chosen in itertools.combinations(range(m + n), m):
        others = [place for place in range(m + n) if place not in chosen]
        counted[sum(b < a for a in chosen for b in others)] += 1
    assert _distribution(m, n) == tuple(counted)


def test_published_tables() -> None:
    """Critical values of the two-sided test at 5 % agree with textbooks: k = U + 1."""
    for (m, n), critical in {(4, 4): 0, (5, 5): 2, (6, 6): 5, (8, 8): 13, (10, 10): 23}.items():
        gaps = sorted(float(b - 100 * a) for a in range(m) for b in range(n))
        difference = two_samples.difference(
            [100.0 * a for a in range(m)], [float(b) for b in range(n)]
        )
        assert difference.interval is not None
        assert difference.interval.low == gaps[critical]
        assert difference.interval.high == gaps[-critical - 1]
        assert 0.95 <= difference.interval.coverage < 1


def test_three_repetitions_have_no_interval() -> None:
    assert two_samples.difference([1, 2, 3], [11, 12, 13]) == two_samples.Apart(10, None)
    assert not two_samples.enough(3)
    assert two_samples.enough(4)


def test_a_injected_difference_and_ratio() -> None:
    dice = random.Random(7)
    first = [dice.gauss(100, 1) for _ in range(10)]
    second = [dice.gauss(120, 1) for _ in range(10)]
    apart = two_samples.difference(first, second)
    assert apart.estimate == pytest.approx(20, abs=1)
    assert apart.interval is not None
    assert apart.interval.low > 18
    times = two_samples.ratio(first, second)
    assert times.estimate == pytest.approx(1.2, abs=0.01)
    back = two_samples.ratio(second, first)
    assert back.estimate == pytest.approx(1 / times.estimate)
    assert times.interval is not None
    assert back.interval is not None
    assert back.interval.low == pytest.approx(1 / times.interval.high)


def test_the_intervals_coverage_is_as_stated() -> None:
    """Two samples of one skewed distribution: 0 is in the interval in 95 % of cases at least."""
    dice = random.Random(1)
    rounds, held, coverages = 2000, 0, []
    for _ in range(rounds):
        first, second = ([dice.expovariate(1) for _ in range(6)] for _ in range(2))
        interval = two_samples.difference(first, second).interval
        assert interval is not None
        held += interval.low <= 0 <= interval.high
        coverages.append(interval.coverage)
    said = statistics.fmean(coverages)
    assert said >= 0.95
    # three standard errors of the count
    assert held / rounds == pytest.approx(said, abs=3 * math.sqrt(said * (1 - said) / rounds))


def test_ties_are_no_evidence() -> None:
    interval = two_samples.difference([5.0] * 6, [5.0] * 6).interval
    assert interval is not None
    assert (interval.low, interval.high) == (0, 0)
    assert two_samples.ratio([5.0] * 6, [5.0] * 6).estimate == 1
