# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics: definitions, and the coverage that the confidence interval claims."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab.stats.summary import median_interval, nearest_rank, spread

numbers = st.floats(-1e12, 1e12)


def test_an_interval_needs_six_values() -> None:
    assert median_interval([1.0] * 5) is None
    interval = median_interval([3, 1, 2, 6, 5, 4])
    assert interval is not None
    assert (interval.low, interval.high) == (1, 6)
    assert interval.coverage == pytest.approx(1 - 2 / 2**6)


@pytest.mark.parametrize(
    # tables of the sign test: J.-Y. Le Boudec, table A.1, and any other
    ("count", "low", "high"),
    [(6, 1, 6), (8, 1, 8), (9, 2, 8), (10, 2, 9), (12, 3, 10), (20, 6, 15), (30, 10, 21)],
)
def test_intervals_of_published_tables(count: int, low: int, high: int) -> None:
    interval = median_interval(list(range(1, count + 1)))
    assert interval is not None
    assert (interval.low, interval.high) == (low, high)


def test_the_intervals_coverage_is_as_stated() -> None:
    """Exponential samples with median ln 2: the method must also work for skewed distributions."""
    random.seed(1)
    runs, count = 4000, 10
    hits = 0
    for _ in range(runs):
        interval = median_interval([random.expovariate(1) for _ in range(count)])
        assert interval is not None
        hits += interval.low <= 0.6931471805599453 <= interval.high
        coverage = interval.coverage
    assert hits / runs == pytest.approx(coverage, abs=0.01)


@given(st.lists(numbers, min_size=1))
def test_the_spread_is_consistent(values: list[float]) -> None:
    summary = spread(values)
    assert summary.low <= summary.median <= summary.high
    assert (summary.stdev is None) == (len(values) == 1)
    assert (summary.interval is not None) == (len(values) >= 6)
    if summary.interval:
        assert (
            summary.low
            <= summary.interval.low
            <= summary.median
            <= summary.interval.high
            <= summary.high
        )
        assert summary.interval.coverage >= 0.95


@given(st.lists(numbers, min_size=1), st.floats(0.001, 1))
def test_nearest_rank_is_a_value_that_was_measured(values: list[float], share: float) -> None:
    ordered = sorted(values)
    value = nearest_rank(ordered, share)
    assert value in ordered
    assert sum(v <= value for v in ordered) >= share * len(ordered) - 1e-6


def test_nearest_rank_is_not_thrown_off_by_rounding() -> None:
    assert nearest_rank(list(range(1, 101)), 0.07) == 7
    assert nearest_rank(list(range(1, 101)), 0.99) == 99
    with pytest.raises(ValueError, match="share"):
        nearest_rank([1], 0)
