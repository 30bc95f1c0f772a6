# SPDX-License-Identifier: GPL-2.0-or-later
"""Test an RDMA program between nodes with pytest: `pytest_plugins = ["rocelab.testing"]`.

The fixtures are `nodes`, `exec` and `capture` (docs/howto/ci.md).
"""

from __future__ import annotations

import io
import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from rocelab import own_process
from rocelab.record import layout

__all__ = ["Nodes", "assert_no_findings", "capture", "exec_", "nodes"]

_ORDER = ("note", "warning", "error")


@dataclass(frozen=True)
class Nodes:
    """The nodes of a testbed that is up."""

    name: str
    """As of `rocelab up --name`."""

    def words(
        self,
        *argv: str,
        server: str | Sequence[str] | None = None,
        capture: Path | None = None,
        options: Sequence[str] = (),
    ) -> list[str]:
        """Return the command line that `exec` runs."""
        own = [*own_process.command(), "exec", "--name", self.name]
        if server is not None:
            own += ["--server", server if isinstance(server, str) else shlex.join(server)]
        if capture is not None:
            own += ["--capture", str(capture)]
        return [*own, *options, "--", *argv]

    def exec(
        self,
        *argv: str,
        server: str | Sequence[str] | None = None,
        capture: Path | None = None,
        options: Sequence[str] = (),
        stdin: bytes = b"",
        timeout: float = 600,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command on the first node, after a server on the second if there is one.

        `options` are others of `rocelab exec`, `cwd` the folder that it copies. The status is the
        command's. Raises subprocess.TimeoutExpired.
        """
        return subprocess.run(
            self.words(*argv, server=server, capture=capture, options=options),
            input=stdin,
            capture_output=True,
            timeout=timeout,
            check=False,
            cwd=cwd,
        )


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    """Two nodes for the whole session: those that ROCELAB_TESTBED names, or new ones."""
    if named := os.environ.get("ROCELAB_TESTBED"):
        yield Nodes(named)
        return
    name = f"pytest-{os.getpid()}"
    own = own_process.command()
    done = subprocess.run(
        [*own, "up", "--name", name], capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        pytest.fail(f"no nodes came up\n{done.stderr}", pytrace=False)
    try:
        yield Nodes(name)
    finally:
        subprocess.run([*own, "down", "--name", name], capture_output=True, check=False)


@pytest.fixture(name="exec")
def exec_(nodes: Nodes) -> object:
    """`Nodes.exec` of the session's nodes."""
    return nodes.exec


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A place for a capture, for `exec` and `assert_no_findings`."""
    return tmp_path / layout.WIRE_CAPTURE


def assert_no_findings(
    capture: Path, *, least: Literal["note", "warning", "error"] = "warning"
) -> None:
    """Assert that the analyzer finds nothing in a capture, and that it has RoCE packets at all.

    Findings of less than `least` do not count. Raises UsageError for a file that is no capture.
    """
    __tracebackhide__ = True
    # only a test that captures needs them
    from rich.console import Console

    from rocelab.capture import analyze
    from rocelab.terminal import capture_tables

    result = analyze([str(capture)]).result
    if not result["roce"]["packets"]:
        raise AssertionError(f"{capture} has no packet of RoCE, so it shows nothing")
    severe = _ORDER[_ORDER.index(least) :]
    if any(row["count"] for row in result["finding_counts"] if row["severity"] in severe):
        text = io.StringIO()
        Console(file=text, width=100, color_system=None).print(capture_tables.findings(result))
        raise AssertionError(f"in {capture}:\n{text.getvalue()}")
