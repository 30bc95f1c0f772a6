# SPDX-License-Identifier: GPL-2.0-or-later
"""A reliable connection on a lossy wire.

A Go-Back-N requester (a) and responder (b) exchange real packets event by event; faults are
injected on the first transmission of chosen packets, on either side of the tap. What the tap saw is
the capture, and its truth says what a reader of it can know.
"""

from __future__ import annotations

from generator.files import Packet
from generator.link import Link
from generator.requester import Requester
from generator.responder import Responder
from generator.schedule import Plan
from generator.tap import Truth


class Wire:
    """Runs a plan."""

    def __init__(self, plan: Plan, window: int = 12) -> None:
        self.plan = plan
        self._link = Link(plan)
        self._requester = Requester(self._link, window)
        Responder(self._link)

    @property
    def truth(self) -> Truth:
        """What the capture must show."""
        return self._link.tap.truth

    def run(self) -> list[Packet]:
        """Return the capture, once everything is acknowledged."""
        self._link.at(0, self._requester.send)
        self._link.run()
        if not self._requester.is_done():
            raise RuntimeError(f"seed {self.plan.seed}: the connection hangs")
        return self._link.tap.capture
