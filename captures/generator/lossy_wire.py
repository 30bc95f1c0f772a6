# SPDX-License-Identifier: GPL-2.0-or-later
"""A reliable connection on a lossy wire with a tap in its middle.

        a ----- before ----- tap ----- behind ----- b

A Go-Back-N requester (a) and responder (b) exchange real packets event by event; faults are
injected on the first transmission of chosen packets, on either side of the tap. What the tap saw is
the capture, and its truth says what a reader of it can know.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from generator import frames
from generator.files import Packet
from generator.requester import GAP_NS, Requester
from generator.responder import Responder
from generator.schedule import DELAYS, START_NS, Plan
from generator.tap import Tap, Truth

_HOP_NS = 2_000
_MAX_EVENTS = 20_000


class Wire:
    """Runs a plan: the clock, the events, and the way of packets past the tap."""

    def __init__(self, plan: Plan, window: int = 12) -> None:
        self.plan = plan
        self.now = START_NS
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._tap = Tap(plan)
        self._requester = Requester(self, window)
        self._responder = Responder(self)
        # when the next packet of each end may come to the tap, and leave b
        self._tap_free = 0
        self._responder_free = 0

    @property
    def truth(self) -> Truth:
        """What the capture must show."""
        return self._tap.truth

    def at(self, delay: int, action: Callable[[], None]) -> None:
        """Do something in so many ns."""
        self._count += 1
        heapq.heappush(self._events, (self.now + delay, self._count, action))

    def run(self) -> list[Packet]:
        """Return the capture, once everything is acknowledged."""
        self.at(0, self._requester.send)
        for _ in range(_MAX_EVENTS):
            if not self._events:
                break
            self.now, _, action = heapq.heappop(self._events)
            action()
        if not self._requester.is_done():
            raise RuntimeError(f"seed {self.plan.seed}: the connection hangs")
        return self._tap.capture

    def request(self, index: int, fault: str | None) -> None:
        """Carry a request from a to b."""
        # what is delayed delays what follows
        delay = max(_HOP_NS, self._tap_free - self.now)
        if fault == "drop_before":
            return
        if fault in DELAYS:
            delay += DELAYS[fault]
            self._tap_free = self.now + delay
        if fault == "reorder":
            delay += GAP_NS * 3 // 2
        if fault == "duplicate":
            self.at(delay, lambda: self._pass_tap(index, fault=None))
            delay += 20
        self.at(delay, lambda: self._pass_tap(index, fault))

    def _pass_tap(self, index: int, fault: str | None) -> None:
        packet = self.plan.packets[index]
        transport = frames.transport(
            packet.name, self.plan.qpn_b, packet.psn, packet.headers, packet.payload, ack=packet.ack
        )
        self._tap.request(self.now, index, transport, fault)
        if fault not in ("corrupt", "drop_behind"):
            self.at(_HOP_NS, lambda: self._responder.receive(index))

    def respond(self, name: str, psn: int, syndrome: int, msn: int, *, size: int = 0,
                arrives: bool = True) -> None:  # fmt: skip
        """Carry a response from b to a; only one that `arrives` tells a something."""
        headers = b"" if "MIDDLE" in name else frames.aeth(syndrome, msn)
        transport = frames.transport(
            f"{self.plan.service}_{name}", self.plan.qpn_a, psn, headers, b"\x33" * size
        )

        def pass_tap() -> None:
            self._tap.response(self.now, transport, psn, syndrome)
            if arrives:
                self.at(_HOP_NS, lambda: self._requester.answered(psn, syndrome))

        # packets leave b one after the other
        self._responder_free = max(self._responder_free + 10, self.now)
        self.at(_HOP_NS + self._responder_free - self.now, pass_tap)
