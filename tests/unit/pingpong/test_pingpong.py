# SPDX-License-Identifier: GPL-2.0-or-later
"""pingpong over loopback: counts, both ways of waiting, and ends that are not what they should."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from polling import wait_until
from rocelab.errors import CellError
from rocelab.plans.benchmarks.pair_tools import TOOLS
from rocelab.plans.benchmarks.tool import End, Job
from rocelab.plans.catalog import TESTS

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).parents[3] / "tools/pingpong"
COUNT, SIZE = 300, 5000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built for this machine."""
    folder = tmp_path_factory.mktemp("pingpong")
    subprocess.run(["make", "-s", "-C", SOURCES, f"O={folder}", "CFLAGS=-O2 -Werror"], check=True)
    return folder / "pingpong"


def free_port() -> str:
    """A port that nothing listens on."""
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return str(some.getsockname()[1])


@contextmanager
def server(program: Path, port: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A server that listens."""
    with subprocess.Popen(
        [program, "--port", port, *options], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_until("the server listens", lambda: listens(int(port)), seconds=30)
            yield process
        finally:
            process.kill()


def listens(port: int) -> bool:
    """Whether a socket of this machine listens on a port, which takes no connection to find out."""
    tables = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    return any(
        fields[1].endswith(f":{port:04X}") and fields[3] == "0A"
        for fields in map(str.split, tables.splitlines())
    )


def client(program: Path, port: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a client to its end."""
    return subprocess.run(
        [program, "127.0.0.1", "--port", port, *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def between(program: Path, *options: str) -> dict[str, Any]:
    """Run both ends; returns what the client printed."""
    port = free_port()
    with server(program, port) as serving:
        done = client(program, port, "-n", str(COUNT), "-s", str(SIZE), *options)
        assert (done.returncode, done.stderr) == (0, "")
        assert serving.wait(timeout=30) == 0
    said: dict[str, Any] = json.loads(done.stdout)
    assert said.pop("elapsed_ns") > 0
    return said


@pytest.mark.parametrize("wait", ["sleep", "poll"])
@pytest.mark.parametrize("operation", ["pingpong", "stream"])
def test_each_message_comes(program: Path, wait: str, operation: str) -> None:
    options = ["--poll"] * (wait == "poll") + ["--stream"] * (operation == "stream")
    assert between(program, *options) == {
        "schema": "rocelab.pingpong/1",
        "carrier": "tcp",
        "operation": operation,
        "wait": wait,
        "size": SIZE,
        "sent": COUNT,
        "received": COUNT if operation == "pingpong" else 1,
        "path_mtu": 0,
    }


def test_a_client_without_a_server(program: Path) -> None:
    done = client(program, free_port())
    assert done.returncode == 1
    assert "cannot connect to the server: Connection refused" in done.stderr


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "the client is no pingpong of this version"),
        (bytes.fromhex("50504e47 ffffffff 00000001 00000000"), "no pingpong of this version"),
        (bytes.fromhex("50504e47 00000040 00000000 00000000"), "no pingpong of this version"),
        (bytes.fromhex("50504e47 00000040 00000001 01000000"), "one end has --device"),
        (b"PPNG", "the other end closed the connection"),
        (bytes.fromhex("50504e47 00000040 00000001 00000000") + b"\7" * 64, "a message is corrupt"),
    ],
)
def test_a_stranger_at_the_server(program: Path, sent: bytes, said: str) -> None:
    port = free_port()
    with server(program, port) as serving:
        with socket.create_connection(("127.0.0.1", int(port))) as stranger:
            stranger.sendall(sent)
        assert serving.wait(timeout=30) == 1
        assert serving.stderr is not None
        assert said in serving.stderr.read()


def test_a_server_without_the_device(program: Path) -> None:
    """A client over verbs fails before it sends, where there is no such device."""
    port = free_port()
    with server(program, port, "--device", "nowhere0") as serving:
        done = client(program, port, "--device", "nowhere0")
        assert done.returncode == 1
        assert "no such verbs device can be opened" in done.stderr
        assert serving.wait(timeout=30) == 1


@pytest.mark.parametrize(
    "options",
    [
        *(["--count", "0"], ["--size", "1073741825"], ["--port", "65536"], ["--mtu", "1500"]),
        *(["--stream", "--device", "rxe0"], ["--size", "4k"], ["--timeout", "32"], ["--nonsense"]),
        ["another"],
    ],
)
def test_usage(program: Path, options: list[str]) -> None:
    done = client(program, "18600", *options)
    assert done.returncode == 2
    assert "what to do: see pingpong --help" in done.stderr


def job(test: str = "latency", **end: Any) -> Job:
    """A job of the plan tool."""
    ends = End("10.0.0.1", **end), End("10.0.0.2", **end)
    return Job(TESTS["pingpong", test], 64, 1000, 1, 18, 5001, *ends, path_mtu=1024)


OUTPUT = (
    '{"schema": "rocelab.pingpong/1", "carrier": "verbs", "operation": "pingpong", '
    '"wait": "sleep", "size": 64, "sent": 1000, "received": 1000, "path_mtu": 1024, '
    '"elapsed_ns": 40000000}'
)


def test_a_plans_figures() -> None:
    """Half a round trip, and the messages of both ends."""
    measurement = TOOLS["pingpong"].parse(job(), OUTPUT)
    (latency,) = measurement.values
    assert (latency.metric, latency.kind) == ("latency.mean", "one_way_half_rtt")
    assert (latency.value, latency.unit) == (20_000, "ns")
    assert (measurement.sent, measurement.messages, measurement.payload_bytes) == (
        2000,
        2000,
        128_000,
    )
    assert measurement.path_mtu == 1024


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (OUTPUT[:40], "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "does not have the schema rocelab.pingpong/1"),
        (OUTPUT.replace("pingpong/1", "pingpong/2"), "does not have the schema"),
        (OUTPUT.replace('"size": 64', '"size": 65'), "for other messages"),
        (OUTPUT.replace('"received": 1000', '"received": 999'), "for other messages"),
        (OUTPUT.replace("40000000", "0"), "elapsed_ns"),
        (OUTPUT.replace("40000000", '"x"'), "elapsed_ns"),
    ],
)
def test_output_that_is_refused(text: str, problem: str) -> None:
    with pytest.raises(CellError, match=problem):
        TOOLS["pingpong"].parse(job(), text)


def test_the_programs_read_a_plans_words(program: Path) -> None:
    """Each option that plans use is the program's."""
    for test in ("latency", "polled_latency"):
        over = job(test, device="rxe0", port=1, gid_index=3)
        tool = TOOLS["pingpong"]
        for argv in (tool.client(over), tool.server_argv(over)):
            done = subprocess.run(
                [program, *argv[1:], "--help"], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, (argv, done.stderr)
        assert ("--poll" in tool.client(over)) == (test == "polled_latency")
