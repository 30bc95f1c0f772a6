# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's tests of two drivers: answer and counts are those of each test's last try."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rocelab.measure.rdma_core_tests import RETRIES, Compared, Outcomes, until_equal

Try = tuple[Outcomes, Outcomes]


def compared(*tries: Try) -> tuple[Compared, list[Sequence[str]]]:
    """What comes of these tries, and the tests that were run in each."""
    asked: list[Sequence[str]] = []

    def run(tests: Sequence[str]) -> Try:
        asked.append(tests)
        return tries[len(asked) - 1]

    return until_equal(run), asked


def test_a_test_that_differs_only_at_first() -> None:
    """It is equal, counted as equal, and named."""
    comparison, asked = compared(
        ({"a": "pass", "b": "fail"}, {"a": "pass", "b": "pass"}), ({"b": "pass"}, {"b": "pass"})
    )
    assert asked == [(), ["b"]]
    assert comparison.different == {}
    assert comparison.counts == ({"pass": 2}, {"pass": 2})
    assert comparison.unsteady == {"b": ("fail", "pass")}


def test_a_test_that_differs_in_every_try() -> None:
    """Answer and counts have the outcomes of the last try."""
    tries = [({"a": "pass", "b": "crash"}, {"a": "pass", "b": "pass"})]
    tries += [({"b": "fail"}, {"b": "pass"})] * RETRIES
    comparison, asked = compared(*tries)
    assert asked == [(), *[["b"]] * RETRIES]
    assert comparison.different == {"b": ("fail", "pass")}
    assert comparison.counts == ({"pass": 1, "fail": 1}, {"pass": 2})
    assert comparison.unsteady == {}


@pytest.mark.parametrize("later", [({}, {}), ({"b": "pass"}, {})])
def test_a_test_that_does_not_run_again(later: Try) -> None:
    """No outcome is no agreement, also not with that of another try."""
    tries = [({"b": "fail"}, {"b": "pass"}), *[later] * RETRIES]
    comparison, _ = compared(*tries)
    assert "b" in comparison.different
    assert comparison.unsteady == {}


def test_equal() -> None:
    """Nothing is run twice."""
    comparison, asked = compared(({"a": "pass", "b": "skip"}, {"a": "pass", "b": "skip"}))
    assert asked == [()]
    assert comparison.counts == ({"pass": 1, "skip": 1},) * 2
    assert comparison.different == comparison.unsteady == {}
