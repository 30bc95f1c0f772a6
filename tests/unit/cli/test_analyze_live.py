# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab analyze --live` on a real interface: the loopback of a network namespace."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from corpus import frames
from polling import wait_until
from requirements import missing, need_program
from rocelab.cli.analyze import analyze
from rocelab.errors import ExitCode, MissingError, UsageError

pytestmark = pytest.mark.slow

_LIMIT_S = 90
_UDP_PAYLOAD = 14 + 20 + 8
_IN_OWN_NETWORK = ("unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
_SEND = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
    udp.bind(("127.0.0.1", 4792))
    for packet in sys.argv[1:]:
        udp.sendto(bytes.fromhex(packet), ("127.0.0.1", 4791))
"""


def _send_packets(process: subprocess.Popen[bytes], count: int = 20) -> None:
    """Send SENDs of one connection to port 4791 of the process's namespace."""
    wires = (frames.transport("RC_SEND_ONLY", 7, psn, b"", bytes(100)) for psn in range(count))
    packets = [frames.frame(frames.Net(), "a", wire)[_UDP_PAYLOAD:].hex() for wire in wires]
    target = ("nsenter", "-t", str(process.pid), "-n")
    subprocess.run([*target, sys.executable, "-c", _SEND, *packets], check=True)


def _has_loopback(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has come to its namespace, and the loopback there is up."""
    if os.readlink(f"/proc/{process.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
        return False
    show = ("nsenter", "-t", str(process.pid), "-n", "ip", "-o", "link", "show", "lo", "up")
    return bool(subprocess.run(show, capture_output=True, check=False).stdout)


@contextmanager
def _live(*words: str, stdout: int, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command in a new network namespace."""
    need_program("dumpcap")
    if subprocess.run(["unshare", "-n", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        missing("root, for a network namespace")
    command = (sys.executable, "-m", "rocelab", "analyze", "--live", "lo", "--no-icrc")
    with subprocess.Popen(
        [*_IN_OWN_NETWORK, *command, *words],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=os.environ | more,
    ) as process:
        try:
            wait_until("loopback is up", lambda: _has_loopback(process), seconds=_LIMIT_S)
            yield process
        finally:
            process.kill()


def _read_until(descriptor: int, process: subprocess.Popen[bytes], wanted: bytes) -> bytes:
    """What comes from the descriptor until `wanted`; packets are sent all the time."""
    text = b""
    deadline = time.monotonic() + _LIMIT_S
    while wanted not in text:
        assert time.monotonic() < deadline, text
        if process.poll() is not None:
            raise AssertionError((text, process.stderr and process.stderr.read()))
        if select.select([descriptor], [], [], 0.2)[0]:
            text += os.read(descriptor, 1 << 16)
        else:
            _send_packets(process)
    return text


def _rest(descriptor: int) -> bytes:
    parts = []
    try:
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
    except OSError:
        pass  # a terminal that nobody writes to any more
    return b"".join(parts)


def test_a_pipe_gets_a_line_for_each_look_and_the_results_at_the_end() -> None:
    with _live(stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        seen = _read_until(process.stdout.fileno(), process, b"1 connection, ")
        process.send_signal(signal.SIGINT)
        seen += process.stdout.read()
        assert process.wait(_LIMIT_S) == ExitCode.OK
    assert b"\x1b" not in seen
    assert b"Gbit/s" in seen
    # the summary of `rocelab analyze`
    assert b"\ncapture " in seen
    assert b"RC_SEND_ONLY" in seen


def test_json_comes_alone_on_standard_output() -> None:
    with _live("--json", stdout=subprocess.PIPE) as process:
        assert process.stderr is not None
        _read_until(process.stderr.fileno(), process, b"1 connection, ")
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        result = json.loads(process.stdout.read())
        assert process.wait(_LIMIT_S) == ExitCode.OK
    assert result["input"]["files"] == ["lo"]
    (connection,) = result["connections"]
    assert connection["a"]["address"] == "127.0.0.1"
    assert connection["b"]["qpn"] == 7
    # each packet to the loopback is seen once, and none is lost
    assert connection["directions"][0]["packets"] == result["roce"]["packets"] >= 20


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_a_terminal_gets_a_table_that_renews_itself(term: str) -> None:
    ours, theirs = pty.openpty()
    with _live(stdout=theirs, TERM=term, COLUMNS="120", LINES="30", NO_COLOR="") as process:
        os.close(theirs)
        seen = _read_until(ours, process, b"1 connection, ")
        if term == "xterm":
            seen += _read_until(ours, process, b"127.0.0.1")
        process.send_signal(signal.SIGINT)
        seen += _rest(ours)
        assert process.wait(_LIMIT_S) == ExitCode.OK
    os.close(ours)
    # the cursor goes up over the last table
    assert (b"\x1b[1A" in seen) == (term == "xterm")
    assert b"RC_SEND_ONLY" in seen


def test_what_an_interface_cannot_give_is_refused() -> None:
    def error(*words: str) -> BaseException | None:
        return CliRunner().invoke(analyze, list(words)).exception

    for words in (
        ("--live", "no-such-if"), ("--live", "lo", "x.pcap"), ("--live", "-"),
        ("--live", "TCP@127.0.0.1:1"), ("--live", "lo", "--parquet", "out"), (),
    ):  # fmt: skip
        assert isinstance(error(*words), UsageError), words


def test_a_capture_program_that_fails_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("bin")
    program = folder / "dumpcap"
    program.write_text("#!/bin/sh\necho 'You are not allowed' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    result = CliRunner().invoke(analyze, ["--live", "lo"])
    assert isinstance(result.exception, MissingError)
    assert "not allowed" in result.exception.cause
    monkeypatch.setenv("PATH", str(folder.parent))
    assert isinstance(CliRunner().invoke(analyze, ["--live", "lo"]).exception, MissingError)
