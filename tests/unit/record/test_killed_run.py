# SPDX-License-Identifier: GPL-2.0-or-later
"""run.json never says `running` of a run that is dead."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocelab.errors import UsageError
from rocelab.record import read
from rocelab.record.folder import RunFolder
from rocelab.report import compose
from synthetic_run import Synthetic

SMALL = Synthetic(transports=("tcp",), tests=("write_lat",), sizes=(64,), status="running")


def test_a_run_without_a_process_was_killed(tmp_path: Path) -> None:
    folder = RunFolder(SMALL.write(tmp_path / "run"))
    assert folder.meta()["status"] == "killed"
    assert "was killed" in str(compose(read.load(folder.path)).notes)


def test_a_run_that_goes_on_is_not_resumed(tmp_path: Path) -> None:
    folder = RunFolder(SMALL.write(tmp_path / "run"))
    unfinished = folder.path / "cells/.unfinished.part"
    unfinished.mkdir()
    with folder.hold():
        assert folder.meta()["status"] == "running"
        with pytest.raises(UsageError, match="another process carries out"):
            RunFolder.open(folder.path)
    assert unfinished.exists(), "its cell was swept away"
    assert RunFolder.open(folder.path).meta()["status"] == "killed"
    assert not unfinished.exists()
