# SPDX-License-Identifier: GPL-2.0-or-later
"""The tap in the middle of a lossy wire: its capture, and what a reader of that can know."""

from __future__ import annotations

from dataclasses import dataclass, field

from generator import frames
from generator.files import Packet
from generator.schedule import MODULUS, Plan

ACK, RNR_NAK, NAK = 0, 1, 3
"""What the upper bits of a syndrome say."""


@dataclass
class Run:
    """Retransmitted packets in a row, as they passed the tap."""

    first: int
    acked: bool
    """The tap had seen all of them acknowledged."""
    last: int


@dataclass
class Truth:
    """What the tap's capture must show of direction a."""

    messages: int = 0
    goodput_bytes: int = 0
    response_messages: int = 0
    response_bytes: int = 0
    naks: int = 0
    rnr: int = 0
    retransmitted: int = 0
    nak_indices: set[int] = field(default_factory=set)
    """Packets that a NAK asked for."""
    runs: list[Run] = field(default_factory=list)
    overtaken: dict[int, bool] = field(default_factory=dict)
    """Reordered packets; whether a new packet passed the tap before the next retransmission."""


class Tap:
    """Captures both directions, and notes what follows from that."""

    def __init__(self, plan: Plan) -> None:
        self.capture: list[Packet] = []
        self.truth = Truth()
        self._plan = plan
        self._next_psn = plan.packets[0].psn
        """Behind the last new request."""
        self._acked = plan.packets[0].psn
        """The first PSN without an acknowledgement."""
        self._passed: set[int] = set()
        self._in_run = False
        self._late: int | None = None
        """A reordered packet that was the last to pass."""

    def request(self, time_ns: int, index: int, transport: bytes, fault: str | None) -> None:
        """A request passes."""
        packet = self._plan.packets[index]
        new = (packet.psn - self._next_psn) % MODULUS < MODULUS // 2
        # by the definition in docs/formats/analysis.md
        if "READ" not in packet.name and fault not in ("corrupt", "duplicate", "reorder"):
            self.truth.retransmitted += not new
        if fault != "corrupt":
            if new:
                self._next_psn = (packet.psn + packet.span) % MODULUS
            self._classify(index, fault)
        self._add(time_ns, "a", transport, damaged=fault == "corrupt")

    def response(self, time_ns: int, transport: bytes, psn: int, syndrome: int) -> None:
        """A response, an ACK or a NAK passes."""
        self._add(time_ns, "b", transport)
        kind = syndrome >> 5
        acked = (psn + (kind == ACK)) % MODULUS
        if (acked - self._acked) % MODULUS < MODULUS // 2:
            self._acked = acked
        if kind == NAK and (index := self._plan.index_of(psn)) is not None:
            self.truth.nak_indices.add(index)
        self.truth.naks += kind == NAK
        self.truth.rnr += kind == RNR_NAK

    def _add(self, time_ns: int, sender: str, transport: bytes, *, damaged: bool = False) -> None:
        data = frames.frame(self._plan.net, sender, transport)
        if damaged:
            middle = len(data) - 5
            data = data[:middle] + bytes([data[middle] ^ 0x40]) + data[middle + 1 :]
        self.capture.append((time_ns, data))

    def _classify(self, index: int, fault: str | None) -> None:
        """Note whether a packet is new, reordered or retransmitted, as the capture shows it."""
        packet = self._plan.packets[index]
        new = all(index > other for other in self._passed)
        if self._late is not None and index != self._late:
            self.truth.overtaken[self._late] = new
            self._late = None
        if new:
            self._in_run = False
        elif fault == "reorder":
            self._late = index
            self.truth.overtaken[index] = False
        else:
            runs = self.truth.runs
            acked = (packet.psn - self._acked) % MODULUS >= MODULUS // 2
            if self._in_run and runs and runs[-1].last + 1 == index:
                runs[-1].last = index
                runs[-1].acked &= acked
            else:
                runs.append(Run(index, acked, index))
            self._in_run = True
        self._passed.add(index)
