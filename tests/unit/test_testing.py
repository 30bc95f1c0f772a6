# SPDX-License-Identifier: GPL-2.0-or-later
"""The pytest plugin for users' programs, up to `rocelab exec`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rocelab.errors import UsageError
from rocelab.testing import Nodes, assert_no_findings

CAPTURES = Path(__file__).parents[2] / "captures"

_MODULE = """
from rocelab.testing import Nodes

def test_mine(nodes, exec, capture):
    assert nodes == Nodes("mine")
    words = nodes.words("a b", "-v", server=["s", "x y"], capture=capture, options=["--rw"])
    assert words[4:7] == ["exec", "--name", "mine"]
    assert words[7:9] == ["--server", "s 'x y'"]
    assert words[9:] == ["--capture", str(capture), "--rw", "--", "a b", "-v"]
    done = exec("true", options=["--on", "n0"])
    assert (done.returncode, done.stdout) == (2, b""), done
    assert b"names no nodes" in done.stderr
"""


@pytest.mark.slow
def test_the_fixtures_of_a_users_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["rocelab.testing"]\n')
    (tmp_path / "test_mine.py").write_text(_MODULE)
    monkeypatch.setenv("ROCELAB_TESTBED", "mine")
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, *words, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_folder_that_is_copied_has_no_module_of_ours(tmp_path: Path) -> None:
    """`python -m` takes what it imports from the current folder first."""
    (tmp_path / "rocelab").mkdir()
    for name in ("rocelab/__init__.py", "rocelab/__main__.py", "json.py", "click.py"):
        (tmp_path / name).write_text("raise SystemExit(99)\n")
    done = Nodes("mine").exec("true", options=["--on", "n0"], cwd=tmp_path)
    assert done.returncode == 2, done.stderr


def test_no_program_of_ours_imports_from_the_current_folder() -> None:
    source = Path(__file__).parents[2] / "tools/rocelab/src/rocelab"
    started = re.compile(r'sys\.executable,\s*"-m"')
    assert [path for path in source.rglob("*.py") if started.search(path.read_text())] == []


def test_a_capture_with_findings() -> None:
    with pytest.raises(AssertionError, match="lost before the capture point"):
        assert_no_findings(CAPTURES / "fault-drop-before.pcap")


def test_a_capture_without() -> None:
    assert_no_findings(CAPTURES / "testbed-write-lat-64.pcap")
    with pytest.raises(UsageError):
        assert_no_findings(Path(__file__))


def test_a_capture_that_shows_nothing(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes((CAPTURES / "fault-drop-before.pcap").read_bytes()[:24])
    with pytest.raises(AssertionError, match="no packet of RoCE"):
        assert_no_findings(empty)


def test_which_node_is_where() -> None:
    assert Nodes("x").words("true")[-2:] == ["--", "true"]
