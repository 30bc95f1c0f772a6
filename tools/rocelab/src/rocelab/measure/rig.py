# SPDX-License-Identifier: GPL-2.0-or-later
"""The rig that cells run on: a testbed's nodes, their verbs ports and the link between them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from rocelab.errors import CellError, TestbedError
from rocelab.measure import counters, pinning
from rocelab.measure.counters import Counters
from rocelab.measure.probes.loaded_probes import LoadedProbes
from rocelab.plans.benchmarks.mpi.recipe import Place
from rocelab.plans.benchmarks.tool import End
from rocelab.plans.catalog import TRANSPORTS, Transport
from rocelab.plans.plan import UNSHAPED, LinkPlan
from rocelab.testbed import verbs, verbs_ports
from rocelab.testbed.interface import HasVirtualClock, Testbed
from rocelab.testbed.node import Node
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.verbs_ports import Ports

_SETTLE_TIMEOUT = 3.0
"""Seconds within which a node counts the last packet that another one sent."""
_QUIET = 0.5
_PAUSE = 0.02
_HELP_TIMEOUT = 60
_FIRST_PORT, _PORTS = 18515, 1000
"""perftest's default port and the following ones. Each step uses a new one, so that it never
meets a stale server."""


@dataclass
class Known:
    """What nodes have said and need not be asked again, by transport."""

    rigs: dict[str, Rig] = field(default_factory=dict)
    """Of transports with other interfaces."""
    ends: dict[str, tuple[End, End]] = field(default_factory=dict)
    places: dict[tuple[str, int], list[Place]] = field(default_factory=dict)
    """Also by the number of nodes."""
    options: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """By node and program."""


@dataclass(frozen=True)
class Rig:
    """Nodes ready to measure: client, server and, for MPI, possibly more."""

    testbed: Testbed
    nodes: tuple[Node, ...]
    ports: tuple[Ports, ...]
    """Their verbs ports on the data link."""
    tcp_ports: Iterator[int]
    link: LinkPlan = UNSHAPED
    """How the plan shapes the link: packets may be delayed or dropped."""
    transport: Transport = TRANSPORTS["rxe-v2"]
    """What is measured, and so whose counters are read."""
    pinned: bool = False
    """Whether processes keep to their adapter's NUMA node."""
    probes: LoadedProbes | None = None
    """Those that stay loaded for all steps; None: each step loads its own."""
    known: Known = field(default_factory=Known, compare=False, repr=False)

    @classmethod
    def on(
        cls,
        testbed: Testbed,
        link: LinkPlan = UNSHAPED,
        *,
        pinned: bool = False,
        probes: LoadedProbes | None = None,
    ) -> Rig:
        """Make a rig of a testbed's nodes, the client first, then the server.

        Raises TestbedError.
        """
        if len(testbed.nodes) < 2:
            raise TestbedError(
                "the testbed has fewer than two nodes",
                cause="a benchmark needs a client and a server",
                action="Bring up a testbed with at least two nodes.",
            )
        nodes = tuple(testbed.nodes)
        ports = tuple(at_once(verbs_ports.find, nodes))
        numbers = itertools.cycle(range(_FIRST_PORT, _FIRST_PORT + _PORTS))
        return cls(testbed, nodes, ports, numbers, link, pinned=pinned, probes=probes)

    def first(self, count: int, transport: Transport) -> Rig:
        """Return a rig of the first `count` nodes for cells over `transport`.

        Raises CellError if there are fewer.
        """
        if len(self.nodes) < count:
            raise CellError(
                f"the benchmark needs {count} nodes, and the testbed has {len(self.nodes)}",
                cause="the plan's ranks do not fit on the testbed's nodes",
                action="Give the plan's testbed more nodes, or put more ranks on each.",
            )
        rig = self.known.rigs.get(transport.name, self)
        if rig is self and (over := self.testbed.over(transport)) is not self.testbed:
            rig = Rig.on(over, self.link, pinned=self.pinned, probes=self.probes)
            rig = replace(rig, tcp_ports=self.tcp_ports, known=self.known)
            self.known.rigs[transport.name] = rig
        return replace(rig, nodes=rig.nodes[:count], ports=rig.ports[:count], transport=transport)

    def ends(self, transport: Transport) -> tuple[End, End]:
        """Return both ends of a benchmark over `transport`. Raises CellError."""

        def end(i: int) -> End:
            base = verbs.end(self.nodes[i], self.ports[i], transport)
            return replace(base, cpus=self._cpus(i, transport))

        if transport.name not in self.known.ends:
            client, server = at_once(end, (0, 1))
            self.known.ends[transport.name] = client, server
        return self.known.ends[transport.name]

    def options(self, node: Node, program: str, optional: Sequence[str]) -> tuple[str, ...]:
        """Return the options of `optional` that `program` lists on a node when asked for help."""
        key = node.name, program
        if optional and key not in self.known.options:
            done = node.run((program, "-h"), check=False, timeout=_HELP_TIMEOUT)
            listed = {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
            self.known.options[key] = tuple(option for option in optional if option in listed)
        return self.known.options.get(key, ())

    def places(self, transport: Transport) -> list[Place]:
        """Return what MPI needs to know of each node. Raises CellError."""

        def place(i: int) -> Place:
            base = verbs.place(self.nodes[i], self.ports[i], transport)
            return replace(base, cpus=self._cpus(i, transport))

        key = transport.name, len(self.nodes)
        if key not in self.known.places:
            self.known.places[key] = at_once(place, self._each)
        return self.known.places[key]

    def forget(self) -> None:
        """Have the nodes asked again: their devices may be others."""
        self.known.rigs.clear()
        self.known.ends.clear()
        self.known.places.clear()

    def _cpus(self, i: int, transport: Transport) -> str:
        """The processors that a benchmark may use on a node; empty: all."""
        if not self.pinned:
            return ""
        port = self.ports[i].of(transport) if transport.by == "adapter" else None
        return pinning.near(self.nodes[i], port.device if port else "")

    def one_clock(self) -> AbstractContextManager[None]:
        """Keep the nodes on one virtual clock meanwhile, where the testbed can."""
        testbed = self.testbed
        return testbed.one_clock() if isinstance(testbed, HasVirtualClock) else nullcontext()

    def counters(self) -> list[Counters]:
        """Read the counters of all nodes. Raises CellError."""
        return at_once(
            lambda i: counters.read(
                self.nodes[i],
                self.ports[i].of(self.transport),
                by=self.transport.by,
                segments=self.transport.is_iwarp,
            ),
            self._each,
        )

    def all_counters(self) -> list[Counters]:
        """Return the same, and what was dropped before the wire. Raises CellError."""
        return self._with_drops(self.counters())

    def _with_drops(self, read: list[Counters]) -> list[Counters]:
        if not (self.link.is_shaped or self.transport.is_rxe):
            return read
        return at_once(
            lambda i: counters.with_drops(read[i], self.nodes[i], is_shaped=self.link.is_shaped),
            self._each,
        )

    def settle(self, before: list[Counters]) -> dict[str, Counters]:
        """Wait until everything sent has arrived, and return the counters' increase by node.

        After a timeout, return it anyway: the proof will report what is missing.
        """
        began = still = time.monotonic()
        quiet, last = self._quiet(), (-1, -1)
        while True:
            after = self.counters()
            moved = [then.since(first) for then, first in zip(after, before, strict=True)]
            sent = sum(c.rxe.get("sent_pkts", 0) for c in moved)
            received = sum(c.rxe.get("rcvd_pkts", 0) for c in moved)
            now = time.monotonic()
            if (sent, received) != last:
                last, still = (sent, received), now
            arrived = sent == received if quiet is None else now - still > quiet
            if arrived or now - began > _SETTLE_TIMEOUT + 4 * (quiet or 0):
                break
            # what has not arrived yet may be lost; each question costs an emulated node 25 ms
            time.sleep(_PAUSE + (now - began) / 4)
        # what has arrived was not dropped
        if self.link.is_shaped or sent != received:
            after = self._with_drops(after)
            moved = [then.since(first) for then, first in zip(after, before, strict=True)]
        return {node.name: c for node, c in zip(self.nodes, moved, strict=True)}

    def _quiet(self) -> float | None:
        """Seconds without a packet after which nothing is left on a lossy link.

        None if the link loses nothing: then we wait until everything sent has arrived.
        """
        return _QUIET + 2e-6 * self.link.delay_us if self.link.loss_ppm else None

    @property
    def _each(self) -> range:
        return range(len(self.nodes))
