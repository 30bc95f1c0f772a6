# SPDX-License-Identifier: GPL-2.0-or-later
"""Durations on the terminal, from nanoseconds to years, are never shown as a power of ten."""

from __future__ import annotations

import pytest

from rocelab.terminal import capture_tables


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "-"),
        (5, "5 ns"),
        (1_234, "1.23 µs"),
        (999_999, "1,000 µs"),
        (1_500_000_000, "1.5 s"),
        (125 * 10**9, "125 s"),
        (2 * 3600 * 10**9, "2 h"),
        (95_300_000 * 10**9, "1,103 days"),
    ],
)
def test_duration(ns: int | None, text: str) -> None:
    assert capture_tables.duration(ns) == text
