# SPDX-License-Identifier: GPL-2.0-or-later
"""A real Prometheus that scrapes what a test shows it."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from requirements import missing

BIN = Path(__file__).resolve().parents[2] / "build/prometheus/usr/bin"
"""`make prometheus`."""
PATIENCE_S = 120


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`."""
    if not (BIN / name).exists():
        missing(f"there is no {BIN / name}: make prometheus")
    return str(BIN / name)


def promtool_check(text: str) -> None:
    """`promtool check metrics` finds no fault, not even in style."""
    done = subprocess.run(
        [program("promtool"), "check", "metrics"],
        check=False,
        input=text,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@dataclass
class Target:
    """What Prometheus gets when it scrapes."""

    text: str = ""
    media_type: str = ""
    accepted: list[str] = field(default_factory=list)

    def handler(target) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        """Serve it."""

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                target.accepted.append(self.headers["Accept"])
                body = target.text.encode()
                self.send_response(200)
                self.send_header("Content-Type", target.media_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        return Handler


@dataclass
class Prometheus:
    """A server, and the target that it scrapes once a second."""

    url: str
    target: Target

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the vector of an expression now."""
        query = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{query}", timeout=30) as answer:
            document = json.load(answer)
        assert document["status"] == "success", document
        result: list[dict[str, Any]] = document["data"]["result"]
        return result

    def value(self, expression: str) -> float:
        """Return the only value of an expression."""
        (sample,) = self.query(expression)
        return float(sample["value"][1])

    def wait(self, expression: str) -> None:
        """Wait until an expression has a value."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.query(expression):
            assert time.monotonic() < deadline, f"{expression}: {self.query('up')}"
            time.sleep(0.2)

    def show(self, text: str, media_type: str) -> None:
        """Let it scrape this from now on."""
        self.target.text, self.target.media_type = text, media_type


@contextmanager
def prometheus(folder: Path) -> Iterator[Prometheus]:
    """Run it on this machine's loopback, with its data in the folder."""
    target = Target()
    relay = ThreadingHTTPServer(("127.0.0.1", 0), target.handler())
    Thread(target=relay.serve_forever, daemon=True).start()
    config = folder / "prometheus.yml"
    config.write_text(
        "scrape_configs:\n  - job_name: rxe\n    scrape_interval: 1s\n    static_configs:\n"
        f"      - targets: ['127.0.0.1:{relay.server_port}']\n"
    )
    listen = f"127.0.0.1:{_free_port()}"
    command = [
        program("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={listen}",
    ]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_until_ready(f"http://{listen}", process, folder / "prometheus.log")
        yield Prometheus(f"http://{listen}", target)
    finally:
        process.terminate()
        process.wait(timeout=60)
        relay.shutdown()
        relay.server_close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=5):
                return
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
