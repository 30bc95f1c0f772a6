# SPDX-License-Identifier: GPL-2.0-or-later
"""The requester of a simulated connection: a window, a timer, and Go-Back-N."""

from __future__ import annotations

from generator.link import GAP_NS, Link
from generator.schedule import MODULUS
from generator.tap import ACK, RNR_NAK

_TIMEOUT_NS = 4_000_000
_RNR_NS = 650_000
"""A little more than the timer of the responder's RNR NAKs."""


class Requester:
    """Sends a plan's packets; its positions are indexes of them."""

    def __init__(self, link: Link, window: int) -> None:
        self._link = link
        link.on_response = self.take_answer
        self._packets = link.plan.packets
        self._window = window
        self._unacked = 0
        """The first packet that is not acknowledged."""
        self._next = 0
        self._sent: set[int] = set()
        self._epoch = 0
        """Of a sequence of sends; a later one ends it."""
        self._deadline = 0
        self._paused = False

    def is_done(self) -> bool:
        """Say whether everything is acknowledged."""
        return self._unacked == len(self._packets)

    def send(self) -> None:
        """Send the next packet, and the following ones after it, as far as the window goes."""
        if self._paused or self._next >= len(self._packets):
            return
        if self._next - self._unacked >= self._window:
            return
        index = self._next
        self._next += 1
        first = index not in self._sent
        self._sent.add(index)
        self._arm()
        self._link.request(index, self._link.plan.faults.get(index) if first else None)
        epoch = self._epoch
        self._link.at(GAP_NS, lambda: self.send() if epoch == self._epoch else None)

    def take_answer(self, psn: int, syndrome: int) -> None:
        """Take a response, an ACK or a NAK."""
        kind = syndrome >> 5
        if kind == ACK:
            self._advance(psn)
            return
        self._advance((psn - 1) % MODULUS)
        index = self._link.plan.index_of(psn)
        if index is None or index < self._unacked:
            return
        if kind == RNR_NAK:
            self._paused = True
            self._epoch += 1

            def resume() -> None:
                self._paused = False
                self._go_back(index)

            self._link.at(_RNR_NS, resume)
        else:
            self._go_back(index)

    def _arm(self) -> None:
        self._deadline = deadline = self._link.now + _TIMEOUT_NS
        self._link.at(_TIMEOUT_NS, lambda: self._expire(deadline))

    def _expire(self, deadline: int) -> None:
        if deadline == self._deadline and not self.is_done() and not self._paused:
            self._go_back(self._unacked)

    def _go_back(self, index: int) -> None:
        self._unacked = index
        self._next = index
        self._epoch += 1
        self._arm()
        self.send()

    def _advance(self, psn: int) -> None:
        """All packets up to and with `psn` are acknowledged."""
        moved = False
        while not self.is_done():
            packet = self._packets[self._unacked]
            last = (packet.psn + packet.span - 1) % MODULUS
            if (psn - last) % MODULUS >= MODULUS // 2:
                break
            self._unacked += 1
            self._next = max(self._next, self._unacked)
            moved = True
        if moved:
            self._arm()
            self._epoch += 1
            self.send()
