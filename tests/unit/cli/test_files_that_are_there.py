# SPDX-License-Identifier: GPL-2.0-or-later
"""A command replaces what it wrote before, and no other file: a word may have been forgotten."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from command_line import in_process as rocelab
from rocelab.errors import ExitCode

CAPTURES = Path(__file__).parents[3] / "captures"
WRITERS = {
    "page": ("analyze", CAPTURES / "rc-v2-ipv4.pcap", "--html"),
    "annotated": ("annotate", CAPTURES / "rc-v2-ipv4.pcap", "-o"),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_another_file_is_not_replaced(writer: str, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.pcap"
    shutil.copy(CAPTURES / "fault-rnr.pcap", theirs)
    before = theirs.read_bytes()
    refused = rocelab(*map(str, WRITERS[writer]), str(theirs))
    assert refused.returncode == ExitCode.USAGE
    assert "it would be replaced" in refused.stderr
    assert theirs.read_bytes() == before


@pytest.mark.parametrize("writer", WRITERS)
def test_what_was_written_before_is_replaced(writer: str, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.touch()
    for _ in range(2):
        assert rocelab(*map(str, WRITERS[writer]), str(ours)).returncode == ExitCode.OK
        assert ours.stat().st_size > 0
