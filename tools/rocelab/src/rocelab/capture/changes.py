# SPDX-License-Identifier: GPL-2.0-or-later
"""What changed between two captures of the same traffic: the causes and their cost, and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rocelab.capture.verdict import causes
from rocelab.capture.verdict.causes import Cause
from rocelab.capture.verdict.connections import all_connections
from rocelab.capture.verdict.faults import duration

SCHEMA = "rocelab.capture-changes/1"
_MIN_CHANGE = 0.1
"""Of the greater of two costs: less is no change."""
_MIN_SHARE = 0.001
"""Of the time: a smaller difference is no change."""
_ALIKE = 0.9
"""Least ratio of messages of two captures of the same traffic."""


class Change(StrEnum):
    """How the second capture's cost of a cause differs from the first one's."""

    NEW = "new"
    MORE = "more"
    SAME = "same"
    LESS = "less"
    GONE = "gone"


@dataclass(frozen=True)
class Amount:
    """What a cause costs in one capture."""

    count: int = 0
    lost_ns: int = 0
    share: float = 0.0
    """Of the time of all connections."""
    per_message: float = 0.0
    """How often for each message."""


@dataclass(frozen=True)
class Row:
    """A cause in two captures."""

    cause: str
    where: str | None
    before: Amount
    after: Amount

    @property
    def change(self) -> Change:
        return _change(self.before, self.after)


@dataclass(frozen=True)
class Figure:
    """A number of a whole capture; None: it does not have it."""

    name: str
    unit: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Changes:
    """Two captures compared."""

    rows: list[Row]
    """Causes and places, what costs most in either capture first."""
    worse: list[str]
    """Causes that are new or cost more, all places together."""
    figures: list[Figure]
    warnings: list[str]


def compare(before: dict[str, Any], after: dict[str, Any]) -> Changes:
    """Compare two analyses, as `--json` prints them."""
    first, second = causes.of(before), causes.of(after)
    figures = list(_figures(before, after))
    rows = _rows(_by_place(first), _by_place(second), before, after)
    names = _rows(_by_name(first), _by_name(second), before, after)
    worse = [row.cause for row in names if row.change in {Change.NEW, Change.MORE}]
    return Changes(rows, worse, figures, list(_warnings(before, after)))


def document(
    changes: Changes, before: dict[str, Any], after: dict[str, Any], failed: Iterable[str]
) -> dict[str, Any]:
    """Return the comparison as JSON (docs/formats/capture-changes.md)."""
    return {
        "schema": SCHEMA,
        "before": {"files": before["input"]["files"], "verdict": before["verdict"]},
        "after": {"files": after["input"]["files"], "verdict": after["verdict"]},
        "warnings": changes.warnings,
        "figures": [vars(one) for one in changes.figures],
        "causes": [
            {
                "cause": row.cause,
                "where": row.where,
                "before": vars(row.before),
                "after": vars(row.after),
                "change": str(row.change),
            }
            for row in changes.rows
        ],
        "worse": changes.worse,
        "failed": list(failed),
    }


Place = tuple[str, str | None]


def _by_place(rows: Iterable[Cause]) -> dict[Place, tuple[int, int]]:
    return {(one.name, one.where): (one.count, one.lost_ns) for one in rows}


def _by_name(rows: Iterable[Cause]) -> dict[Place, tuple[int, int]]:
    counts: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for one in rows:
        counts[one.name] += one.count
        lost[one.name] += one.lost_ns
    return {(name, None): (counts[name], lost[name]) for name in counts}


def _rows(
    first: dict[Place, tuple[int, int]],
    second: dict[Place, tuple[int, int]],
    before: dict[str, Any],
    after: dict[str, Any],
) -> list[Row]:
    scales = [(_time_of_all(result), _messages(result)) for result in (before, after)]
    rows = []
    for place in {**first, **second}:
        old, new = (
            _amount(some[place], *scale) if place in some else None
            for some, scale in zip((first, second), scales, strict=True)
        )
        rows.append(Row(*place, old or Amount(), new or Amount()))
    return sorted(rows, key=lambda row: -max(row.before.lost_ns, row.after.lost_ns))


def _amount(cost: tuple[int, int], time_ns: int, messages: int) -> Amount:
    count, lost = cost
    # a condition of the capture is there or not
    count = max(count, 1)
    return Amount(count, lost, lost / max(time_ns, 1), count / max(messages, 1))


def _change(before: Amount, after: Amount) -> Change:
    if not before.count:
        return Change.NEW
    if not after.count:
        return Change.GONE
    timed = before.lost_ns or after.lost_ns
    old, new = (before.share, after.share) if timed else (before.per_message, after.per_message)
    apart = abs(new - old)
    if apart <= _MIN_CHANGE * max(old, new) or (timed and apart <= _MIN_SHARE):
        return Change.SAME
    return Change.MORE if new > old else Change.LESS


def _time(result: dict[str, Any]) -> int:
    return sum(duration(one) for one in result["connections"])


def _time_of_all(result: dict[str, Any]) -> int:
    """How long all connections lasted, listed or not."""
    others = result["unlisted"]["others"] if "unlisted" in result else None
    listed_or_kept = sum(duration(one) for one in all_connections(result))
    return listed_or_kept + (int(others["span_ns"]) if others else 0)


def _ways(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for one in result["connections"]:
        yield from one["directions"]


def _messages(result: dict[str, Any]) -> int:
    return sum(way["messages"] + way["requests"] for way in _ways(result))


def _figures(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Figure]:
    """Figures of all connections together."""
    for name, unit, measure in (
        ("messages", "1", _messages),
        ("retransmitted packets", "1", _retransmissions),
        ("goodput of a connection", "bytes/s", _goodput),
        ("latency, median", "ns", _median),
        ("latency, p99 of the slowest connection", "ns", _worst_p99),
    ):
        yield Figure(name, unit, measure(before), measure(after))


def _retransmissions(result: dict[str, Any]) -> int:
    return sum(way["retransmitted"] + way["retransmitted_requests"] for way in _ways(result))


def _goodput(result: dict[str, Any]) -> float | None:
    time_ns = _time(result)
    data = sum(way["goodput_bytes"] for way in _ways(result))
    return 1e9 * data / time_ns if time_ns else None


def _median(result: dict[str, Any]) -> int | None:
    """The median of all messages that were sent only once, accurate to 1.6 %."""
    buckets: Counter[int] = Counter()
    for way in _ways(result):
        for edge, count in way["latency_ns"]["buckets"]:
            buckets[edge] += count
    left = buckets.total() / 2
    for edge in sorted(buckets):
        left -= buckets[edge]
        if left <= 0:
            return edge
    return None


def _worst_p99(result: dict[str, Any]) -> int | None:
    """The greatest p99 of a direction, with messages that were sent again."""
    each = (
        (way["pace"] and way["pace"]["p99_all_ns"]) or way["latency_ns"]["p99"]
        for way in _ways(result)
    )
    return max((ns for ns in each if ns is not None), default=None)


def _warnings(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    counts = [_messages(result) for result in (before, after)]
    if min(counts) < _ALIKE * max(counts):
        yield (
            f"the captures have {counts[0]} and {counts[1]} messages: costs are compared as shares "
            "of the connections' time, which other traffic changes, too"
        )
    for name, result in (("A", before), ("B", after)):
        if result["connections_unreported"]:
            yield (
                f"{name} has {result['connections_unreported']} connections more than are listed: "
                "the figures leave them out (--max-connections)"
            )
