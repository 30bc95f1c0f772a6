# SPDX-License-Identifier: GPL-2.0-or-later
"""A node that shares its machine with others but has its own data link and rxe device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rocelab.testbed.node.interface import Completed, DataLink, Node, Process


@dataclass(frozen=True)
class Endpoint:
    """One of the ends on `machine` (rocelab.testbed.node.interface.Node).

    An end has its own name, link and device. It shares the machine's kernel, memory, processors
    and files, so benchmarks must be given an address or a device; all of ours are.
    """

    name: str
    link: DataLink
    device: str
    """Name of its rxe device, which may not exist yet."""
    machine: Node
    adapter: str = ""
    """Name of a verbs device that is not rxe, from the inventory."""
    adapter_port: int = 0
    """Its port; 0: any."""

    @property
    def login(self) -> str:
        """The command line with which a person logs in to its machine."""
        return self.machine.login

    @property
    def has_root(self) -> bool:
        """Whether commands can run as root."""
        return self.machine.has_root

    @property
    def root(self) -> Endpoint:
        """The same end with commands run as root."""
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

    def start(self, argv: Sequence[str], *, lifeline: bool = False) -> Process:
        """Start a command on the machine."""
        return self.machine.start(argv, lifeline=lifeline)

    def put(self, local: Path, remote: str, *, mode: int = 0o644) -> None:
        """Copy a file to the machine."""
        self.machine.put(local, remote, mode=mode)

    def get(self, remote: str, local: Path) -> None:
        """Copy a file from the machine."""
        self.machine.get(remote, local)


def machine_of(node: Node) -> Node:
    """Return the machine that a node runs on, or the node itself if it is a machine."""
    return node.machine if isinstance(node, Endpoint) else node


def machine_name(machine: Node, nodes: Iterable[Node]) -> str:
    """Return the names of a machine's nodes among `nodes`, joined: its name in results."""
    return "+".join(node.name for node in nodes if machine_of(node) is machine)


def machines(nodes: Iterable[Node]) -> list[Node]:
    """Return the machines of these nodes without duplicates, in the order of the nodes."""
    distinct: list[Node] = []
    for node in nodes:
        machine = machine_of(node)
        if not any(machine is other for other in distinct):
            distinct.append(machine)
    return distinct
