# SPDX-License-Identifier: GPL-2.0-or-later
"""The responder of a simulated connection: ACKs, one NAK for a gap, RNR NAKs, READ responses."""

from __future__ import annotations

from generator.link import Link
from generator.schedule import MODULUS, Planned, segments

_ACK, _NAK_SEQUENCE = 0x1F, 0x60
_RNR_NAK = 0x20 | 12
"""Timer code 12: 0.64 ms."""


class Responder:
    """Takes requests in order, and answers."""

    def __init__(self, link: Link) -> None:
        self._link = link
        link.on_request = self.receive
        self._expected = link.plan.packets[0].psn
        self._msn = 0
        self._nak_sent = False
        self._rnr_done: set[int] = set()
        self._acks_lost: set[int] = set()

    def receive(self, index: int) -> None:
        """Take a request, which may be a duplicate, or follow a gap."""
        packet = self._link.plan.packets[index]
        ahead = (packet.psn - self._expected) % MODULUS
        if ahead >= MODULUS // 2:
            if "READ" in packet.name:
                self._read(packet)
            elif packet.ack:
                self._answer((self._expected - 1) % MODULUS, _ACK, index)
            return
        if ahead:
            if not self._nak_sent:
                self._nak_sent = True
                self._answer(self._expected, _NAK_SEQUENCE, index)
            return
        if self._link.plan.faults.get(index) == "rnr" and index not in self._rnr_done:
            self._rnr_done.add(index)
            # what follows is dropped silently until the packet is retransmitted
            self._nak_sent = True
            self._answer(packet.psn, _RNR_NAK, index)
            return
        self._nak_sent = False
        self._expected = (packet.psn + packet.span) % MODULUS
        self._execute(packet, index)

    def _execute(self, packet: Planned, index: int) -> None:
        truth = self._link.tap.truth
        if not packet.name.endswith(("FIRST", "MIDDLE")):
            self._msn = (self._msn + 1) % MODULUS
            if "READ" in packet.name:
                truth.response_messages += 1
                truth.response_bytes += packet.read_size
                self._read(packet)
                return
            truth.messages += 1
        truth.goodput_bytes += len(packet.payload)
        if packet.ack:
            self._answer(packet.psn, _ACK, index)

    def _read(self, packet: Planned) -> None:
        parts = segments("RDMA_READ_RESPONSE", packet.read_size, self._link.plan.mtu)
        for offset, (name, size) in enumerate(parts):
            psn = (packet.psn + offset) % MODULUS
            last = offset == len(parts) - 1
            self._link.respond(name, psn, _ACK, self._msn, size=size, arrives=last)

    def _answer(self, psn: int, syndrome: int, index: int) -> None:
        fault = None
        if syndrome == _ACK and index not in self._acks_lost:
            fault = self._link.plan.faults.get(index)
            if fault in ("ack_lost_before", "ack_lost_behind"):
                self._acks_lost.add(index)
        if fault == "ack_lost_before":
            return
        arrives = fault != "ack_lost_behind"
        self._link.respond("ACKNOWLEDGE", psn, syndrome, self._msn, arrives=arrives)
