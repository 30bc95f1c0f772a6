# SPDX-License-Identifier: GPL-2.0-or-later
"""Say what preparing a host would run there as root, and change nothing.

The same code prepares a host and says what it would do: only the node differs.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rocelab.testbed.hosts import prepare_host
from rocelab.testbed.node import Completed, DataLink, Node, Process

_WORK = "/tmp/rocelab-XXXXXX"  # noqa: S108 -- mktemp(1) would choose the name
_CHANGES = ("mktemp", "tar", "make")
"""Programs with which the user's own commands change something."""


def commands(node: Node) -> list[str]:
    """Return the command lines, in order. Raises what `prepare` raises before it changes anything.

    Reads the host's state, for which root reads rocelab's own record of it.
    """
    dry = DryNode(node)
    prepare_host.install(dry, lambda _: None)
    return dry.as_root


@dataclass
class DryNode:
    """A node that reads, and only notes what root would do (rocelab.testbed.node.Node)."""

    real: Node
    as_root: list[str] = field(default_factory=list)
    is_root: bool = False

    @property
    def name(self) -> str:
        """The host's name."""
        return self.real.name

    @property
    def login(self) -> str:
        """The command line with which a person logs in."""
        return self.real.login

    @property
    def link(self) -> DataLink:
        """The host's data interface."""
        return self.real.link

    @property
    def has_root(self) -> bool:
        """Whether commands can run as root."""
        return self.real.has_root

    @property
    def root(self) -> DryNode:
        """The same with root's commands, which are noted."""
        return DryNode(self.real.root, self.as_root, is_root=True)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = 60,
        check: bool = True,
        stdin: str | None = None,
    ) -> Completed:
        """Run a command that only reads; note one of root's."""
        program = argv[2] if argv[0] == "env" else argv[0]
        reads = program == "cat" if self.is_root else program not in _CHANGES
        if reads:
            return self.real.run(argv, timeout=timeout, check=check, stdin=stdin)
        if self.is_root:
            self.as_root.append(shlex.join(argv))
        return Completed(tuple(argv), 0, f"{_WORK}\n", "")

    def start(self, argv: Sequence[str], *, lifeline: bool = False) -> Process:
        """Nothing is started to prepare a host."""
        raise NotImplementedError(shlex.join(argv))

    def put(self, local: Path, remote: str, *, mode: int = 0o644) -> None:
        """Copy nothing: all files go into a temporary folder of the user's."""

    def get(self, remote: str, local: Path) -> None:
        """Nothing is fetched to prepare a host."""
        raise NotImplementedError(remote)
