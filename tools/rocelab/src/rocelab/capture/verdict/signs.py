# SPDX-License-Identifier: GPL-2.0-or-later
"""What is wrong by what the capture has, though no time can be charged to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rocelab import units
from rocelab.capture.verdict.connections import all_connections
from rocelab.capture.verdict.line import Line
from rocelab.capture.verdict.words import COUNTERS, times

Way = tuple[dict[str, Any], dict[str, Any]]
"""A connection and one of its directions."""

_EXPLAINED = {
    *("loss", "rnr", "timeout", "reorder", "spurious-retransmission", "retry-exceeded", "nak"),
    *("cm-rejected", "cm-unanswered", "icrc-bad", "icrc-zero"),
}
"""Rules that other lines stand for, or that tell of the place of the capture."""
_MIN_INTERVALS = 4


def lines(result: dict[str, Any], known: set[str]) -> Iterator[Line]:
    """Return a line for each such sign; `known` are the causes that have a cost."""
    ways = [(one, way) for one in all_connections(result) for way in one["directions"]]
    makers: dict[str, Callable[[dict[str, Any], list[Way]], Iterator[Line]]] = {
        "reordered": _reordering,
        "loss": _missing,
        "paused": _pauses,
        "corrupted": _corruption,
        "congestion": _congestion,
        "gaps": _gaps,
        "others": _others,
    }
    for cause, make in makers.items():
        if cause not in known:
            yield from make(result, ways)


def _reordering(result: dict[str, Any], ways: list[Way]) -> Iterator[Line]:
    late = [(one, way) for one, way in ways if way["out_of_order"]]
    if not late:
        return
    count = sum(way["out_of_order"] for _, way in late)
    yield Line(
        cause="reordering",
        kind="fault",
        what=f"Packets overtake each other before the capture point ({times(count)}); nobody "
        "asked for one again.",
        advice="Nothing, if the adapters take packets out of order; else turn off packet "
        "spraying and adaptive routing for RoCE.",
        certainty="certain" if _sure(result, "reorder") else "likely",
        connections={one["id"] for one, _ in late},
        worst=max(late, key=lambda row: row[1]["out_of_order"])[0]["id"],
        count=count,
        frames=_frames(result, "reorder"),
    )


def _missing(result: dict[str, Any], _: list[Way]) -> Iterator[Line]:
    rows = [row for row in result["findings"] if row["rule"] == "loss"]
    if rows:
        detail = rows[0]["detail"]
        yield Line(
            cause="loss",
            kind="fault",
            what=f"{detail[:1].upper()}{detail[1:]} ({units.plural(len(rows), 'such loss')}"
            f"{'' if len(rows) == 1 else 'es'}); nothing was sent again.",
            advice=f"Look for drops: {COUNTERS}; and whether the capture lost packets.",
            certainty="possible" if all(row["ambiguous"] for row in rows) else "certain",
            connections={row["connection"] for row in rows},
            worst=rows[0]["connection"],
            count=len(rows),
            frames=_frames(result, "loss"),
        )


def _pauses(result: dict[str, Any], _: list[Way]) -> Iterator[Line]:
    pauses = result["congestion"]["pauses"]
    count = sum(row["xoff"] for row in pauses)
    if count:
        first = max(pauses, key=lambda row: row["quanta"])
        yield Line(
            cause="pause",
            kind="fault",
            what=f"Flow control asks for pauses ({units.plural(count, 'XOFF')}, most of them "
            f"from {first['source']}); no connection here stood still for them.",
            advice="Capture where the paused port sends, and read ethtool -S IF | grep -i pause.",
            where=first["source"],
            count=count,
            frames=[(first["file"], first["packet"])],
        )


def _corruption(result: dict[str, Any], _: list[Way]) -> Iterator[Line]:
    count = result["icrc"]["diagnoses"].get("corrupted", 0)
    if not count or any(row["kind"] == "icrcs_all_wrong" for row in result["conditions"]):
        return
    rows = result["icrc"]["bad_packets"]
    yield Line(
        cause="corruption",
        kind="fault",
        what=f"{units.plural(count, 'packet')} arrived damaged: the ICRC is wrong, and receivers "
        "drop such packets.",
        advice=f"Find what changes bytes before the capture point ({COUNTERS}).",
        count=count,
        frames=[(row["file"], row["packet"]) for row in rows if row["diagnosis"] == "corrupted"],
    )


def _congestion(_: dict[str, Any], ways: list[Way]) -> Iterator[Line]:
    notified = [(one, way) for one, way in ways if way["cnp"]]
    if not notified:
        return
    cnps = sum(way["cnp"] for _, way in notified)
    one, way = max(notified, key=lambda row: row[1]["cnp"])
    receiver, sender = ("a", "b") if way["from"] == "a" else ("b", "a")
    back = [other for other in one["directions"] if other["from"] == sender]
    marked = sum(other["ce"] for other in back)
    total = sum(other["packets"] for other in back)
    slowed = {row["id"]: _slowdown_ns(row) for row, _ in notified}
    yield Line(
        cause="congestion",
        kind="fault",
        what=f"{one[receiver]['address']} tells of congestion ({units.plural(cnps, 'CNP')} in all; "
        f"{units.integer(marked)} of {units.plural(total, 'packet')} to it arrive marked CE), and "
        f"{one[sender]['address']} has to slow down.",
        advice=f"Look for several senders to {one[receiver]['address']} at once, and at the "
        "switches' ECN thresholds.",
        certainty="certain" if marked else "likely",
        where=one[receiver]["address"],
        connections=set(slowed),
        worst=one["id"],
        count=cnps,
        lost_ns=sum(slowed.values()),
        of_ns=sum(row["last_ns"] - row["first_ns"] for row, _ in notified),
        at_most=True,
    )


def _slowdown_ns(one: dict[str, Any]) -> int:
    """The time that a connection would have saved at the rate of its fastest interval."""
    series = max(
        (way["series"] for way in one["directions"]), key=lambda s: sum(s["payload_bytes"])
    )
    sums = series["payload_bytes"][:-1]
    if len(sums) < _MIN_INTERVALS:
        return 0
    at_top: float = sum(sums) / max(*sums, 1)
    step: int = series["step_ns"]
    return round(step * (len(sums) - at_top))


def _gaps(result: dict[str, Any], ways: list[Way]) -> Iterator[Line]:
    missed = sum(way["missed_by_capture"] for _, way in ways)
    if missed:
        yield Line(
            cause="capture_gap",
            kind="capture",
            what=f"The capture itself lost {units.plural(missed, 'packet')}, which their receivers "
            "acknowledged.",
            advice="Give it a larger buffer (tcpdump -B 65536) or a shorter snap length (-s 128), "
            "and capture again.",
            certainty="certain" if _sure(result, "capture-gap") else "likely",
            connections={one["id"] for one, way in ways if way["missed_by_capture"]},
            count=missed,
            frames=_frames(result, "capture-gap"),
        )


def _others(result: dict[str, Any], _: list[Way]) -> Iterator[Line]:
    """Return a line for each other rule that gives warnings."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in result["findings"]:
        if row["severity"] == "warning" and row["rule"] not in _EXPLAINED:
            groups.setdefault(row["rule"], []).append(row)
    for rule, rows in groups.items():
        detail = rows[0]["detail"]
        count = sum(row["count"] for row in rows)
        more = f" ({units.integer(count)} in all)" if len(rows) > 1 else ""
        yield Line(
            cause=rule.replace("-", "_"),
            kind="fault",
            what=f"{detail[:1].upper()}{detail[1:]}{more}.",
            advice=f"docs/checks says what {rule} means.",
            certainty="possible" if all(row["ambiguous"] for row in rows) else "certain",
            connections={row["connection"] for row in rows if row["connection"] is not None},
            worst=rows[0]["connection"],
            count=count,
            frames=_frames(result, rule),
        )


def _sure(result: dict[str, Any], rule: str) -> bool:
    return any(row["rule"] == rule and not row["ambiguous"] for row in result["findings"])


def _frames(result: dict[str, Any], rule: str) -> list[tuple[str, int]]:
    rows = (row for row in result["findings"] if row["rule"] == rule and row["packet"])
    return [(row["file"], row["packet"]) for row in rows]
