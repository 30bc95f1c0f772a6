# SPDX-License-Identifier: GPL-2.0-or-later
"""The answer first: at most five causes of lost time in a capture, the most costly first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rocelab.capture.verdict import failures, faults, limits
from rocelab.capture.verdict.line import Line

MAX_LINES = 5
_BLIND = {"sampled", "fragments"}
"""Conditions under which missing packets and times between packets show nothing."""


def judge(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the lines of the verdict on an analysis; `result` is what `--json` prints."""
    lines = troubles(result)[:MAX_LINES]
    if len(lines) < MAX_LINES and _shows_limits(result):
        lines += limits.lines(result, lines)
    if lines and lines[0].cause == "unlimited":
        lines = [*failures.unseen(result), *lines]
    return [line.row() for line in lines[:MAX_LINES]]


def troubles(result: dict[str, Any]) -> list[Line]:
    """Return a line for all that is wrong, also beyond what a verdict has room for."""
    if not _shows_limits(result):
        return _rank(failures.unseen(result))
    return _rank([*failures.lines(result), *failures.odd(result), *faults.lines(result)])


def _shows_limits(result: dict[str, Any]) -> bool:
    """Whether missing packets and times between packets show something."""
    kinds = {row["kind"] for row in result["conditions"]}
    # a mirror of which the copies could not be dropped shows every packet as sent again
    blind = "mirrored" in kinds and not _copies_dropped(result)
    return bool(result["roce"]["packets"]) and not blind and not kinds & _BLIND


def _copies_dropped(result: dict[str, Any]) -> bool:
    return any(
        row["kind"] == "mirrored" and "were dropped" in row["detail"]
        for row in result["conditions"]
    )


def _rank(lines: Iterable[Line]) -> list[Line]:
    """Failures first, then by time lost; what cost nothing that can be told comes last."""
    return sorted(lines, key=lambda line: (line.kind != "failure", -line.lost_ns, -line.count))
