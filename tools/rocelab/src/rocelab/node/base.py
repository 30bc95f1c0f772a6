# SPDX-License-Identifier: GPL-2.0-or-later
"""What the harness knows of a node: run a command, start one, put and get files.

Commands are argument lists, never shell text: a name from a plan or an inventory cannot
become a command.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Completed:
    """A command that ended on a node."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class DataLink:
    """The interface that benchmark traffic uses (never the one that carries SSH)."""

    netdev: str
    ipv4: str
    mac: str
    mtu: int


class Process(Protocol):
    """A command that runs on a node."""

    def wait_for_line(self, needle: str, *, timeout: float) -> str:
        """Return the first line of stdout or stderr, past or future, that contains `needle`.

        Raises TestbedError when the command ends, or `timeout` seconds pass, without it.
        """

    def interrupt(self) -> None:
        """Send SIGINT on the node: probes write their result and end."""

    def wait(self, *, timeout: float) -> Completed:
        """Wait for the end. Past `timeout` seconds it is killed, and TestbedError raised."""

    def kill(self) -> None:
        """End the command on the node, at once; nothing happens if it has ended."""


class Node(Protocol):
    """A machine that benchmarks run on."""

    @property
    def name(self) -> str:
        """Short name, `n1`, `n2`, …: also the name in files."""

    @property
    def link(self) -> DataLink:
        """The data interface."""

    @property
    def root(self) -> Node:
        """The same node, its commands run as root; only for what needs it."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = 60,
        check: bool = True,
        stdin: str | None = None,
    ) -> Completed:
        """Run a command to its end.

        Raises TestbedError when the node does not answer or `timeout` seconds pass, and, with
        `check`, when the command exits non-zero (its stderr is in the message).
        """

    def start(self, argv: Sequence[str]) -> Process:
        """Start a command and return at once. It is ended with the node's connection."""

    def put(self, local: Path, remote: str, *, mode: int = 0o644) -> None:
        """Copy a file to the node."""

    def get(self, remote: str, local: Path) -> None:
        """Copy a file from the node."""
