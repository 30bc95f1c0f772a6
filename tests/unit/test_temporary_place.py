# SPDX-License-Identifier: GPL-2.0-or-later
"""Where temporary files go, and that there is no such folder where all is read-only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from requirements import need_program
from rocelab.directory import temporary_place
from rocelab.errors import ExitCode


def test_the_first_that_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "absent"))
    monkeypatch.setenv("TEMP", str(tmp_path))
    assert temporary_place() == tmp_path


def test_none() -> None:
    need_program("bwrap")
    if not shutil.which("dumpcap"):
        need_program("tcpdump")
    environment = {k: v for k, v in os.environ.items() if k not in ("TMPDIR", "TEMP", "TMP")}
    sandbox = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    rocelab = [sys.executable, "-m", "rocelab", "analyze", "--live", "lo"]
    done = subprocess.run(
        [*sandbox, *rocelab], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == ExitCode.MISSING, done.stderr
    assert "there is no folder for temporary files" in done.stderr
    assert "Set TMPDIR" in done.stderr
