# SPDX-License-Identifier: GPL-2.0-or-later
"""The findings of a capture, in lines for a rule and connection."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from rocelab.terminal import capture_tables


def shown(packets: list[int]) -> str:
    rows: list[dict[str, Any]] = [
        {
            "severity": "warning", "rule": "loss", "ambiguous": False, "connection": 0,
            "packet": packet, "count": 1, "file": "a.pcap", "detail": "text",
        }
        for packet in packets
    ]  # fmt: skip
    result = {
        "input": {"files": ["a.pcap"]},
        "findings": rows,
        "findings_total": len(rows),
        "finding_counts": [],
    }
    console = Console(file=io.StringIO(), width=200)
    console.print(capture_tables.findings(result))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("packets", "says"),
    [
        ([80], "packet 80: text\n"),
        ([80, 80, 80], "packet 80: text (2 more in this connection)\n"),
        ([7, 80, 80, 9, 80], "packet 7: text (4 more in this connection: packets 80, 9)\n"),
        (list(range(7)), "(6 more in this connection: packets 1, 2, 3, 4, 5, …)\n"),
    ],
)
def test_a_packet_is_named_once(packets: list[int], says: str) -> None:
    lines = [line.rstrip() + "\n" for line in shown(packets).splitlines()]
    assert any(says in line for line in lines), lines
