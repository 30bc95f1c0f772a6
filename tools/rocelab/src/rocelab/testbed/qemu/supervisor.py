# SPDX-License-Identifier: GPL-2.0-or-later
"""The process that owns a testbed's virtual machines: `python -m rocelab.testbed.qemu.supervisor`.

It starts one QEMU per machine. On SIGTERM it ends them all and removes the state folder. With
`--lifeline` it also does so when its standard input closes, which happens however rocelab ends,
even by a crash or SIGKILL. If the supervisor itself is killed, the kernel kills the QEMUs
(PR_SET_PDEATHSIG), and the next rocelab command removes the folder. A machine with a snapshot is
restored: it then stands still, and its decompressor's exit status is in the folder.
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
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from rocelab import accelerators
from rocelab.testbed.qemu.machine_spec import NOBODY, NodeSpec, TestbedSpec, qemu_argv, streams
from rocelab.testbed.qemu.snapshot_cache import DECOMPRESS
from rocelab.testbed.qemu.state_folder import State

Processes = dict[str, subprocess.Popen[bytes]]


def _start(spec: TestbedSpec, state: Path) -> tuple[Processes, Processes]:
    """Start each machine's QEMU, and the decompressor of its snapshot if it has one."""
    nodes: Processes = {}
    loaders: Processes = {}
    with ExitStack() as descriptors:
        ends: dict[str, dict[str, int]] = {node.name: {} for node in spec.machines}
        for stream in streams(spec):
            for (machine, netdev), end in zip(stream, socket.socketpair(), strict=True):
                if machine == NOBODY:
                    end.detach()  # open as long as this process: a link that is closed is down
                else:
                    ends[machine][netdev] = descriptors.enter_context(end).fileno()
        for node in spec.machines:
            inherited = list(ends[node.name].values())
            snapshot = None
            if node.snapshot:
                loaders[node.name] = loader = _load(Path(node.snapshot))
                snapshot = descriptors.enter_context(_stdout(loader)).fileno()
                inherited.append(snapshot)
            argv = qemu_argv(spec, node, state, ends[node.name], snapshot)
            with (state / f"{node.name}.qemu").open("wb") as log:
                nodes[node.name] = subprocess.Popen(
                    ["setpriv", "--pdeathsig", "KILL", "--", *processor(spec, node), *argv],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=state,
                    pass_fds=inherited,
                )
    return nodes, loaders


def processor(spec: TestbedSpec, node: NodeSpec) -> tuple[str, ...]:
    """Return the command that keeps an emulated machine on one of the host's processors.

    Each timer and each frame wakes another thread of its QEMU. On another processor, that takes an
    interrupt, and which of the two is first changes what is counted. A machine alone may use all.
    """
    counts = accelerators.of(spec.accelerator).counts_instructions
    if not counts or len(spec.nodes) < 2:
        return ()
    allowed = sorted(os.sched_getaffinity(0))
    first = zlib.crc32(spec.name.encode())  # other testbeds begin elsewhere
    return ("taskset", "--cpu-list", str(allowed[(first + node.index) % len(allowed)]))


def _load(snapshot: Path) -> subprocess.Popen[bytes]:
    # if somebody has just emptied the cache, rocelab sees that nothing was read
    with (snapshot if snapshot.exists() else Path(os.devnull)).open("rb") as file:
        return subprocess.Popen(
            DECOMPRESS, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )


def _stdout(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout


def _stop(nodes: Processes) -> None:
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
        nodes, loaders = _start(state.spec(), state.path)
        died: dict[str, int] = {}
        watched = [reader, 0] if lifeline else [reader]
        while True:
            for name, loader in loaders.items():
                if (status := loader.poll()) is not None:
                    state.mark_loaded(name, status)
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
        _stop({**nodes, **{f"{name} load": loader for name, loader in loaders.items()}})
        state.remove()
        if lifeline:
            state.discard_lock()


if __name__ == "__main__":
    main()
