# SPDX-License-Identifier: GPL-2.0-or-later
"""Exit codes are true through pipes, and a signal says what is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rocelab import capture

pytestmark = pytest.mark.slow  # each starts processes and waits for them

CAPTURES = Path(__file__).parents[3] / "captures"


@pytest.mark.parametrize(
    ("name", "words", "code"),
    [
        ("testbed-write-lat-64.pcap", [], 0),
        ("testbed-write-lat-64.pcap", ["--json"], 0),
        ("icrc-corrupted.pcap", [], 1),
    ],
)
def test_a_reader_that_has_enough(name: str, words: list[str], code: int) -> None:
    """`rocelab analyze X | head -1` exits as without the pipe, and complains of nothing."""
    command = [sys.executable, "-m", "rocelab", "analyze", *words, str(CAPTURES / name)]
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
    assert done.returncode == 143
    assert "Traceback" not in done.stderr


# of a command that fails
SHOWS = """
import os, signal, sys
from unittest import mock
from rocelab.cli import app
sys.argv[1:] = ["report", "/none"]
with mock.patch.object(app, "_show_error", lambda _: os.kill(os.getpid(), signal.SIGTERM)):
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
    # as a shell says: 128 and the signal
    assert done.returncode == 128 + number, done.stderr
    name = "Ctrl-C" if number is signal.SIGINT else number.name
    assert f"interrupted by {name}" in done.stderr
    assert "every finished cell" in done.stderr
    assert "rocelab run --resume" in done.stderr


def test_a_signal_in_a_callback_is_not_lost() -> None:
    """Python prints and forgets what a weak reference's callback raises."""
    command = [sys.executable, "-c", IN_A_CALLBACK]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 143, done.stderr
    assert done.stderr.count("interrupted by SIGTERM") == 1
    assert "Traceback" not in done.stderr


IN_A_CALLBACK = """
import os, signal, sys, time, weakref
from unittest import mock
from rocelab.cli import app
from rocelab.testbed.qemu.state_folder import State
sys.argv[1:] = ["status"]
class Thing: pass
def drop():
    thing = Thing()
    kept = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGTERM))
    del thing
    while True:
        time.sleep(1)
with mock.patch.object(State, "all", drop):
    app.main()
"""


def test_a_library_s_error_is_no_bug_if_a_signal_made_it() -> None:
    command = [sys.executable, "-c", IN_A_LIBRARY]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 143, done.stderr
    assert done.stderr.count("interrupted by SIGTERM") == 1
    assert "internal error" not in done.stderr


IN_A_LIBRARY = """
import os, signal, sys
from unittest import mock
from rocelab.cli import app
from rocelab.testbed.qemu.state_folder import State
sys.argv[1:] = ["status"]
def fails():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except KeyboardInterrupt:
        raise RuntimeError("what a library says")
with mock.patch.object(State, "all", fails):
    app.main()
"""


def test_an_exit_code_of_130_is_no_interruption() -> None:
    """A command that `exec` ran may have it."""
    command = [sys.executable, "-c", RETURNS]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (130, "")


RETURNS = """
import sys
from unittest import mock
from click.exceptions import Exit
from rocelab.cli import app
from rocelab.testbed.qemu.state_folder import State
sys.argv[1:] = ["status"]
with mock.patch.object(State, "all", side_effect=Exit(130)):
    app.main()
"""


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


# the signal comes while a file is read
READS = """
import os, signal, sys
from rocelab.capture import analysis
from rocelab.cli import app
path, number = sys.argv[1], int(sys.argv[2])
sys.argv[1:] = ["analyze", *sys.argv[3:], path]
signal.signal(signal.SIGINT, signal.default_int_handler)
opened = analysis.open_core

class Core:
    def __init__(self, *words, **named):
        self.core, self.steps = opened(*words, **named), 0

    def __getattr__(self, name):
        return getattr(self.core, name)

    def step(self):
        self.steps += 1
        if self.steps == 2:
            os.kill(os.getpid(), number)
        return self.core.step()

analysis.open_core = Core
app.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_shows_the_first_results_of_a_file(number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "long.pcap"
    body = (CAPTURES / "case-adaptive-routing.pcap").read_bytes()
    path.write_bytes(body[:24] + body[24:] * 1000)

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", READS, str(path), str(number.value), *options]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)

    done = run("--json")
    assert done.returncode == 128 + number, done.stderr
    by = "Ctrl-C" if number is signal.SIGINT else "SIGTERM"
    assert done.stderr.startswith(f"rocelab: interrupted by {by}\n")
    assert "the results above, of what was read" in done.stderr
    document = json.loads(done.stdout)
    assert document["conditions"][0]["kind"] == "interrupted"
    whole = capture.analyze([str(path)]).result["input"]["packets"]
    assert 0 < document["input"]["packets"] < whole
    page = tmp_path / "page.html"
    done = run("--html", str(page))
    assert done.returncode == 128 + number
    assert "interrupted: " in done.stdout
    assert not page.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("has_writer", [False, True])
def test_a_signal_ends_the_wait_for_a_pipe(
    tmp_path: Path, number: signal.Signals, has_writer: bool
) -> None:
    """Without a writer, and with one that writes nothing."""
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    command = [sys.executable, "-c", WAITS_FOR_A_PIPE, str(fifo)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        # handlers are in place
        process.stdout.readline()
        writer = os.open(fifo, os.O_RDWR) if has_writer else -1
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    if has_writer:
        os.close(writer)
    assert process.returncode == 128 + number, said
    assert said.count(b"interrupted by ") == 1


WAITS_FOR_A_PIPE = """
import signal, sys
from rocelab.capture import analysis
from rocelab.cli import app
sys.argv[1:] = ["analyze", *sys.argv[1:]]
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
opened = analysis.open_core

