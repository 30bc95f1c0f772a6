# SPDX-License-Identifier: GPL-2.0-or-later
"""The process that owns a testbed's virtual machines: `python -m rocelab.testbed.qemu.supervisor`.

It starts one QEMU per machine. On SIGTERM it ends them all and removes the state folder. With
`--lifeline` it also does so when its standard input closes, which happens however rocelab ends,
even by a crash or SIGKILL. If the supervisor itself is killed, the kernel kills the QEMUs
(PR_SET_PDEATHSIG), and the next rocelab command removes the folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from rocelab.testbed.qemu.machine_spec import TestbedSpec, qemu_argv, streams
from rocelab.testbed.qemu.state_folder import State


def _start(spec: TestbedSpec, state: Path) -> dict[str, subprocess.Popen[bytes]]:
    nodes: dict[str, subprocess.Popen[bytes]] = {}
    with ExitStack() as links:
        ends: dict[str, dict[str, int]] = {node.name: {} for node in spec.machines}
        for stream in streams(spec):
            for (machine, netdev), end in zip(stream, socket.socketpair(), strict=True):
                ends[machine][netdev] = links.enter_context(end).fileno()
        for node in spec.machines:
            argv = qemu_argv(spec, node, state, ends[node.name])
            with (state / f"{node.name}.qemu").open("wb") as log:
                nodes[node.name] = subprocess.Popen(
                    ["setpriv", "--pdeathsig", "KILL", "--", *argv],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=state,
                    pass_fds=ends[node.name].values(),
                )
    return nodes


def _stop(nodes: dict[str, subprocess.Popen[bytes]]) -> None:
    for process in nodes.values():
        process.terminate()
    deadline = time.monotonic() + 5
    for process in nodes.values():
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    """Run the supervisor. Arguments: the testbed's name and, optionally, --lifeline."""
    state = State(sys.argv[1])
    lifeline = "--lifeline" in sys.argv[2:]
    with state.lock_file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (state.path / "supervisor.pid").write_text(str(os.getpid()))
        # signals arrive as bytes in a pipe, so that one select() waits for everything
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writer)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        nodes = _start(state.spec(), state.path)
        died: dict[str, int] = {}
        watched = [reader, 0] if lifeline else [reader]
        while True:
            for name, process in nodes.items():
                status = process.poll()
                if status is not None and name not in died:
                    died[name] = status
                    part = state.path / "died.json.part"
                    part.write_text(json.dumps(died))
                    part.rename(state.path / "died.json")
            ready, _, _ = select.select(watched, [], [])
            if 0 in ready and not os.read(0, 4096):
                break
            if reader in ready and set(os.read(reader, 4096)) - {signal.SIGCHLD}:
                break
        _stop(nodes)
        state.remove()
        if lifeline:
            state.discard_lock()


if __name__ == "__main__":
    main()
