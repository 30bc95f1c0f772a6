# SPDX-License-Identifier: GPL-2.0-or-later
"""The process on this machine that stands for a command on a node, and ways there that are such."""

from __future__ import annotations

import shlex
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence

from rocelab.testbed.node import awake


def start(argv: Sequence[str], *, lifeline: bool) -> subprocess.Popen[bytes]:
    """Start a local command line; with `lifeline`, its standard input is a pipe, else empty."""
    return subprocess.Popen(
        argv,
        stdin=subprocess.PIPE if lifeline else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Ctrl-C must reach only rocelab, which stops its commands in order
        start_new_session=True,
    )


class ByCommandLine(ABC):
    """Runs each command by a local command line (for command_node.Connection)."""

    @abstractmethod
    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the local command line that runs `argv` on the node."""

    @property
    def login(self) -> str:
        """The command line with which a person logs in."""
        return shlex.join(self.command(["sh"]))

    def run(
        self, argv: Sequence[str], *, stdin: bytes, seconds: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end. Raises subprocess.TimeoutExpired."""
        return awake.run(self.command(argv), stdin=stdin, seconds=seconds)

    def start(self, argv: Sequence[str], *, lifeline: bool) -> subprocess.Popen[bytes]:
        """Start a command; with `lifeline`, standard input is a pipe."""
        return start(self.command(argv), lifeline=lifeline)

    def is_lost(self, done: subprocess.CompletedProcess[bytes]) -> bool:
        """Return False: on this machine there is no connection to lose."""
        del done
        return False

    def noise(self, line: str) -> bool:
        """Return False: on this machine there is no connection to say anything."""
        del line
        return False
