# SPDX-License-Identifier: GPL-2.0-or-later
"""A node that shares its machine with another: a data link and an rxe device of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rocelab.node.base import Completed, DataLink, Node, Process


@dataclass(frozen=True)
class Endpoint:
    """One of the ends on `machine` (rocelab.node.base.Node).

    Nothing but its name, link and device is its own: kernel, memory, processors and files are the
    machine's, so benchmarks have to name address or device, as all of them do.
    """

    name: str
    link: DataLink
    device: str
    """Its rxe device, once there is one."""
    machine: Node
    adapter: str = ""
    """A verbs device that is not rxe, by the name that an inventory gives it."""

    @property
    def root(self) -> Endpoint:
        """The same end, its commands run as root."""
        return replace(self, machine=self.machine.root)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = 60,
        check: bool = True,
        stdin: str | None = None,
    ) -> Completed:
        """Run a command on the machine."""
        return self.machine.run(argv, timeout=timeout, check=check, stdin=stdin)

    def start(self, argv: Sequence[str]) -> Process:
        """Start a command on the machine."""
        return self.machine.start(argv)

    def put(self, local: Path, remote: str, *, mode: int = 0o644) -> None:
        """Copy a file to the machine."""
        self.machine.put(local, remote, mode=mode)

    def get(self, remote: str, local: Path) -> None:
        """Copy a file from the machine."""
        self.machine.get(remote, local)


def machine_of(node: Node) -> Node:
    """The machine that a node is, or is on."""
    return node.machine if isinstance(node, Endpoint) else node


def machines(nodes: Iterable[Node]) -> list[Node]:
    """The machines of these nodes, each once, in the order of the nodes."""
    found: list[Node] = []
    for node in nodes:
        machine = machine_of(node)
        if not any(machine is other for other in found):
            found.append(machine)
    return found
