# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface of a testbed: its nodes, and a capture that is independent of the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rocelab import accelerators
from rocelab.plans.catalog import Transport
from rocelab.testbed.control_network import ControlEnd
from rocelab.testbed.faults.link import FaultyLink
from rocelab.testbed.faults.relay import Signal
from rocelab.testbed.node.interface import Node

WHOLE_FRAMES = 65535
"""Snap length (bytes) that never truncates a frame, not even a segmentation super-frame."""


@dataclass
class Captured:
    """What became of a capture; known when its context has ended."""

    lost: int = 0
    """Frames that came faster than they could be written, and are missing in the file."""
    beyond: list[str] = field(default_factory=list)
    """What the capturing programs counted beyond the file's bound (docs/formats/run.md)."""
    not_kept: int = 0
    """How many frames those are."""
    missing: str = ""
    """Why there is no file, where nothing may capture the data link."""


class Testbed(Protocol):
    """Nodes on one data link, set up by a provider."""

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes in the order of their names; at least two."""

    @property
    def accelerator(self) -> accelerators.Name:
        """What executes the nodes' instructions; all results of a run are labelled with it."""

    @property
    def control(self) -> Sequence[ControlEnd] | None:
        """The interface of each node over which MPI's daemons talk, None for a single machine.

        Raises CellError when the nodes do not reach each other.
        """

    @property
    def control_ports(self) -> frozenset[int]:
        """TCP ports by which the nodes are controlled, where that shares the data link."""

    def over(self, transport: Transport) -> Testbed:
        """The testbed as a transport uses it: with its interfaces and devices, captured there."""

    def capture(
        self, path: Path, *, snaplen: int = WHOLE_FRAMES
    ) -> AbstractContextManager[Captured]:
        """Capture the data link while the context lasts, outside the nodes where possible.

        Each frame that crosses the link, in either direction, becomes one record in the pcap or
        pcapng file `path` (link type Ethernet), truncated to `snaplen` bytes. On exit the file is
        complete on disk, apart from the frames that the yielded `Captured` says were lost. Raises
        TestbedError.
        """

    def alive(self) -> None:
        """Raise TestbedError when a node has died; the error quotes the end of its console."""

    def environment(self) -> dict[str, Any]:
        """Describe the testbed for run.json, as JSON values."""


@runtime_checkable
class HasVirtualClock(Protocol):
    """A testbed that may keep its nodes on one virtual clock while something is measured."""

    def one_clock(self) -> AbstractContextManager[None]:
        """Keep the nodes on one clock while the context lasts, if they are made for it."""

    def hurry(self) -> AbstractContextManager[None]:
        """Spare waits for nodes' timers while the context lasts; nothing crosses the link."""


@runtime_checkable
class StartsRanks(Protocol):
    """A testbed that can start the ranks of MPI jobs without mpirun."""

    def rank_starter(self, nodes: int, per_node: int) -> tuple[Node, tuple[str, ...]] | None:
        """Return where to run which command line before that of a rank; None for mpirun.

        The ranks run on the first `nodes` nodes.
        """


@runtime_checkable
class CanFail(Protocol):
    """A testbed whose data link can have faults."""

    def faulty(self, link: FaultyLink, signal: Signal) -> AbstractContextManager[None]:
        """Have faults happen on the data link while the context lasts. Raises TestbedError.

        `signal` sends the server's process a signal.
        """


Testbed.__test__ = False  # type: ignore[attr-defined]  # despite its name, not a pytest class
