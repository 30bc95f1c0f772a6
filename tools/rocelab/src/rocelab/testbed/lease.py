# SPDX-License-Identifier: GPL-2.0-or-later
"""A lease on each machine of a run: it ends with the run, and cleans up.

A small shell on the machine (lease.sh) holds the lease until its standard input closes. That
happens however rocelab ends, even by SIGKILL. It then kills the commands that rocelab started
there, carries out what `at_end` noted, and removes queueing disciplines and temporary files. It
does the same before it holds the lease, for what an earlier run left whose lease was killed, too. A
user who cannot become root gets a separate lease, which waits for root's but not for those of other
users.
"""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import resources

from rocelab.errors import TestbedError
from rocelab.testbed.faults.traffic_control import SWEEP
from rocelab.testbed.node import Node, Process
from rocelab.testbed.node.endpoint import machines
from rocelab.testbed.node.interface import MARK
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.shaping import HANDLE

FOLDER = "/run/rocelab-lease"
"""On the machine; only root can write there. It exists while a run uses the machine."""
_SAYS = "rocelab-lease: "
_BUSY = f"{_SAYS}busy"
_WAIT_SECONDS = 20
"""Within which the lease of a run that was killed has cleaned up."""
_TIMEOUT = 120
_END_TIMEOUT = 60
_NOTE = f'[ ! -d {FOLDER} ] || printf "%s\\n" "$1" >>{FOLDER}/undo'


@contextmanager
def hold(nodes: Sequence[Node]) -> Iterator[None]:
    """Hold the machines of `nodes` while the context lasts, and clean them on exit.

    Raises TestbedError when another run holds one, or one does not answer.
    """
    processes: list[Process] = []
    try:
        processes.extend(map(_start, machines(nodes)))
        at_once(lambda each: _wait_held(*each), list(zip(machines(nodes), processes, strict=True)))
        yield
    finally:
        at_once(_end, processes)


def at_end(node: Node, argv: Sequence[str]) -> None:
    """Note a command that root runs on the node's machine when the lease ends.

    It runs even after a run that undid its work itself, so it must do no harm then. Does nothing
    on a machine without a lease, which ends with the run. Raises TestbedError, and ValueError for
    an argument with a line break: each line of the note is a command.
    """
    if any("\n" in word for word in argv):
        raise ValueError("a command of the lease is one line")
    node.root.run(("sh", "-c", _NOTE, "sh", shlex.join(argv)))


def end_marked() -> str:
    """Return the shell function that kills processes by their environment."""
    return (resources.files("rocelab.testbed") / "end_marked.sh").read_text("utf-8")


def _start(machine: Node) -> Process:
    who = f"{socket.gethostname()}, process {os.getpid()}"
    # without the mark: a lease must not be taken for a command of the run
    script = (resources.files("rocelab.testbed") / "lease.sh").read_text("utf-8")
    shell = ("-u", MARK, "sh", "-c", end_marked() + script, "sh")
    constants = (FOLDER, str(_WAIT_SECONDS), MARK, HANDLE, SWEEP)
    if not machine.has_root:
        return machine.start(("env", *shell, "", who, "user", *constants), lifeline=True)
    by = "root" if machine.root is machine else "sudo"
    return machine.root.start(("env", *shell, FOLDER, who, by, *constants), lifeline=True)


def _wait_held(machine: Node, process: Process) -> None:
    line = process.wait_for_line(_SAYS, timeout=_TIMEOUT)
    if line.startswith(_BUSY):
        raise TestbedError(
            f"{machine.name} is in use by {line.removeprefix(_BUSY).strip() or 'another run'}",
            cause="another run or `rocelab doctor` measures there, or lost its connection",
            action=f"Wait until it ends. If it is dead, end its process on {machine.name}, and "
            f"remove {FOLDER} there if that is left.",
        )


def _end(process: Process) -> None:
    # a machine that does not answer is dead, or its lease ends when it loses the connection
    with suppress(TestbedError):
        process.release()
        process.wait(timeout=_END_TIMEOUT)
    process.kill()
