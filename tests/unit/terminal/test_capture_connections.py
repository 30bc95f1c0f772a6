# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of connections reports the rows that it omits."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console

from rocelab.terminal import capture_tables


def printed(**counts: int) -> str:
    result: dict[str, Any] = {
        "connections": [],
        "connections_unreported": 0,
        "connections_evicted": 0,
    }
    console = Console(file=StringIO(), width=200)
    console.print(capture_tables.connections(result | counts, 80, most=0))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_connections_beyond_the_limit_are_counted() -> None:
    assert "and 7 more" in printed(connections_unreported=7)
    assert "more" not in printed()


def test_evicted_connections_are_told() -> None:
    assert "3 left memory before their end" in printed(connections_evicted=3)
    assert "left memory" not in printed()
