# SPDX-License-Identifier: GPL-2.0-or-later
"""rxestat's server of metrics: whoever dawdles does not keep others out, nor do browsers get in."""

from __future__ import annotations

import http.client
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from polling import wait_until
from requirements import missing

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
CONNECTIONS = 16
"""MAX_CONNECTIONS of ebpf/rxestat/exporter.c."""
Address = tuple[str, int]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server, which waits for two seconds instead of ten."""
    if not Path("/usr/include/microhttpd.h").exists():
        missing("libmicrohttpd-dev is not installed")
    out = tmp_path_factory.mktemp("exporter")
    make = ["make", "-s", "-C", str(ROOT / "ebpf/tests"), "exporter_server", f"O={out}"]
    done = subprocess.run(make, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out / "obj/tests/exporter_server"


@pytest.fixture
def server(program: Path) -> Iterator[Address]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen(
        [str(program), f"127.0.0.1:{port}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        yield "127.0.0.1", port
        process.stdin.close()
        assert process.wait(60) == 0


def ask(server: Address, host: str | None, path: str = "/metrics") -> tuple[int, bytes]:
    """The status and the text of a request with a header Host, or without."""
    connection = http.client.HTTPConnection(*server, timeout=20)
    connection.putrequest("GET", path, skip_host=True)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read()


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "10.0.0.7:9491", "[::1]:9491", "[fe80::1]", "localhost:9491", "LocalHost", "NAME",
     "NAME:9491"],
)  # fmt: skip
def test_who_asks_by_an_address_or_our_name_is_answered(server: Address, host: str) -> None:
    assert ask(server, host.replace("NAME", socket.gethostname())) == (200, b"answered 1\n")


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:9491", "127.0.0.1.evil.example", "localhost.evil.example",
     "[::1].evil.example", "10.0.0.7:9491:evil.example", "localhostx", "", "[", "a" * 5000],
)  # fmt: skip
def test_another_name_is_refused(server: Address, host: str) -> None:
    """A page of that name has a browser ask us, and reads the answer (DNS rebinding)."""
    status, text = ask(server, host)
    assert status == 403
    assert b"answered" not in text


def test_who_trickles_keeps_nobody_out(server: Address) -> None:
    """All connections are taken by clients that send a byte now and then."""
    with ExitStack() as opened:
        slow = [opened.enter_context(socket.create_connection(server)) for _ in range(CONNECTIONS)]
        for each in slow:
            each.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
        answered = threading.Event()

        def trickle() -> None:
            while not answered.wait(0.2):
                for each in slow:
                    with suppress(OSError):
                        each.sendall(b"x")

        dawdling = threading.Thread(target=trickle)
        dawdling.start()
        try:
            wait_until("an answer", lambda: _answers(server), seconds=60, pause=0.2)
        finally:
            answered.set()
            dawdling.join()


def test_who_reads_slowly_keeps_nobody_out(server: Address) -> None:
    """Nor does one that never sends anything."""
    with ExitStack() as opened:
        slow = [opened.enter_context(socket.create_connection(server)) for _ in range(CONNECTIONS)]
        for each in slow[::2]:
            each.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
        wait_until("an answer", lambda: _answers(server), seconds=60, pause=0.2)


def _answers(server: Address) -> bool:
    with suppress(OSError, http.client.HTTPException):
        return ask(server, "localhost")[0] == 200
    return False


def test_each_request_has_its_connection(server: Address) -> None:
    """So a connection's time is a request's."""
    connection = http.client.HTTPConnection(*server, timeout=60)
    for _ in range(3):
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        assert answer.getheader("Connection", "").lower() == "close"
        assert answer.read() == b"answered 1\n"
