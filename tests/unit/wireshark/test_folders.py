# SPDX-License-Identifier: GPL-2.0-or-later
"""What a tshark that does not answer means to who installs the plugin."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import in_process as rocelab
from rocelab.errors import ExitCode

OLD = "echo 'Personal configuration:\t/none'"
BROKEN = "echo 'tshark: libwireshark.so.17: no such file' >&2; exit 127"


@pytest.mark.parametrize(
    ("does", "what", "cause"),
    [
        (BROKEN, "tshark -G folders failed with status 127", "libwireshark.so.17"),
        (OLD, "names no 'Personal Lua Plugins' folder", "older than 4.0 or was built without Lua"),
    ],
    ids=["broken", "old"],
)
def test_a_tshark_that_cannot_be_used(
    does: str, what: str, cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installation that lacks a library, and one without Lua."""
    program = tmp_path / "tshark"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for word in ("install", "uninstall"):
        done = rocelab("wireshark", word)
        assert done.returncode == ExitCode.MISSING
        assert what in done.stderr
        assert cause in done.stderr
        assert "what to do: " in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["tshark"]
