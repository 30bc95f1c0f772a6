# SPDX-License-Identifier: GPL-2.0-or-later
"""Find in a step's capture the packets that faults by tc(8) met, and compare them with its counts.

tc has no packets' numbers, but it counts, and the capture has the same requests in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from rocelab import capture
from rocelab.errors import CellError
from rocelab.plans.fault import TO_SERVER, Action, FaultPlan
from rocelab.record.faults_document import Altered, Event
from rocelab.record.psn import behind
from rocelab.testbed.faults.messages import Messages, Place
from rocelab.testbed.faults.roce_frame import Packet
from rocelab.testbed.faults.traffic_control import CountedLink

_RELIABLE = 0x20
"""Opcodes of the reliable connection are below."""
_NAK = 0x20
"""Syndromes of acknowledgements are below."""


@dataclass(frozen=True)
class Request:
    """One of the client's requests, and where it is in its message."""

    time_ns: int
    packet: Packet
    place: Place | None
    connection: int | None

    def event(self, fault: FaultPlan) -> Event:
        """What a fault did to it."""
        return Event(
            fault=fault.name,
            done=str(fault.action),
            direction=TO_SERVER,
            time_ns=self.time_ns,
            opcode=self.packet.opcode,
            psn=self.packet.psn,
            message=self.place.message if self.place else None,
            packet=self.place.packet if self.place else None,
        )


def find(link: CountedLink, wire: Path, client: str) -> None:
    """Fill in the link's events from the capture of its step.

    Raises CellError when tc counted other packets than the capture has.
    """
    table = pl.DataFrame(capture.read(str(wire)).packets).filter(pl.col("opcode") < _RELIABLE)
    rows = table.select(
        *("time_ns", "src", "connection", "opcode", "dqpn", "psn", "syndrome", "icrc_ok")
    )
    requests = list(_requests(rows, client))
    link.events = met(link.of_packets, requests)
    for event in link.events:
        link.altered += Altered.by(event)
    _compare(link, len(requests))
    for fault in link.faults:
        if fault.action is Action.KILL and (first := _first_unacknowledged(requests, rows, client)):
            link.events.append(first.event(fault))
    link.met |= {event.fault for event in link.events}


def met(faults: Sequence[FaultPlan], requests: Iterable[Request]) -> list[Event]:
    """Return what faults by count do to requests: each sees what no earlier fault met."""
    seen = dict.fromkeys((fault.name for fault in faults), 0)
    events = []
    for request in requests:
        for fault in faults:
            seen[fault.name] += 1
            if seen[fault.name] % fault.every_packets == 0:
                events.append(request.event(fault))
                break
    return events


def _requests(rows: pl.DataFrame, client: str) -> Iterator[Request]:
    messages: dict[int, Messages] = {}
    for row in rows.filter(pl.col("src") == client).iter_rows(named=True):
        packet = Packet(row["opcode"], row["dqpn"], row["psn"], 0)
        if not packet.is_response:
            followed = messages.setdefault(packet.dqpn, Messages())
            yield Request(row["time_ns"], packet, followed.place(packet), row["connection"])


def _compare(link: CountedLink, requests: int) -> None:
    if not link.of_packets:
        return
    seen = [(event.fault, event.done) for event in link.events]
    expected = {
        fault.name: seen.count((fault.name, str(fault.action))) for fault in link.of_packets
    }
    counted = {each.fault: each.met for each in link.counted}
    if link.requests != requests or counted != expected:
        raise CellError(
            f"tc counted {link.requests} requests and met {counted}; "
            f"the capture has {requests}, of which these are {expected}",
            cause="the capture lost frames, or something else sends RoCE between the two nodes",
            action="Look at wire.pcap in the cell's folder, and run it again.",
        )


def _first_unacknowledged(
    requests: Sequence[Request], rows: pl.DataFrame, client: str
) -> Request | None:
    """Return the first request that the server never acknowledged, of the last connection."""
    if not requests:
        return None
    last = requests[-1].connection
    acknowledged: int | None = None
    answers = rows.filter(
        *(pl.col("src") != client, pl.col("connection") == last, pl.col("icrc_ok")),
        pl.col("syndrome").fill_null(0) < _NAK,
    )
    for psn in answers["psn"]:
        if acknowledged is None or behind(psn, acknowledged) > 0:
            acknowledged = psn
    for request in requests:
        late = acknowledged is None or behind(request.packet.psn, acknowledged) > 0
        if request.connection == last and late:
            return request
    return None
