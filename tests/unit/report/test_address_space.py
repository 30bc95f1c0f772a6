# SPDX-License-Identifier: GPL-2.0-or-later
"""Where `ulimit -v` leaves too little address space for figures, an error says so."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from rocelab.errors import ExitCode

CAPTURE = Path(__file__).parents[3] / "captures/rc-v2-ipv4.pcap"
LIMIT = 32 << 30


def analyze(out: Path, hard: int) -> subprocess.CompletedProcess[str]:
    """Make a page in a process with little address space, which it may raise to `hard`."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT, hard))  # noqa: E731
    command = ("analyze", "--html", str(out), str(CAPTURE))
    return subprocess.run(
        [sys.executable, "-m", "rocelab", *command],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_a_limit_that_the_process_cannot_raise_is_an_error(tmp_path: Path) -> None:
    done = analyze(tmp_path / "page.html", LIMIT)
    assert done.returncode == ExitCode.MISSING
    assert "figures need 72 GiB of address space" in " ".join(done.stderr.split())
    assert "what to do: Run `ulimit -v unlimited`" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_one_that_it_can_raise_is_raised(tmp_path: Path) -> None:
    done = analyze(tmp_path / "page.html", resource.RLIM_INFINITY)
    assert done.returncode == ExitCode.OK, done.stderr
    assert (tmp_path / "page.html").stat().st_size > 1000
