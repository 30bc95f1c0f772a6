# SPDX-License-Identifier: GPL-2.0-or-later
"""Where memory is limited, a command is a child of the process that the user started."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from corpus import CAPTURES
from polling import wait_until

pytestmark = pytest.mark.slow  # each starts processes and waits for them

CAPTURE = str(CAPTURES / "rc-v2-ipv4.pcap")
KEPT: list[int] = []
"""Writers of FIFOs, who never write."""
ABORTS = """
import os, sys
from unittest import mock
from rocelab.cli import app
from rocelab.testbed.qemu.state_folder import State
sys.argv[1:] = ["status"]
with mock.patch.object(State, "all", {how}):
    app.main()
"""


def limit() -> None:
    # what starts the tests may have it ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


def ended(how: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ABORTS.format(how=how)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV])
def test_a_library_that_gets_no_memory(number: signal.Signals) -> None:
    """No core dump's exit code: what it means, and what to do."""
    done = ended(f"lambda: os.kill(os.getpid(), {number.value})")
    assert done.returncode == 3, done.stderr
    assert "the limit of memory is too low" in done.stderr
    assert number.name in done.stderr
    assert "what to do: Raise it with `ulimit -v`" in done.stderr


@pytest.mark.parametrize("most", [100 << 20, 256 << 20])
def test_a_library_that_gets_no_thread(tmp_path: Path, most: int) -> None:
    """Polars waits for it, and its allocator prints gigabytes meanwhile."""

    def little() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    words = [
        sys.executable,
        "-m",
        "rocelab",
        "analyze",
        "--parquet",
        str(tmp_path / "out"),
        CAPTURE,
    ]
    with (tmp_path / "said").open("w") as said:
        code = subprocess.run(
            words,
            stdout=subprocess.DEVNULL,
            stderr=said,
            preexec_fn=little,
            timeout=60,
            check=False,
        ).returncode
    text = (tmp_path / "said").read_text()
    assert code == 0 or (code == 3 and "what to do: " in text)
    assert len(text) < 2000


def test_any_other_end_is_passed_on() -> None:
    assert ended("lambda: os.kill(os.getpid(), 9)").returncode == -signal.SIGKILL
    assert ended("lambda: []").returncode == 0


@pytest.mark.parametrize("words", [["analyze", CAPTURE], ["show", "/nonexistent"]])
def test_the_exit_code_is_the_command_s(words: list[str]) -> None:
    command = [sys.executable, "-m", "rocelab", *words]
    plain, limited = (
        subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=each)
        for each in (None, limit)
    )
    assert limited.stdout == plain.stdout
    assert limited.returncode == plain.returncode


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 143),
        (signal.SIGHUP, 129),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_a_signal_ends_both(tmp_path: Path, number: signal.Signals, code: int) -> None:
    fifo = tmp_path / "never.pcap"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [sys.executable, "-m", "rocelab", "analyze", str(fifo)],
        stderr=subprocess.PIPE,
        preexec_fn=limit,  # noqa: PLW1509 -- it only sets a limit
    )
    wait_until("the child reads the FIFO", lambda: is_read(fifo))
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    wait_until("the child has ended", lambda: not is_read(fifo))


def is_read(fifo: Path) -> bool:
    """Whether a process has it open, or waits for a writer; then it reads it from now on."""
    try:
        writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # ENXIO
        return False
    KEPT.append(writer)
    return True
