# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface of a node: run a command, start one, copy files to and from it.

Commands are argument lists, never shell text: a name from a plan or an inventory cannot
become a command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
class Printed:
    """What a command printed within some time."""

    stdout: str
    stderr: str


@dataclass(frozen=True)
class DataLink:
    """The interface that benchmark traffic uses (never the one that carries SSH)."""

    netdev: str
    ipv4: str
    mac: str
    mtu: int


MARK = "ROCELAB_PROCESS"
"""Environment variable of the commands that end with their run (rocelab.testbed.lease)."""


def mark(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command line that runs `argv` as a command that ends with its run."""
    return ("env", f"{MARK}=1", *argv)


class Process(Protocol):
    """A command that runs on a node."""

    def wait_for_line(self, needle: str, *, timeout: float) -> str:
        """Return the first line of stdout or stderr, past or future, that contains `needle`.

        Raises TestbedError when the command ends or `timeout` seconds pass without such a line.
        """

    def take(self, is_whole: Callable[[Printed], bool], *, timeout: float) -> Printed:
        """Return what it has printed that no earlier call returned, once that `is_whole`.

        Raises TestbedError as `wait_for_line` does, which no longer finds what this returned.
        """

    def interrupt(self) -> None:
        """Send SIGINT on the node: probes then write their result and end."""

    def say(self, line: str) -> None:
        """Write a line to the command's standard input, if it was started with a lifeline.

        Raises TestbedError when the command has ended.
        """

    def release(self) -> None:
        """Close the command's standard input, if it was started with a lifeline."""

    def wait(self, *, timeout: float) -> Completed:
        """Wait for the command to end. After `timeout` seconds, kill it and raise TestbedError."""

    def kill(self) -> None:
        """Kill the command on the node; do nothing if it has ended."""


class Node(Protocol):
    """A machine that benchmarks run on."""

    @property
    def name(self) -> str:
        """Short name, `n1`, `n2`, …, in output and in files."""

    @property
    def login(self) -> str:
        """The command line with which a person logs in, for advice in errors."""

    @property
    def link(self) -> DataLink:
        """The data interface."""

    @property
    def has_root(self) -> bool:
        """Whether commands can run as root."""

    @property
    def root(self) -> Node:
        """The same node with commands run as root; use it only for commands that need root.

        Raises TestbedError if commands cannot run as root.
        """

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = 60,
        check: bool = True,
        stdin: str | None = None,
    ) -> Completed:
        """Run a command and wait until it ends.

        Raises TestbedError when the node does not answer or `timeout` seconds pass, and, with
        `check`, when the command exits non-zero (the error quotes its stderr).
        """

    def start(self, argv: Sequence[str], *, lifeline: bool = False) -> Process:
        """Start a command and return at once. The machine's lease ends it with the run.

        With `lifeline`, its standard input is a pipe, which closes when this process ends, however
        that happens.
        """

    def put(self, local: Path, remote: str, *, mode: int = 0o644) -> None:
        """Copy a file to the node."""

    def get(self, remote: str, local: Path) -> None:
        """Copy a file from the node."""
