# SPDX-License-Identifier: GPL-2.0-or-later
"""Signals reach the server's process through a shell that waits, and no other process."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from polling import wait_until
from rocelab.errors import TestbedError
from rocelab.testbed.faults.server_process import Server, signals
from rocelab.testbed.node import Process, local

PROGRAM = "a_server"


@contextmanager
def running(folder: Path, device: str) -> Iterator[Process]:
    """Run a process of that program which names a device and waits."""
    program = folder / PROGRAM
    if not program.exists():
        shutil.copy("/bin/sh", program)
    node = local.machine()
    process = node.start((str(program), "-c", "echo ready; sleep 60; :", device))
    try:
        process.wait_for_line("ready", timeout=30)
        yield process
    finally:
        process.kill()


def state(device: str) -> str:
    """The state of the process that names a device; nothing without one."""
    done = subprocess.run(
        ("ps", "-ww", "-o", "stat=", "-o", "args=", "-C", PROGRAM),
        capture_output=True,
        text=True,
        check=False,
    )
    states = [line[0] for line in done.stdout.splitlines() if line.split()[-1] == device]
    return states[0] if states else ""


def test_only_the_process_that_names_the_device_gets_signals(tmp_path: Path) -> None:
    server = Server(local.machine(), PROGRAM, "rxe_b")
    with (
        running(tmp_path, "rxe_a"),
        running(tmp_path, "rxe_b"),
        signals(server) as waiting,
    ):
        waiting.send("STOP")
        wait_until("it stands still", lambda: state("rxe_b") == "T", seconds=60)
        waiting.send("CONT")
        wait_until("it goes on", lambda: state("rxe_b") == "S", seconds=60)
        waiting.send("KILL")
        assert state("rxe_b") in ("", "Z"), "the signal had not worked yet"
        assert state("rxe_a") == "S"


def test_a_server_that_has_ended_is_an_error(tmp_path: Path) -> None:
    del tmp_path
    with signals(Server(local.machine(), PROGRAM, "rxe_c")) as waiting:
        waiting.send("CONT")  # it need not go on
        with pytest.raises(TestbedError, match=f"no process {PROGRAM} on here could get SIGKILL"):
            waiting.send("KILL")


def test_a_shell_that_was_killed_is_an_error() -> None:
    with signals(Server(local.machine(), PROGRAM, "rxe_d")) as waiting:
        waiting._shell.kill()
        with pytest.raises(TestbedError, match="ended"):
            waiting.send("STOP")
