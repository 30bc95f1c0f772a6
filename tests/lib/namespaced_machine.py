# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine with processes, interfaces, /tmp and /run that nothing else uses: namespaces."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from requirements import missing, need_program
from rocelab.testbed.node import DataLink
from rocelab.testbed.node.command_node import CommandNode
from rocelab.testbed.node.local_process import ByCommandLine

_ENTER = ["unshare", "--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc"]
_SETUP = "mount -t tmpfs tmpfs /tmp && mount -t tmpfs tmpfs /run && echo ready && exec sleep 600"


@dataclass(frozen=True)
class Inside(ByCommandLine):
    """Run commands in the namespaces of a process (…command_node.Connection)."""

    pid: int

    def command(self, argv: Sequence[str]) -> list[str]:
        return ["nsenter", "-t", str(self.pid), "-p", "-m", "-n", "--", *argv]

    def as_root(self) -> Inside:
        return self


def node(pid: int) -> CommandNode:
    """The machine whose first process that is."""
    return CommandNode("n1", DataLink("lo", "127.0.0.1", "", 1500), Inside(pid))


@contextmanager
def running() -> Iterator[CommandNode]:
    """A machine on which rocelab is root, for as long as the context lasts."""
    for program in ("unshare", "nsenter", "flock"):
        need_program(program)
    with subprocess.Popen(
        [*_ENTER, "sh", "-c", _SETUP], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as outer:
        assert outer.stdout is not None
        try:
            if outer.stdout.readline() != "ready\n":
                missing("namespaces need root")
            (child,) = subprocess.run(
                ["pgrep", "-P", str(outer.pid)], capture_output=True, text=True, check=True
            ).stdout.split()
            yield node(int(child))
        finally:
            outer.kill()
