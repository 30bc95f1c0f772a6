# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab ab`: what is missing is said before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import in_process as rocelab
from rocelab.errors import ExitCode


@pytest.mark.parametrize("line", ["6.1", "7.x"])
def test_check_programs_of_another_line(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The base's line has them, the change's has not: no machine boots, no folder is made."""
    build, out = tmp_path / "build", tmp_path / "runs"
    programs = build / "drivercheck" / "6.12"
    programs.mkdir(parents=True)
    (programs / "frame_fuzz").touch(mode=0o755)
    monkeypatch.setenv("ROCELAB_BUILD", str(build))
    done = rocelab("ab", "--check", "instrumented", f"line:{line}", "--out", str(out))
    assert done.returncode == ExitCode.MISSING
    assert f"drivercheck/{line}/frame_fuzz cannot be used" in done.stderr
    assert f"make drivercheck LINE={line}" in done.stderr
    assert not out.exists()
