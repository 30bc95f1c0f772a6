# SPDX-License-Identifier: GPL-2.0-or-later
"""Time limits do not count the time for which a process was stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rocelab.testbed.node import awake

pytestmark = pytest.mark.slow
PROGRAM = """
import subprocess, sys
from rocelab.testbed.node import awake
try:
    argv = ["sh", "-c", "touch $0; sleep 8; cat", sys.argv[1]]
    print(awake.run(argv, stdin=b"kept", seconds=6).stdout.decode())
except subprocess.TimeoutExpired:
    print("expired")
"""


def test_a_stop_does_not_count(tmp_path: Path) -> None:
    """Of the command's 8 seconds, 6 pass while nobody watches; at most two of them count."""
    began = tmp_path / "began"
    argv = [sys.executable, "-c", PROGRAM, str(began)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        while not began.exists():
            assert process.poll() is None
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(6)
        os.kill(process.pid, signal.SIGCONT)
        assert process.communicate(timeout=60)[0] == "kept\n"


def test_a_limit_holds() -> None:
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        awake.run(["sleep", "60"], stdin=b"", seconds=1.5)
    assert 1.5 <= time.monotonic() - began < 30


def test_what_goes_in_and_comes_out() -> None:
    """More than a pipe holds, over several slices, and the exit status."""
    data = os.urandom(1 << 20)
    slow = "sleep 1.2; cat; echo error >&2; exit 3"
    done = awake.run(["sh", "-c", slow], stdin=data, seconds=30)
    assert (done.stdout, done.stderr, done.returncode) == (data, b"error\n", 3)


def test_waiting() -> None:
    with subprocess.Popen(["sleep", "1.2"], text=True) as process:
        assert awake.wait(process, 30) == 0
    with subprocess.Popen(["sleep", "60"], text=True) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            awake.wait(process, 0.2)
        process.kill()
