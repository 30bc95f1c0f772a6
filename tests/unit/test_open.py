# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab.open` gives what the command prints, and its how-to and notebook run as they stand."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rocelab
from corpus import CAPTURES
from rocelab.errors import UsageError

pytestmark = pytest.mark.slow

_TOP = CAPTURES.parent
_CAPTURE = CAPTURES / "fault-drop-before.pcap"


def _printed(*words: str | Path) -> str:
    command = [sys.executable, "-m", "rocelab", "analyze", *map(str, words)]
    # as wide as a capture in Python prints itself
    environment = {**os.environ, "COLUMNS": "110"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return ended.stdout


def test_it_gives_what_the_command_prints() -> None:
    opened = rocelab.open(_CAPTURE)
    assert json.loads(json.dumps(opened.result)) == json.loads(_printed("--json", _CAPTURE))
    assert str(opened).split() == _printed(_CAPTURE).split()
    assert opened.connections.write_csv() == _printed("--csv", _CAPTURE)
    assert opened.findings.height == len(opened.result["findings"])
    assert opened.packets.height == opened.result["roce"]["packets"]
    assert opened.messages.height > 0


def test_options_are_those_of_the_command() -> None:
    other = rocelab.open(_CAPTURE, filter="addr=192.0.2.0/24")
    assert other.result["roce"]["packets"] == 0
    assert rocelab.open(CAPTURES / "icrc-dscp.pcap").errors == 1
    assert rocelab.open(CAPTURES / "icrc-dscp.pcap", icrc=False).errors == 0
    with pytest.raises(UsageError, match="filter"):
        rocelab.open(_CAPTURE, filter="nonsense")
    with pytest.raises(UsageError):
        rocelab.open(_TOP / "no-such-capture.pcap")


def test_the_how_to_runs_as_it_stands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = (_TOP / "docs/howto/python.md").read_text()
    code = "\n".join(
        line.removeprefix("    ") for line in text.splitlines() if line.startswith("    ")
    )
    (tmp_path / "captures").symlink_to(CAPTURES)
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "python.md", "exec"), {})
    assert "connections" in printed.getvalue()
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_the_notebook_runs_as_it_stands() -> None:
    """In a separate process, because the kernel's libraries emit warnings."""
    script = (
        "import sys, nbformat, nbclient\n"
        "book = nbformat.read(sys.argv[1], as_version=4)\n"
        "nbclient.NotebookClient(book, timeout=300).execute(cwd=sys.argv[2])\n"
        "print(sum(len(cell.get('outputs', [])) for cell in book.cells))\n"
    )
    command = [sys.executable, "-c", script, str(_TOP / "docs/analyze.ipynb"), str(_TOP)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 4
