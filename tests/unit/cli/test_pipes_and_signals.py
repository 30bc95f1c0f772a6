# SPDX-License-Identifier: GPL-2.0-or-later
"""Exit codes are true through pipes, and a signal says what is kept."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

CAPTURES = Path(__file__).parents[3] / "captures"


@pytest.mark.parametrize(
    ("capture", "words", "code"),
    [
        ("testbed-write-lat-64.pcap", [], 0),
        ("testbed-write-lat-64.pcap", ["--json"], 0),
        ("icrc-corrupted.pcap", [], 1),
    ],
)
def test_a_reader_that_has_enough(capture: str, words: list[str], code: int) -> None:
    """`rocelab analyze X | head -1` exits as without the pipe, and complains of nothing."""
    command = [sys.executable, "-m", "rocelab", "analyze", *words, str(CAPTURES / capture)]
    plain = subprocess.run(command, capture_output=True, check=False)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as analyze:
        assert analyze.stdout is not None
        analyze.stdout.close()
        assert analyze.stderr is not None
        errors = analyze.stderr.read()
    assert (analyze.returncode, errors) == (code, b"")
    assert plain.returncode == code


def test_a_signal_while_the_end_is_shown() -> None:
    """No traceback, either."""
    command = [sys.executable, "-c", SHOWS]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


# of a command that fails
SHOWS = """
import os, signal, sys
from unittest import mock
from rocelab.cli import app
sys.argv[1:] = ["report", "/none"]
with mock.patch.object(app, "_failed", lambda _: os.kill(os.getpid(), signal.SIGTERM)):
    app.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_after_the_end(number: signal.Signals) -> None:
    """The exit code is the command's."""
    command = [sys.executable, "-c", ENDED, str(number.value)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


# while Python ends
ENDED = """
import atexit, os, signal, sys
from rocelab.cli import app
sys.argv[1:], number = ["--version"], int(sys.argv[1])
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
atexit.register(os.kill, os.getpid(), number)
app.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_says_what_is_kept(number: signal.Signals) -> None:
    """Also while a command waits for its input."""
    command = [sys.executable, "-c", WAITS, str(number.value)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 130, done.stderr
    name = "Ctrl-C" if number is signal.SIGINT else number.name
    assert f"interrupted by {name}" in done.stderr
    assert "every finished cell" in done.stderr
    assert "rocelab run --resume" in done.stderr


# the signal comes while a command works: `status` is one that every machine has
WAITS = """
import os, signal, sys
from unittest import mock
from rocelab.cli import app
from rocelab.testbed.qemu.state_folder import State
sys.argv[1:], number = ["status"], int(sys.argv[1])
signal.signal(signal.SIGINT, signal.default_int_handler)
# nohup, or what starts CI, may ignore it
signal.signal(signal.SIGHUP, signal.SIG_DFL)
with mock.patch.object(State, "all", lambda: os.kill(os.getpid(), number)):
    app.main()
"""
