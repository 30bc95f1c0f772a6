# SPDX-License-Identifier: GPL-2.0-or-later
"""A lossy link between two ends, with a tap in its middle.

a ----- before ----- tap ----- behind ----- b
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from generator import frames
from generator.schedule import DELAYS, START_NS, Plan
from generator.tap import Tap

GAP_NS = 400
"""From one packet of a to the next."""
_HOP_NS = 2_000
_MAX_EVENTS = 20_000


class Link:
    """The clock, the events, and the way of packets past the tap."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.now = START_NS
        self.tap = Tap(plan)
        self.on_request: Callable[[int], None] = lambda _: None
        """Takes the index of a request that arrives at b; b sets it."""
        self.on_response: Callable[[int, int], None] = lambda _psn, _syndrome: None
        """Takes a response that arrives at a; a sets it."""
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        # when the next packet of each end may come to the tap, and leave b
        self._tap_free = 0
        self._responder_free = 0

    def at(self, delay: int, action: Callable[[], None]) -> None:
        """Do something in so many ns."""
        self._count += 1
        heapq.heappush(self._events, (self.now + delay, self._count, action))

    def run(self) -> None:
        """Do everything, or the first of too many events."""
        for _ in range(_MAX_EVENTS):
            if not self._events:
                break
            self.now, _, action = heapq.heappop(self._events)
            action()

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
        self.tap.request(self.now, index, transport, fault)
        if fault not in ("corrupt", "drop_behind"):
            self.at(_HOP_NS, lambda: self.on_request(index))

    def respond(self, name: str, psn: int, syndrome: int, msn: int, *, size: int = 0,
                arrives: bool = True) -> None:  # fmt: skip
        """Carry a response from b to a; only one that `arrives` tells a something."""
        headers = b"" if "MIDDLE" in name else frames.aeth(syndrome, msn)
        transport = frames.transport(
            f"{self.plan.service}_{name}", self.plan.qpn_a, psn, headers, b"\x33" * size
        )

        def pass_tap() -> None:
            self.tap.response(self.now, transport, psn, syndrome)
            if arrives:
                self.at(_HOP_NS, lambda: self.on_response(psn, syndrome))

        # packets leave b one after the other
        self._responder_free = max(self._responder_free + 10, self.now)
        self.at(_HOP_NS + self._responder_free - self.now, pass_tap)
