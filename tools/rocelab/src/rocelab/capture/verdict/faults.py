# SPDX-License-Identifier: GPL-2.0-or-later
"""What went wrong and was repaired: its time is what the core has charged to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rocelab.capture.verdict import signs, words
from rocelab.capture.verdict.connections import all_connections
from rocelab.capture.verdict.cost import Cost
from rocelab.capture.verdict.line import Line

_MIN_SHARE = 0.02
"""Of the connections' time: late answers that cost less are no cause."""
_MAX_LATE = 1 / 2
"""Of the answers: if more are late, all are slow, which is no single cause."""
_SIDES = {"loss_near", "loss_far", "loss"}
_PROVABLE = {"loss_near", "loss_far", "corrupted", "reordered"}
_DISORDERLY = 3
"""Packets out of order that show several paths."""
_SEVERAL = 2


def lines(result: dict[str, Any]) -> Iterator[Line]:
    """Return a line for each cause and place."""
    costs = _group(result)
    for cost in costs:
        yield from _line(result, cost)
    known = {cost.cause for cost in costs}
    yield from signs.lines(result, known)


def _group(result: dict[str, Any]) -> list[Cost]:
    groups: dict[tuple[str, str | None], Cost] = {}
    given_up = {row["connection"] for row in result["findings"] if row["rule"] == "retry-exceeded"}
    for connection in all_connections(result):
        if connection["id"] in given_up:
            # that line says it
            continue
        for way in connection["directions"]:
            for row in _fold(way):
                _take(groups, connection, way, row)
    return list(groups.values())


def _fold(way: dict[str, Any]) -> list[dict[str, Any]]:
    """Give what the capture does not prove to the only cause that it does prove for this sender."""
    rows: list[dict[str, Any]] = way["costs"]
    if len(rows) < _SEVERAL:
        return rows
    losses = [row for row in rows if row["trouble"] in _SIDES]
    unsure = sum(row["unsure"] for row in losses)
    if way["out_of_order"] >= _DISORDERLY and 2 * unsure >= sum(row["count"] for row in losses):
        # whoever goes back for packets that are only late sees losses where there are none
        return [_as("reordered", row) if row in losses else row for row in rows]
    proven = {row["trouble"] for row in rows if row["unsure"] < row["count"]} & _PROVABLE
    # what is corrupted was captured, and seldom mistaken for a loss
    proven = proven & _SIDES or proven
    if len(proven) != 1:
        return rows
    only = proven.pop()
    if only == "corrupted":
        return rows
    return [
        _as(only, row) if row in losses and row["unsure"] == row["count"] else row for row in rows
    ]


def _as(trouble: str, row: dict[str, Any]) -> dict[str, Any]:
    if row["trouble"] == trouble and row["repair"] != "needless":
        return row
    return {
        **row,
        "trouble": trouble,
        "repair": "timeout" if row["repair"] == "needless" else row["repair"],
    }


def _take(
    groups: dict[tuple[str, str | None], Cost],
    connection: dict[str, Any],
    way: dict[str, Any],
    row: dict[str, Any],
) -> None:
    here, there = ("a", "b") if way["from"] == "a" else ("b", "a")
    requester, responder = connection[here]["address"], connection[there]["address"]
    cause, where = row["trouble"], responder
    if cause == "loss_near" and row["repair"] == "needless":
        cause, where = "needless", requester
    elif cause in {"loss_near", "corrupted", "paused"}:
        where = requester
    cause = "loss" if cause in _SIDES else cause
    unplaced = row["trouble"] == "loss"
    key = (cause, None if unplaced else where)
    cost = groups.setdefault(key, Cost(*key))
    repair = row["repair"]
    cost.repairs[repair] = cost.repairs.get(repair, 0) + row["ns"]
    cost.counts[repair] = cost.counts.get(repair, 0) + row["count"]
    cost.least_ns[repair] = min(cost.least_ns.get(repair, row["least_ns"]), row["least_ns"])
    cost.unsure += row["unsure"]
    cost.messages += row["messages"]
    cost.ends.add((requester, responder))
    number = connection["id"]
    cost.by_connection[number] = cost.by_connection.get(number, 0) + row["ns"]
    if not any(way is known for _, known in cost.ways[-2:]):
        cost.ways.append((connection, way))
    for episode in row["episodes"]:
        cost.episodes.append((episode["ns"], episode["file"], episode["packet"], episode["until"]))


def duration(connection: dict[str, Any]) -> int:
    """How long a connection was captured."""
    return int(connection["last_ns"] - connection["first_ns"])


def goodput(connections: Iterable[dict[str, Any]], lost_ns: int) -> tuple[float, float] | None:
    """Bits per second of connections, summed, as they were and without lost time."""
    rows = list(connections)
    span = sum(duration(one) for one in rows)
    if not rows or not 0 < lost_ns < span:
        return None
    data = sum(way["goodput_bytes"] for one in rows for way in one["directions"])
    return 8e9 * len(rows) * data / span, 8e9 * len(rows) * data / (span - lost_ns)


def _is_late(cost: Cost) -> bool:
    answers: int = sum(
        other["acks"] + other["messages"]
        for one, way in cost.ways
        for other in one["directions"]
        if other is not way
    )
    return cost.count <= _MAX_LATE * answers


def _pace(way: dict[str, Any]) -> dict[str, Any]:
    """A direction's pace, which one that is cut off before its first message lacks."""
    known: dict[str, Any] | None = way["pace"]
    return known or {"p99_all_ns": None, "delayed": 0}


def _line(result: dict[str, Any], cost: Cost) -> Iterator[Line]:
    connections = {one["id"]: one for one, _ in cost.ways}
    span = sum(duration(one) for one in connections.values())
    if cost.cause == "late" and (cost.ns < _MIN_SHARE * span or not _is_late(cost)):
        return
    worst = max(cost.by_connection, key=lambda number: cost.by_connection[number])
    way = next(way for one, way in cost.ways if one["id"] == worst)
    after, before = _pace(way)["p99_all_ns"], way["latency_ns"]["p99"]
    sentence, advice = words.of(cost.cause, cost, result)
    messages = sum(
        max(way["latency_ns"]["count"] + _pace(way)["delayed"], 1) for _, way in cost.ways
    )
    longest = sorted(cost.episodes, key=lambda one: -one[0])[:8]
    yield Line(
        cause=words.NAMES[cost.cause],
        kind="fault",
        what=sentence,
        advice=advice,
        certainty=cost.certainty(),
        where=cost.where,
        connections=set(connections),
        worst=worst,
        count=cost.count,
        lost_ns=min(cost.ns, span),
        of_ns=span,
        timeouts=cost.counts.get("timeout", 0),
        timeout_ns=min(cost.repairs.get("timeout", 0), span),
        messages_delayed=min(cost.messages, messages),
        messages=messages,
        goodput=goodput(connections.values(), cost.ns),
        p99_ns=(after, before) if after is not None and before is not None else None,
        frames=[(file, packet) for _, file, *both in longest for packet in both],
    )
