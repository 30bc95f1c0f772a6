# SPDX-License-Identifier: GPL-2.0-or-later
"""The statistics of `make bench`, and how little one disturbed round changes them."""

from __future__ import annotations

from types import ModuleType

import pytest

import script_module


@pytest.fixture(scope="module")
def analyze() -> ModuleType:
    return script_module.load("tools/rocelab/bench/analyze.py")


def test_start_up_is_subtracted(analyze: ModuleType) -> None:
    each = analyze.rates(1000, [1.5, 2.5], [0.7, 0.5])
    assert each == [1000.0, 500.0]
    assert analyze.spread(each) == {
        "best": 1000, "upper_quartile": 875, "median": 750, "lower_quartile": 625, "worst": 500,
    }  # fmt: skip


def test_a_run_that_is_nearly_all_start_up_gives_no_rate(analyze: ModuleType) -> None:
    assert analyze.rates(1, [1.0, 1.2], [0.95, 0.97]) is None
    assert analyze.spread(None) is None
    assert analyze.ratio([1.0], None) is None


def test_a_slow_phase_changes_no_ratio(analyze: ModuleType) -> None:
    ours, theirs = [100.0, 100.0, 50.0, 50.0, 50.0], [1.0, 1.0, 0.5, 0.5, 0.5]
    said = analyze.ratio(ours, theirs)
    assert said is not None
    assert said["by_round_least"] == said["by_round_median"] == said["by_round_greatest"] == 100


def test_one_disturbed_round_changes_no_median(analyze: ModuleType) -> None:
    said = analyze.ratio([100.0, 20.0, 104.0, 98.0, 101.0], [1.0, 1.0, 1.0, 1.0, 1.0])
    assert said is not None
    assert (said["median"], said["by_round_median"], said["by_round_least"]) == (100, 100, 20)
