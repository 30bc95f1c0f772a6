# SPDX-License-Identifier: GPL-2.0-or-later
"""What a page draws of a capture: sums over time, and the PSNs of some connections.

Captures are read once more, packet by packet, in memory that does not grow with them.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from polars.dataframe.group_by import GroupBy

from rocelab.capture import analysis
from rocelab.capture.analysis import Analysis, Options, Progress, Withdrawn
from rocelab.capture.renumbering import renumber
from rocelab.capture.sequence import COLUMNS, SequenceReader
from rocelab.capture.sequence import Sequence as Psns
from rocelab.errors import UsageError

_BINS = (10, 200)
"""Into how many intervals a capture's length is divided, at least and at most."""
_PACKETS_PER_BIN = 10
"""Of a short capture: with fewer, a line would only show single packets."""
_CNP = 0x81
_CE = 3
_MAX_LINKS = 4096
"""Directions whose addresses on the link are kept."""
_MAX_DIAGRAMS = 8
"""Connections whose PSNs are drawn."""
_FEW_COLUMNS = 100
"""Of the diagrams behind the first: a page stays small."""


@dataclass
class OverTime:
    """Sums of what was captured in equal intervals; bytes are those of frames without FCS."""

    start_ns: int
    step_ns: int
    sums: dict[str, list[int]] = field(default_factory=dict)
    """`packets`, `wire_bytes`, `goodput_bytes`, `ce` and `cnp`, one number for each interval.

    Goodput counts a message's bytes in the interval of its last packet.
    """

    @property
    def edges_ns(self) -> list[int]:
        """Where the intervals begin, and the end of the last, from the first frame on."""
        return [self.step_ns * at for at in range(len(self.sums["packets"]) + 1)]

    def gbit_per_s(self, name: str) -> list[float]:
        """A sum of bytes as a rate."""
        return [8 * value / self.step_ns for value in self.sums[name]]


@dataclass(frozen=True)
class Link:
    """What the Ethernet header of a direction's first packet says."""

    source: str | None
    destination: str | None
    pcp: int | None


@dataclass(frozen=True)
class Picture:
    """All that is drawn."""

    over_time: OverTime
    links: dict[tuple[int, str, int], Link]
    """By connection, source address and destination QP."""
    psns: tuple[Psns, ...]
    """Of the connections that are drawn, the one with most to explain first."""


