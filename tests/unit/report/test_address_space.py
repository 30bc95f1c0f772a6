# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures are drawn where `ulimit -v` leaves 8 GB, as on login nodes of clusters."""

from __future__ import annotations

import resource
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from rocelab.errors import ExitCode

ROOT = Path(__file__).parents[3]
LIMIT = 8 << 30


def limited(*words: str, cwd: Path) -> None:
    """Run a command in little address space; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "rocelab", *words],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT)),
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
        check=False,
    )
    assert done.returncode == ExitCode.OK, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("analyze", "--html", "{tmp}/page.html", "captures/rc-v2-ipv4.pcap"),
        ("annotate", "captures/rc-v2-ipv4.pcap", "-o", "{tmp}/a.pcapng"),
        ("study", "list"),
    ],
    ids=lambda words: words[0],
)
def test_commands_within_8_gb(words: tuple[str, ...], tmp_path: Path) -> None:
    limited(*(word.format(tmp=tmp_path) for word in words), cwd=ROOT)


@pytest.mark.slow
def test_a_report_and_its_figures_as_pdf_within_8_gb(tmp_path: Path) -> None:
    with tarfile.open(ROOT / "tests/unit/data/sample-run.tar.gz") as archive:
        archive.extractall(tmp_path / "run", filter="data")
    limited("report", "run", "--export", "figures", cwd=tmp_path)
    pictures = {path.suffix for path in (tmp_path / "figures").rglob("*")}
    assert {".svg", ".pdf"} <= pictures
