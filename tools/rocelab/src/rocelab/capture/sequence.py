# SPDX-License-Identifier: GPL-2.0-or-later
"""The PSNs of a connection over time, as tcptrace draws sequence numbers, in bounded memory.

The packets of one side's requests and of the responses to them share a PSN space: there are two in
a connection.
"""

from __future__ import annotations

from collections.abc import Sequence as Rows
from dataclasses import dataclass
from typing import Any

import polars as pl

KINDS = ("request", "response", "ACK", "NAK", "RNR NAK", "sent again or late")
"""What a packet is; `sent again or late`: its PSN is not above all earlier ones of its kind."""
_AGAIN = KINDS[-1]

_PSNS = 1 << 24
COLUMNS = 400
"""Of a thinned diagram: the lowest and the highest PSN of each column and kind stay."""
_POINTS_PER_COLUMN = 10
"""Of a PSN space, before its points are thinned."""
_MAX_MARKS = 60
"""Findings that are marked."""

# BTH opcodes within a service (IBTA specification, 9.2.1)
_OPERATION = 0x1F
_CNP = 0x81
_ACK = 0x11
_RESPONSES = (0x0D, 0x0E, 0x0F, 0x10, 0x12)


@dataclass(frozen=True)
class Mark:
    """A finding at its packet."""

    time_ns: int
    psn: int
    label: str


@dataclass(frozen=True)
class Space:
    """One side's requests, and the responses to them."""

    requester: str
    """`a` or `b`."""
    points: pl.DataFrame
    """`time_ns`, `psn` (counted on where it wraps, from the first packet's) and `kind`."""
    packets: int
    """How many packets there are; the points are fewer where they would hide each other."""
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Sequence:
    """The spaces of a connection that have packets."""

    connection: dict[str, Any]
    spaces: tuple[Space, ...]
    marks_left_out: int


class SequenceReader:
    """Takes rows of packets, and keeps what is drawn of one connection."""

    def __init__(
        self, connection: dict[str, Any], findings: Rows[dict[str, Any]], columns: int = COLUMNS
    ) -> None:
        self._connection = connection
        own = [row for row in findings if row["connection"] == connection["id"] and row["packet"]]
        self._labels: dict[int, list[str]] = {}
        for row in own:
            text = f"{row['severity']} {row['rule']}: frame {row['packet']}"
            self._labels.setdefault(row["packet"], []).append(text)
        self._left_out = max(0, len(self._labels) - _MAX_MARKS)
        self._labels = dict(list(self._labels.items())[:_MAX_MARKS])
        self._spaces = {side: _SpaceReader(columns) for side in ("a", "b")}

    def take(self, packets: pl.DataFrame) -> None:
        """Take the next rows, in the order of the capture."""
        rows = packets.filter(
            (pl.col("connection") == self._connection["id"]) & (pl.col("opcode") != _CNP)
        )
        if rows.height == 0:
            return
        a, b = self._connection["a"], self._connection["b"]
        operation = pl.col("opcode") & _OPERATION
        response = operation.is_in([*_RESPONSES, _ACK])
        from_a = (pl.col("src") == a["address"]) & (pl.col("dqpn") == (b["qpn"] or 0))
        syndrome = (pl.col("syndrome") // 32) % 4
        rows = rows.select(
            "time_ns",
            "packet",
            "psn",
            by_a=from_a ^ response,
            kind=pl.when(operation.is_in(_RESPONSES))
            .then(pl.lit("response"))
            .when((operation == _ACK) & (syndrome == 3))
            .then(pl.lit("NAK"))
            .when((operation == _ACK) & (syndrome == 1))
            .then(pl.lit("RNR NAK"))
            .when(operation == _ACK)
            .then(pl.lit("ACK"))
            .otherwise(pl.lit("request")),
        )
        for side, space in self._spaces.items():
            space.take(rows.filter(pl.col("by_a") == (side == "a")), self._labels)

    def sequence(self) -> Sequence:
        """What was kept."""
        spaces = tuple(space.space(side) for side, space in self._spaces.items() if space.packets)
        return Sequence(self._connection, spaces, self._left_out)


class _SpaceReader:
    def __init__(self, columns: int) -> None:
        self.packets = 0
        self._columns = columns
        self._last: int | None = None
        self._highest: dict[str, int] = {}
        self._kept = pl.DataFrame(schema={"time_ns": pl.Int64, "psn": pl.Int64, "kind": pl.String})
        self._marks: list[Mark] = []

    def take(self, rows: pl.DataFrame, labels: dict[int, list[str]]) -> None:
        if rows.height == 0:
            return
        self.packets += rows.height
        psns, kinds = [], []
        for time_ns, packet, psn, kind in zip(
            *(rows[name].to_list() for name in ("time_ns", "packet", "psn", "kind")), strict=True
        ):
            place = self._unwrap(psn)
            psns.append(place)
            kinds.append(self._kind(kind, place))
            for label in labels.get(packet, ()):
                self._marks.append(Mark(time_ns, place, label))
        new = rows.select("time_ns").with_columns(
            psn=pl.Series(psns, dtype=pl.Int64), kind=pl.Series(kinds, dtype=pl.String)
        )
        self._kept = pl.concat([self._kept, new])
        if self._kept.height > _POINTS_PER_COLUMN * self._columns:
            self._thin()

    def _unwrap(self, psn: int) -> int:
        if self._last is None:
            self._last = psn
        distance = (psn - self._last + _PSNS // 2) % _PSNS - _PSNS // 2
        self._last += distance
        return self._last

    def _kind(self, kind: str, place: int) -> str:
        """The kind, or that the packet is not newer than others. ACKs may say the same again."""
        if kind not in {"request", "response"}:
            return kind
        highest = self._highest.get(kind)
        if highest is not None and place <= highest:
            return _AGAIN
        self._highest[kind] = place
        return kind

    def _thin(self) -> None:
        first, last = self._kept["time_ns"].min(), self._kept["time_ns"].max()
        assert isinstance(first, int)
        assert isinstance(last, int)
        column = (pl.col("time_ns") - first) * self._columns // max(1, last - first)
        of_each = pl.col("psn")
        ends = (of_each == of_each.min()) | (of_each == of_each.max())
        self._kept = (
            self._kept.with_columns(column=column)
            .filter(ends.over("column", "kind"))
            .unique(["column", "kind", "psn"], keep="first", maintain_order=True)
            .drop("column")
        )

    def space(self, side: str) -> Space:
        return Space(side, self._kept, self.packets, tuple(self._marks))
