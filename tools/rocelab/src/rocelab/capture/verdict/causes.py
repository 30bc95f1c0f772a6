# SPDX-License-Identifier: GPL-2.0-or-later
"""The causes in a capture by name, for who compares captures or fails a build for one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rocelab.capture import verdict
from rocelab.capture.verdict import words
from rocelab.capture.verdict.line import Kind, Line
from rocelab.errors import UsageError

TIMEOUT = "timeout"
"""Whatever only the ACK timeout ended; other causes have that time, too."""
ANY = "any"
_FAILURES = ("gave_up", "refused", "rejected", "unanswered", "wrong_icrc", "violation")
_SIGNS = ("congestion", "cnp_format", "pkey_change", "read_depth", "read_replay", "rnr_backoff")
_OF_CAPTURE = (
    *("capture_gap", "sampled", "fragments", "mirrored", "other_port", "link_type"),
    *("not_looked_into", "cut_headers", "no_roce"),
)
NAMES = (TIMEOUT, *words.NAMES.values(), *_SIGNS, *_FAILURES, *_OF_CAPTURE)
"""All causes that are no limit."""


@dataclass(frozen=True)
class Cause:
    """What one cause costs towards one end."""

    name: str
    where: str | None
    """The end towards which it happens, or that causes it; None: no end is named."""
    kind: Kind
    count: int
    lost_ns: int


def of(result: dict[str, Any]) -> list[Cause]:
    """Return the causes in an analysis, each with each place once, the most costly first."""
    sums: dict[tuple[str, str | None], Cause] = {}
    for line in verdict.troubles(result):
        _add(sums, Cause(line.cause, line.where, line.kind, line.count, line.lost_ns))
        if line.timeouts:
            _add(sums, _timeout(line))
    return sorted(sums.values(), key=lambda one: -one.lost_ns)


def _timeout(line: Line) -> Cause:
    return Cause(TIMEOUT, None, "fault", line.timeouts, line.timeout_ns)


def _add(sums: dict[tuple[str, str | None], Cause], one: Cause) -> None:
    key = (one.name, one.where)
    if before := sums.get(key):
        count, lost_ns = before.count + one.count, before.lost_ns + one.lost_ns
        one = Cause(one.name, one.where, one.kind, count, lost_ns)
    sums[key] = one


def chosen(text: str) -> frozenset[str]:
    """Return the causes that a list with commas names; `any` is all but those of the capture.

    Raises UsageError for a name that is no cause.
    """
    names = [name.strip().replace("-", "_") for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in (*NAMES, ANY)]
    if unknown or not names:
        raise UsageError(
            f"--fail-on has no cause {', '.join(unknown) or 'at all'}",
            cause=f"the causes are {', '.join((*NAMES, ANY))}",
            action="Name some of these, with commas between them.",
        )
    some = set(names) - {ANY}
    if ANY in names:
        some |= set(NAMES) - set(_OF_CAPTURE)
    return frozenset(some)


def among(causes: Iterable[Cause], names: frozenset[str]) -> Sequence[str]:
    """Return the names of those causes that are wanted, each once."""
    return list(dict.fromkeys(one.name for one in causes if one.name in names))
