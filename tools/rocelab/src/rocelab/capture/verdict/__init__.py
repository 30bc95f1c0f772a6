# SPDX-License-Identifier: GPL-2.0-or-later
"""The answer first: at most five causes of lost time in a capture, the most costly first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rocelab.capture.verdict import failures, faults, limits
from rocelab.capture.verdict.line import Line

MOST = 5
_BLIND = {"sampled", "fragments"}
"""Conditions under which missing packets and times between packets show nothing."""


def judge(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the lines of the verdict on an analysis; `result` is what `--json` prints."""
    kinds = {row["kind"] for row in result["conditions"]}
    # a mirror of which the copies could not be dropped shows every packet as sent again
    blind = "mirrored" in kinds and not _copies_dropped(result)
    if not result["roce"]["packets"] or blind or kinds & _BLIND:
        return [line.row() for line in _ranked(failures.unseen(result))]
    lines = [*failures.lines(result), *failures.odd(result), *faults.lines(result)]
    lines = _ranked(lines)[:MOST]
    if len(lines) < MOST:
        lines += limits.lines(result, lines)
    if lines and lines[0].cause == "unlimited":
        lines = [*failures.unseen(result), *lines]
    lines = lines[:MOST]
    return [line.row() for line in lines]


def _copies_dropped(result: dict[str, Any]) -> bool:
    return any(
        row["kind"] == "mirrored" and "were dropped" in row["detail"]
        for row in result["conditions"]
    )


def _ranked(lines: Iterable[Line]) -> list[Line]:
    """Failures first, then by time lost; what cost nothing that can be told comes last."""
    return sorted(lines, key=lambda line: (line.kind != "failure", -line.lost_ns, -line.count))
