# SPDX-License-Identifier: GPL-2.0-or-later
"""Where cells are measured: nodes of a testbed, and what they need to know of each other."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rocelab.bench.catalog import Maker, Transport
from rocelab.bench.mpi.recipe import Place
from rocelab.bench.plan import AS_IT_IS, LinkPlan
from rocelab.bench.tool import End
from rocelab.errors import CellError, TestbedError
from rocelab.node import Node
from rocelab.node.parallel import at_once
from rocelab.provider.base import Testbed
from rocelab.run import counters, verbs
from rocelab.run.counters import Counters
from rocelab.run.verbs import Ports

_SETTLES_WITHIN = 3.0
"""Seconds until the last packet that one node sent is counted by the other."""
_QUIET = 0.5
_FIRST_PORT, _PORTS = 18515, 1000
"""perftest's own port and those above it: a new one each time, never a stale server's."""


@dataclass(frozen=True)
class Rig:
    """Nodes ready to measure: client, server and, for MPI, maybe more."""

    testbed: Testbed
    nodes: tuple[Node, ...]
    ports: tuple[Ports, ...]
    """Their verbs ports on the data link."""
    tcp_ports: Iterator[int]
    link: LinkPlan = AS_IT_IS
    """What the plan made of the link: some packets are late, and some never come."""
    by: Maker = "rxe"
    """Who makes the packets whose counters are read."""

    @classmethod
    def on(cls, testbed: Testbed, link: LinkPlan = AS_IT_IS) -> Rig:
        """The first node is the client, the second the server. Raises TestbedError."""
        if len(testbed.nodes) < 2:
            raise TestbedError("the testbed has fewer than two nodes")
        nodes = tuple(testbed.nodes)
        ports = tuple(at_once(verbs.find, nodes))
        numbers = itertools.cycle(range(_FIRST_PORT, _FIRST_PORT + _PORTS))
        return cls(testbed, nodes, ports, numbers, link)

    def first(self, count: int, by: Maker = "rxe") -> Rig:
        """The same with the first nodes only. Raises CellError when there are fewer."""
        if len(self.nodes) < count:
            raise CellError(
                f"{count} nodes are to take part, and the testbed has {len(self.nodes)}",
                action="Give the plan's testbed more nodes, or put more ranks on each.",
            )
        return replace(self, nodes=self.nodes[:count], ports=self.ports[:count], by=by)

    def ends(self, transport: Transport) -> tuple[End, End]:
        """Both ends of a benchmark over `transport`. Raises CellError."""
        client, server = at_once(
            lambda i: verbs.end(self.nodes[i], self.ports[i], transport), (0, 1)
        )
        return client, server

    def places(self, transport: Transport) -> list[Place]:
        """What MPI needs to know of each node. Raises CellError."""
        return at_once(lambda i: verbs.place(self.nodes[i], self.ports[i], transport), self._each)

    def counters(self) -> list[Counters]:
        """Counters of all nodes, now. Raises CellError."""
        return at_once(
            lambda i: counters.read(
                self.nodes[i], self.ports[i].of(self.by), is_shaped=self.link.is_shaped, by=self.by
            ),
            self._each,
        )

    def settled(self, before: list[Counters]) -> dict[str, Counters]:
        """How far the counters moved, by node, once what was sent has arrived.

        After a while it is returned as it is: the proof will say what is missing.
        """
        began = still = time.monotonic()
        quiet, last = self._quiet(), (-1, -1)
        while True:
            moved = [then.since(first) for then, first in zip(self.counters(), before, strict=True)]
            sent = sum(c.rxe.get("sent_pkts", 0) for c in moved)
            received = sum(c.rxe.get("rcvd_pkts", 0) for c in moved)
            now = time.monotonic()
            if (sent, received) != last:
                last, still = (sent, received), now
            arrived = sent == received if quiet is None else now - still > quiet
            if arrived or now - began > _SETTLES_WITHIN + 4 * (quiet or 0):
                return {node.name: c for node, c in zip(self.nodes, moved, strict=True)}

    def _quiet(self) -> float | None:
        """Seconds without a packet after which a link that loses some has nothing more on it.

        None: nothing is lost there, and what was sent is waited for.
        """
        return _QUIET + 2e-6 * self.link.delay_us if self.link.loss_ppm else None

    @property
    def _each(self) -> range:
        return range(len(self.nodes))
