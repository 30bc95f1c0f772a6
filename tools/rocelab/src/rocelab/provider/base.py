# SPDX-License-Identifier: GPL-2.0-or-later
"""What the harness knows of a testbed: its nodes, and a witness that no node can colour."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, Protocol

from rocelab.node.base import Node

Accelerator = Literal["tcg", "kvm", "native", "icount"]
"""What executes a node's instructions: `tcg` and `icount` count instructions, not time."""

WHOLE_FRAMES = 65535
"""Snap length (bytes) that keeps every frame whole, segmentation super-frames included."""


class Testbed(Protocol):
    """Nodes on one data link, as a provider made them."""

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes, in the order of their names; at least two."""

    @property
    def accelerator(self) -> Accelerator:
        """What the nodes run on; every number of a run carries it."""

    @property
    def control(self) -> str | None:
        """The network (CIDR) by which the nodes reach each other apart from the data link, or None
        where they are one machine."""

    def capture(self, path: Path, *, snaplen: int = WHOLE_FRAMES) -> AbstractContextManager[None]:
        """Capture the data link, outside the nodes, while the context lasts.

        Every frame that crosses the link between enter and exit is one record in the classic
        pcap or pcapng file `path` (link type Ethernet), cut to `snaplen` bytes; on exit the file
        is complete on disk. Both directions are in it, each frame once. Raises TestbedError.
        """

    def alive(self) -> None:
        """Raise TestbedError, with the tail of its console, when a node has died."""

    def environment(self) -> dict[str, Any]:
        """What the provider knows of the testbed, for run.json: JSON values only."""


Testbed.__test__ = False  # type: ignore[attr-defined]  # the name is not a pytest class
