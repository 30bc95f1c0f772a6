# SPDX-License-Identifier: GPL-2.0-or-later
"""Where cells are measured: nodes of a testbed, and what they need to know of each other."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rocelab.bench.catalog import Transport
from rocelab.bench.mpi.recipe import Place
from rocelab.bench.tool import End
from rocelab.errors import CellError, TestbedError
from rocelab.node import Node
from rocelab.node.parallel import at_once
from rocelab.provider.base import Testbed
from rocelab.run import counters, verbs
from rocelab.run.counters import Counters
from rocelab.run.verbs import VerbsPort

_SETTLES_WITHIN = 3.0
"""Seconds until the last packet that one node sent is counted by the other."""
_FIRST_PORT, _PORTS = 18515, 1000
"""perftest's own port and those above it: a new one each time, never a stale server's."""


@dataclass(frozen=True)
class Rig:
    """Nodes ready to measure: client, server and, for MPI, maybe more."""

    testbed: Testbed
    nodes: tuple[Node, ...]
    ports: tuple[VerbsPort | None, ...]
    """Their verbs ports on the data link."""
    tcp_ports: Iterator[int]
    is_shaped: bool = False
    """Whether the link throws packets away, or delays them, as the plan says."""

    @classmethod
    def on(cls, testbed: Testbed, *, is_shaped: bool = False) -> Rig:
        """The first node is the client, the second the server. Raises TestbedError."""
        if len(testbed.nodes) < 2:
            raise TestbedError("the testbed has fewer than two nodes")
        nodes = tuple(testbed.nodes)
        ports = tuple(at_once(verbs.find, nodes))
        numbers = itertools.cycle(range(_FIRST_PORT, _FIRST_PORT + _PORTS))
        return cls(testbed, nodes, ports, numbers, is_shaped)

    def first(self, count: int) -> Rig:
        """The same with the first nodes only. Raises CellError when there are fewer."""
        if len(self.nodes) < count:
            raise CellError(
                f"{count} nodes are to take part, and the testbed has {len(self.nodes)}",
                action="Give the plan's testbed more nodes, or put more ranks on each.",
            )
        return replace(self, nodes=self.nodes[:count], ports=self.ports[:count])

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
            lambda i: counters.read(self.nodes[i], self.ports[i], is_shaped=self.is_shaped),
            self._each,
        )

    def settled(self, before: list[Counters]) -> dict[str, Counters]:
        """How far the counters moved, by node, once what was sent has arrived.

        After a while it is returned as it is: the proof will say what is missing.
        """
        deadline = time.monotonic() + _SETTLES_WITHIN
        while True:
            moved = [then.since(first) for then, first in zip(self.counters(), before, strict=True)]
            sent = sum(c.rxe.get("sent_pkts", 0) for c in moved)
            received = sum(c.rxe.get("rcvd_pkts", 0) for c in moved)
            # of what the link dropped not all need be RoCE packets
            missing = range(sum(c.dropped for c in moved) + 1)
            if sent - received in missing or time.monotonic() > deadline:
                return {node.name: c for node, c in zip(self.nodes, moved, strict=True)}

    @property
    def _each(self) -> range:
        return range(len(self.nodes))
