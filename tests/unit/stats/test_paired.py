# SPDX-License-Identifier: GPL-2.0-or-later
"""The shift of paired values: exact distributions, published tables, and the coverage."""

from __future__ import annotations

import itertools
import random

import pytest

from rocelab.stats import paired, sample_size
from rocelab.stats.paired import _distribution
from rocelab.stats.two_samples import Apart


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_the_distribution_matches_enumeration(count: int) -> None:
    """Give every rank each sign, one by one."""
    counted = [0] * (count * (count + 1) // 2 + 1)
    for signs in itertools.product((0, 1), repeat=count):
        counted[sum(rank * sign for rank, sign in enumerate(signs, start=1))] += 1
    assert _distribution(count) == tuple(counted)


@pytest.mark.parametrize(("count", "critical"), [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (20, 52)])
def test_published_tables(count: int, critical: int) -> None:
    """Critical values of the two-sided test at 5 % agree with textbooks: k = W + 1."""
    walsh = paired.averages([float(2**rank) for rank in range(count)])
    shift = paired.shift(walsh)
    assert shift.interval is not None
    assert shift.interval.low == walsh[critical]
    assert shift.interval.high == walsh[-critical - 1]
    assert 0.95 <= shift.interval.coverage < 1


def test_five_pairs_have_no_interval() -> None:
    assert paired.shift(paired.averages([1.0, 2.0, 3.0, 4.0, 5.0])) == Apart(3, None)
    assert paired.fewest() == 6
    assert paired.fewest(1 - 0.05 / 16) == 10
    assert paired.shift(paired.averages([1.0] * 10), 1 - 0.05 / 16).interval is not None
    assert paired.shift(paired.averages([1.0] * 9), 1 - 0.05 / 16).interval is None


def test_the_interval_covers_a_injected_shift_as_often_as_it_says() -> None:
    dice = random.Random(3)
    hits = 0
    for _ in range(2000):
        between = paired.shift(paired.averages([dice.gauss(7, 2) for _ in range(10)])).interval
        assert between is not None
        hits += between.low <= 7 <= between.high
    assert 0.94 <= hits / 2000 <= 0.965


@pytest.mark.parametrize(("margin", "stdev"), [(1.0, 1.0), (0.5, 1.0), (2.0, 1.0)])
def test_the_announced_number_of_pairs_decides(margin: float, stdev: float) -> None:
    """In nine of ten cases the whole interval is on the estimate's side of the limit."""
    count = sample_size.pairs_needed(margin, stdev)
    assert count is not None
    dice = random.Random(4)
    decided = 0
    for _ in range(300):
        gaps = [dice.gauss(margin, stdev) for _ in range(count)]
        between = paired.shift(paired.averages(gaps)).interval
        assert between is not None
        decided += between.low > 0
    assert decided / 300 >= 0.85


def test_too_many_to_make() -> None:
    assert sample_size.pairs_needed(0.0, 1.0) is None
    assert sample_size.pairs_needed(0.01, 1.0) is None
    assert sample_size.pairs_needed(1.0, 0.0) == paired.fewest()