def begins(*words, **named):
    print("opens", flush=True)
    return opened(*words, **named)

analysis.open_core = begins
app.main()
"""


def test_a_signal_ends_a_script_that_reads_a_file() -> None:
    """In Python it stays an exception: half a result would look like the whole."""
    path = CAPTURES / "testbed-write-lat-64.pcap"

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        capture.analyze([str(path)], progress=interrupt)


_AFTER_WRITING = """
import signal, sys
from rocelab.cli import interruption
from rocelab.terminal import streams

interruption.install()
streams.install()
told = []

def interrupt(frame, event, called):
    inside = event == "c_return" and frame.f_code.co_filename.endswith("streams.py")
    if inside and called.__name__ == "write" and not told:
        told.append(True)
        signal.raise_signal(signal.SIGINT)

print("one line")
sys.setprofile(interrupt)
try:
    sys.stdout.flush()
    sys.setprofile(None)
    while True:
        signal.pause()
except KeyboardInterrupt:
    sys.setprofile(None)
assert told
"""


def test_what_is_written_when_a_signal_comes_is_written_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _AFTER_WRITING],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "one line\n", "")


_IN_EXEC = """
import sys
from rocelab.cli import interruption

try:
    exec("raise KeyboardInterrupt")
except KeyboardInterrupt:
    interruption.ignore()
    sys.exit(143)
"""


def test_a_signal_while_a_class_is_made() -> None:
    """Python does not end by SIGINT because of it."""
    done = subprocess.run([sys.executable, "-c", _IN_EXEC], check=False)
    assert done.returncode == 143


_AT_EACH_INSTRUCTION = """
import dis, gc, os, signal, sys
from rocelab.cli import app, interruption
from rocelab.terminal import console
from rocelab.testbed.slurm import allocation

sys.argv = ["rocelab", "no-command"]
console.say("what a print imports is here before the forks")
gc.freeze()
FILES = (app.__file__, interruption.__file__)

def interrupt_at(wanted):
    passed = 0
    def trace(frame, event, _):
        nonlocal passed
        if frame.f_code.co_filename not in FILES:
            return None
        frame.f_trace_opcodes = True
        ready = signal.getsignal(signal.SIGHUP) not in (signal.SIG_DFL, signal.SIG_IGN)
        # Python looks for signals at calls and jumps, never at a NOP, which no `try` covers
        nop = frame.f_code.co_code[frame.f_lasti] == dis.opmap["NOP"]
        passed += event == "opcode" and ready and not nop
        if passed == wanted:
            passed += 1
            signal.raise_signal(signal.SIGHUP)
        return trace
    return trace

for wanted in range(1, 2000):
    said = os.memfd_create("said")
    pid = os.fork()
    if not pid:
        os.dup2(said, 1)
        os.dup2(said, 2)
        sys.settrace(interrupt_at(wanted))
        app.main()
        os._exit(99)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    text = os.pread(said, 1 << 16, 0).decode()
    os.close(said)
    if "interrupted by SIGHUP" not in text and code == 2:
        break
    if (code, text.count("interrupted by SIGHUP")) not in ((129, 1), (2, 0)):
        print(wanted, code, text)
print(wanted)
"""


def test_a_signal_at_any_instruction_of_the_command() -> None:
    """Once its handlers are there, it is named once, unless the command has already ended."""
    done = subprocess.run(
        [sys.executable, "-c", _AT_EACH_INSTRUCTION], capture_output=True, text=True, check=True
    )
    *faults, moments = done.stdout.splitlines()
    assert faults == []
    assert 50 < int(moments) < 1000


_WHILE_PRINTING = """
import dis, gc, os, sys
import rich.console
from rocelab.terminal import console

console.say("what a print imports is here before the forks")
gc.freeze()

class Interrupt:
    def __init__(self, wanted):
        self.left = wanted
    def __call__(self, frame, event, _):
        if frame.f_code.co_filename != rich.console.__file__:
            return None
        frame.f_trace_opcodes = True
        nop = frame.f_code.co_code[frame.f_lasti] == dis.opmap["NOP"]
        self.left -= event == "opcode" and not nop
        if event == "opcode" and self.left == 0:
            raise KeyboardInterrupt
        return self

wanted = interrupted = 1
while interrupted:
    said, told = os.memfd_create("said"), os.memfd_create("told")
    pid = os.fork()
    if not pid:
        os.dup2(said, 2)
        try:
            sys.settrace(Interrupt(wanted))
            console.say("progress")
        except KeyboardInterrupt:
            sys.settrace(None)
            os.write(told, b"x")
            console.show_interruption("SIGHUP")
        os._exit(0)
    os.waitpid(pid, 0)
    interrupted = os.fstat(told).st_size
    if interrupted and b"interrupted by SIGHUP" not in os.pread(said, 1 << 16, 0):
        print(wanted)
    os.close(said), os.close(told)
    wanted += 1
print(wanted)
"""


def test_a_signal_in_the_middle_of_a_message() -> None:
    """The message about it is printed, although the console was left in the middle of a print."""
    done = subprocess.run(
        [sys.executable, "-c", _WHILE_PRINTING], capture_output=True, text=True, check=True
    )
    *faults, moments = done.stdout.splitlines()
    assert faults == []
    assert int(moments) > 100
