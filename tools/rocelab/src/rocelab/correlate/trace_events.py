# SPDX-License-Identifier: GPL-2.0-or-later
"""Joined packets as a trace that ui.perfetto.dev opens: tracks, slices, flows and instants.

The format is JSON trace events ("Trace Event Format", Google 2016), which Perfetto imports. A place
is a process; its tracks are what each node sends and receives, and the frames between. Times are
microseconds since the place's first event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from rocelab import stage_table
from rocelab.correlate.clocks import Offset, offsets

Event = dict[str, Any]
_LOST = {
    "before_device": "lost before the device",
    "before_capture": "lost before the capture",
    "behind_capture": "lost behind the capture",
    "lost_or_record_lost": "lost, or its record was",
    "damaged": "damaged: wrong ICRC",
}
_MARGIN = 1
"""Nanoseconds between a packet's slice and its stages, so that no importer takes them for equal."""


@dataclass(frozen=True)
class Converted:
    """A place's events, and what of it is not among them."""

    events: list[Event]
    packets: int
    left_out: int
    clocks: Mapping[str, Offset]


@dataclass
class _Tracks:
    """Tracks of a process. Slices of one track do not overlap: others get a further track."""

    pid: int
    events: list[Event]
    _ids: dict[tuple[str, int], int] = field(default_factory=dict)
    _busy: dict[str, list[int]] = field(default_factory=dict)

    def slice(self, name: str, begin: int, end: int) -> int:
        """Return the track for a slice of this kind."""
        lanes = self._busy.setdefault(name, [])
        for lane, until in enumerate(lanes):
            if until <= begin:
                lanes[lane] = end
                return self.track(name, lane)
        lanes.append(end)
        return self.track(name, len(lanes) - 1)

    def track(self, name: str, lane: int = 0) -> int:
        """Return the number of a track, which gets a name when it is new."""
        if (name, lane) not in self._ids:
            number = self._ids[name, lane] = len(self._ids) + 1
            shown = f"{name} ({lane + 1})" if lane else name
            self.events.append(_metadata("thread_name", self.pid, number, {"name": shown}))
            self.events.append(
                _metadata("thread_sort_index", self.pid, number, {"sort_index": number})
            )
        return self._ids[name, lane]


def convert(
    packets: pl.DataFrame,
    messages: pl.DataFrame,
    *,
    name: str,
    pid: int,
    one_clock: bool,
    most: int,
) -> Converted:
    """Return the events of one place; at most its `most` first packets.

    `packets` and `messages` are those of `rocelab.correlate`.
    """
    clocks = offsets(packets, one_clock=one_clock)
    rows = [_Packet(row, clocks) for row in packets.iter_rows(named=True)]
    placed = sorted((row for row in rows if row.first is not None), key=lambda row: row.first or 0)
    chosen = placed[:most]
    events: list[Event] = [_metadata("process_name", pid, 0, {"name": name})]
    if not chosen:
        return Converted(events, 0, len(rows), clocks)
    origin = chosen[0].first or 0
    tracks = _Tracks(pid, events)
    for node in sorted(clocks):  # tracks in the order of a packet's way
        tracks.track(f"{node} sends")
    tracks.track("link")
    for node in sorted(clocks):
        tracks.track(f"{node} receives")
    slices: dict[tuple[int, str], tuple[int, int]] = {}
    for packet in chosen:
        events.extend(packet.events(tracks, origin, slices))
    events.extend(_flows(messages, slices, pid))
    return Converted(events, len(chosen), len(rows) - len(chosen), clocks)


