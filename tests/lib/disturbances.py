# SPDX-License-Identifier: GPL-2.0-or-later
"""What can happen to a run from outside: its disk, clock, machines and network."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from requirements import missing, need_program
from rocelab.testbed.node import Node
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rocelab.testbed.qemu.qmp import execute


def qemu_of(testbed: QemuTestbed, name: str) -> int:
    """PID of the QEMU that is machine `name` of a testbed of ours."""
    mark = f"rocelab-{testbed.spec.name}-{name}".encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].startswith(b"qemu-system") and mark in words:
            return int(path.parent.name)
    raise AssertionError(f"no QEMU of {name}")


@contextmanager
def cut(testbed: QemuTestbed, name: str, link: str) -> Iterator[None]:
    """Take the cable of a machine's card out: `data` or `ctl`."""
    qmp = testbed.state.path / f"{name}.qmp"
    execute(qmp, "set_link", {"name": link, "up": False})
    try:
        yield
    finally:
        execute(qmp, "set_link", {"name": link, "up": True})


def suspend(pids: Iterable[int], *, seconds: float) -> None:
    """Stop processes together for a while, as when their machine sleeps."""
    stopped = []
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
            stopped.append(pid)
        time.sleep(seconds)  # the disturbance itself, not a wait for something
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


@contextmanager
def no_watchdogs(nodes: Sequence[Node]) -> Iterator[None]:
    """Let machines be stopped for longer than their kernels accept of a processor.

    Only with KVM does a guest's kernel learn that its machine was stopped.
    """

    def watch(number: int) -> None:
        for node in nodes:
            soft = f"echo {number} >/proc/sys/kernel/soft_watchdog"
            rcu = f"echo {1 - number} >/sys/module/rcupdate/parameters/rcu_cpu_stall_suppress"
            node.root.run(("sh", "-c", f"{soft}; {rcu}"))

    watch(0)
    try:
        yield
    finally:
        watch(1)


@contextmanager
def small_disk(at: Path, *, megabytes: int) -> Iterator[Path]:
    """Mount a separate file system; the test is skipped where that is not allowed."""
    at.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "rocelab-test", str(at))
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        missing(f"cannot mount a file system: {done.stderr.strip()}")
    try:
        yield at
    finally:
        subprocess.run(("umount", "--lazy", str(at)), check=True)


@contextmanager
def fill(disk: Path) -> Iterator[None]:
    """Take all of a disk's free space meanwhile."""
    filler = disk / "filler"
    try:
        with filler.open("wb") as file:
            block = bytes(1 << 16)
            try:
                while True:
                    os.write(file.fileno(), block)
            except OSError:
                pass
        yield
    finally:
        filler.unlink()


class WallClock:
    """The time of day as programs with `environment` see it; it can be set while they run."""

    def __init__(self, folder: Path) -> None:
        need_program("gcc")
        library = folder / "wall_clock.so"
        source = Path(__file__).with_name("wall_clock.c")
        build = ("gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(library))
        subprocess.run((*build, str(source)), check=True)
        self._offset = folder / "offset"
        self._offset.write_bytes(bytes(8))
        self.environment = {"LD_PRELOAD": str(library), "WALL_CLOCK_OFFSET": str(self._offset)}

    def shift(self, seconds: int) -> None:
        """Move the clock to this distance from the true time; it steps at once."""
        with self._offset.open("r+b") as file:
            file.write(seconds.to_bytes(8, sys.byteorder, signed=True))

    def now(self) -> float:
        """The time of day that a program reads, in seconds."""
        done = subprocess.run(
            ("date", "+%s"),
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout)
