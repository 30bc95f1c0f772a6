# SPDX-License-Identifier: GPL-2.0-or-later
"""Bisection finds every first step, and asks about few."""

from __future__ import annotations

import pytest

from rocelab.stats import bisect


@pytest.mark.parametrize("count", [1, 2, 3, 8, 33])
def test_every_first(count: int) -> None:
    for wanted in range(1, count + 1):
        asked: list[int] = []

        def holds(number: int, wanted: int = wanted, asked: list[int] = asked) -> bool:
            asked.append(number)
            return number >= wanted

        assert bisect.first(count, holds) == wanted
        assert len(asked) <= (count - 1).bit_length()
        assert not {0, count} & set(asked)