class _Packet:
    """A row of the join, with its times on the capture's clock."""

    def __init__(self, row: Mapping[str, Any], clocks: Mapping[str, Offset]) -> None:
        self._row = row
        self._begin: dict[str, int | None] = {}
        for way in ("tx", "rx"):
            offset = clocks.get(row[f"{way}_node"] or "")
            at = row[f"{way}_ns"]
            self._begin[way] = None if at is None or offset is None else at + offset.ns
        self._wire = row["wire_ns"]

    @property
    def first(self) -> int | None:
        """When it is first seen, ns."""
        known = [at for at in (*self._begin.values(), self._wire) if at is not None]
        return min(known, default=None)

    @property
    def _name(self) -> str:
        return str(self._row["opcode_name"] or f"opcode {self._row['opcode']}")

    def _stages(self, way: str) -> list[tuple[str, int]]:
        stages = ((name, self._row[f"{way}_{name}_ns"]) for name in stage_table.IN_TIME[way])
        return [(name, int(ns)) for name, ns in stages if ns]

    def events(
        self, tracks: _Tracks, origin: int, slices: dict[tuple[int, str], tuple[int, int]]
    ) -> Iterator[Event]:
        """Yield its slices and instants; `slices` gets track and begin of each by its frame."""
        row = self._row
        about = {
            "psn": row["psn"],
            "destination QP": row["dqpn"],
            "source": row["src"],
            "destination": row["dst"],
            "frame": row["wire_packet"],
            "sent": row["sent"],
            "received": row["received"],
        }
        arguments = {key: value for key, value in about.items() if value is not None}
        for way, verb in (("tx", "sends"), ("rx", "receives")):
            begin = self._begin[way]
            if begin is None:
                continue
            node, at = row[f"{way}_node"], begin - origin
            stages = self._stages(way)
            end = at + sum(ns for _, ns in stages) + 2 * _MARGIN
            track = tracks.slice(f"{node} {verb}", at, end)
            yield _slice(self._name, tracks.pid, track, at, end, arguments)
            position = at + _MARGIN
            for name, ns in stages:
                title = "between its records" if name == stage_table.GAP else name
                yield _slice(title, tracks.pid, track, position, position + ns, {})
                position += ns
            if row["wire_packet"] is not None:
                slices[int(row["wire_packet"]), way] = (track, at)
            if dropped := row[f"{way}_drop"]:
                yield _instant(f"drop: {dropped}", tracks.pid, track, end, arguments)
            if way == "tx" and row["again"]:
                yield _instant("retransmission", tracks.pid, track, at, arguments)
        if self._wire is not None:
            link = tracks.track("link")
            yield _instant(self._name, tracks.pid, link, self._wire - origin, arguments)
            if row["again"] and self._begin["tx"] is None:
                at = self._wire - origin
                yield _instant("retransmission", tracks.pid, link, at, arguments)
        for verdict in (row["sent"], row["received"]):
            if verdict in _LOST:
                at = (self._wire if self._wire is not None else self.first or 0) - origin
                track = tracks.track("link")
                yield _instant(_LOST[verdict], tracks.pid, track, at, arguments)


def _flows(
    messages: pl.DataFrame,
    slices: Mapping[tuple[int, str], tuple[int, int]],
    pid: int,
) -> Iterator[Event]:
    """Yield each message's way: request sent, request received, answer sent, answer received."""
    for number, row in enumerate(messages.iter_rows(named=True), 1):
        way = [
            slices[frame, end]
            for frame in (row["first_frame"], row["answer_frame"])
            if frame is not None
            for end in ("tx", "rx")
            if (frame, end) in slices
        ]
        if len(way) < 2:
            continue
        for position, (track, at) in enumerate(way):
            phase = "s" if position == 0 else "f" if position == len(way) - 1 else "t"
            event = _event("message", phase, pid, track, at)
            event |= {"cat": "message", "id": f"{pid}.{number}"}
            # bound to the slice that encloses the point, not to the next one
            yield event | ({"bp": "e"} if phase == "f" else {})


def _event(name: str, phase: str, pid: int, track: int, at: int) -> Event:
    return {"name": name, "ph": phase, "pid": pid, "tid": track, "ts": at / 1000}


def _slice(
    name: str, pid: int, track: int, begin: int, end: int, arguments: Mapping[str, Any]
) -> Event:
    event = _event(name, "X", pid, track, begin) | {"cat": "packet", "dur": (end - begin) / 1000}
    return event | ({"args": dict(arguments)} if arguments else {})


def _instant(name: str, pid: int, track: int, at: int, arguments: Mapping[str, Any]) -> Event:
    event = _event(name, "i", pid, track, at)
    return event | {"cat": "event", "s": "t", "args": dict(arguments)}


def _metadata(name: str, pid: int, track: int, arguments: Mapping[str, Any]) -> Event:
    return {"name": name, "ph": "M", "pid": pid, "tid": track, "args": dict(arguments)}


def document(converted: Sequence[Converted], names: Sequence[str]) -> dict[str, Any]:
    """Return the trace of these places."""
    about = {
        name: {
            "packets": one.packets,
            "left out": one.left_out,
            "clocks": {
                node: "the capture's"
                if clock == Offset(0, 0)
                else f"shifted by {clock.ns} ns, "
                + (
                    "which hides how long packets took"
                    if clock.error_ns is None
                    else f"within {clock.error_ns} ns"
                )
                for node, clock in one.clocks.items()
            },
        }
        for name, one in zip(names, converted, strict=True)
    }
    return {
        "traceEvents": [event for one in converted for event in one.events],
        "displayTimeUnit": "ns",
        "otherData": {"generator": "rocelab", "places": about},
    }