def worth_drawing(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The connections with most to explain: errors, other findings, retransmissions, then bytes."""
    weights = {"error": 1_000_000, "warning": 1000, "note": 1}
    scores: dict[int, int] = {}
    for row in result["findings"]:
        if row["connection"] is not None:
            weight = weights[row["severity"]] * row["count"]
            scores[row["connection"]] = scores.get(row["connection"], 0) + weight

    def interest(connection: dict[str, Any]) -> tuple[bool, int, int, int]:
        ways = connection["directions"]
        return (
            connection["service"] in {"RC", "XRC", "UC"},
            scores.get(connection["id"], 0),
            sum(way["retransmitted"] for way in ways),
            sum(way["wire_bytes"] for way in ways),
        )

    return heapq.nlargest(_MAX_DIAGRAMS, result["connections"], key=interest)


def draw(
    paths: Sequence[str],
    options: Options,
    first_reading: Analysis,
    *,
    progress: Progress | None = None,
) -> Picture:
    """Read the captures of `first_reading` again, with the same options.

    Raises UsageError if a capture has changed so much that it cannot be opened any more.
    """
    result = first_reading.result
    span = result["input"]
    if span["first_ns"] is None:
        raise UsageError(
            f"{' '.join(result['input']['files'])} has no packets",
            cause="there is nothing to draw",
            action="Check the capture's filter, or analyze it without --html.",
        )
    bins = min(max(result["roce"]["packets"] // _PACKETS_PER_BIN, _BINS[0]), _BINS[1])
    step = -(-(span["last_ns"] - span["first_ns"] + 1) // bins)
    reader = _Reader(result, OverTime(span["first_ns"], step), bins, first_reading.renumbered)
    core = analysis.open_core(paths, options, first_reading.plan, rows=True)
    while core.step():
        reader.take(pl.DataFrame(core.take_packets()), pl.DataFrame(core.take_messages()))
        if progress:
            progress(core.bytes_read)
    withdrawn = core.finish()["withdrawn"]
    reader.take(pl.DataFrame(core.take_packets()), pl.DataFrame(core.take_messages()))
    reader.withdraw(withdrawn)
    return reader.picture()


class _Reader:
    """Takes rows of packets and messages, and keeps what is drawn of them."""

    def __init__(
        self,
        result: dict[str, Any],
        over_time: OverTime,
        bins: int,
        renumbered: Mapping[int, int],
    ) -> None:
        self._over_time, self._bins = over_time, bins
        self._renumbered = renumbered
        names = ("packets", "wire_bytes", "goodput_bytes", "ce", "cnp")
        self._over_time.sums = {name: [0] * bins for name in names}
        self._links: dict[tuple[int, str, int], Link] = {}
        self._kept = {row["id"] for row in result["connections"]}
        self._filtered = result["findings_unfiltered"] is not None
        self._psns = [
            SequenceReader(row, result["findings"], COLUMNS if at == 0 else _FEW_COLUMNS)
            for at, row in enumerate(worth_drawing(result))
        ]

    def take(self, packets: pl.DataFrame, messages: pl.DataFrame) -> None:
        packets = renumber(packets, self._renumbered)
        messages = renumber(messages, self._renumbered)
        if self._filtered:
            packets = packets.filter(pl.col("connection").is_in(self._kept))
            messages = messages.filter(pl.col("connection").is_in(self._kept))
        if packets.height:
            self._count(packets)
            self._see_links(packets)
            for reader in self._psns:
                reader.take(packets)
        if messages.height:
            self._add(self._by_bin(messages, "last_ns").agg(goodput_bytes=pl.sum("payload_bytes")))

    def withdraw(self, messages: Sequence[Withdrawn]) -> None:
        """Take back messages that were refused or given up."""
        for connection, _, _, time_ns, size in messages:
            if not self._filtered or connection in self._kept:
                at = (time_ns - self._over_time.start_ns) // self._over_time.step_ns
                self._over_time.sums["goodput_bytes"][min(max(at, 0), self._bins - 1)] -= size

    def _by_bin(self, rows: pl.DataFrame, time: str) -> GroupBy:
        at = (pl.col(time) - self._over_time.start_ns) // self._over_time.step_ns
        return rows.group_by(at.clip(0, self._bins - 1).alias("bin"))

    def _count(self, packets: pl.DataFrame) -> None:
        self._add(
            self._by_bin(packets, "time_ns").agg(
                packets=pl.len(),
                wire_bytes=pl.sum("wire_bytes").cast(pl.Int64),
                ce=(pl.col("ecn") == _CE).sum(),
                cnp=(pl.col("opcode") == _CNP).sum(),
            )
        )

    def _add(self, sums: pl.DataFrame) -> None:
        for row in sums.iter_rows(named=True):
            at = row.pop("bin")
            for name, value in row.items():
                self._over_time.sums[name][at] += value

    def _see_links(self, packets: pl.DataFrame) -> None:
        if len(self._links) >= _MAX_LINKS:
            return
        of_each = packets.drop_nulls("connection").unique(
            ["connection", "src", "dqpn"], keep="first", maintain_order=True
        )
        for row in of_each.iter_rows(named=True):
            link = Link(row["src_mac"], row["dst_mac"], row["pcp"])
            self._links.setdefault((row["connection"], row["src"], row["dqpn"]), link)

    def picture(self) -> Picture:
        sequences = (reader.sequence() for reader in self._psns)
        return Picture(self._over_time, self._links, tuple(one for one in sequences if one.spaces))
