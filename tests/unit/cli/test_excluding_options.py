# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that exclude each other, and places that cannot be written: refused before any work."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import in_process as rocelab
from corpus import CAPTURES
from rocelab.errors import ExitCode
from synthetic_run import Synthetic

CAPTURE = str(CAPTURES / "testbed-write-lat-64.pcap")
TRACE = str(CAPTURES / "testbed-rxedump-write-lat-64.pcapng")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("analyze", CAPTURE, "--live", "lo"), "--live analyzes an interface, not captures"),
        (("analyze", "--live", "lo", "--parquet", "new"), "need a capture"),
        (("analyze", "--live", "lo", "--html", "new"), "need a capture"),
        (("analyze", CAPTURE, "--dask", "tcp://h:1", "--html", "new"), "neither tables nor a page"),
        (("analyze", "-", "-"), "standard input can be read only once"),
        (("analyze", CAPTURE, CAPTURE, "--against", CAPTURE), "--against compares two captures"),
        (("up", "--provider", "ssh"), "boots virtual machines, not your own hosts"),
        (("doctor", "--hosts", "--mpi"), "--hosts and --mpi exclude each other"),
        (("run", "demo", "--submit"), "--submit needs provider slurm"),
        (("run", "--resume", "run", "--native"), "--resume takes no --provider"),
        (("exec", "--on", "all", "--rw", "--folder", ".", "--", "true"), "need one node"),
        (("exec", "--no-folder", "--folder", ".", "--", "true"), "excludes --folder and --rw"),
    ],
)
def test_options_that_exclude_each_other(
    words: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = rocelab(*words)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert says in done.stderr
    assert "what to do: " in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("analyze", CAPTURE, "--parquet"), "--parquet"),
        (("join", CAPTURE, "--trace", TRACE, "--parquet"), "--parquet"),
        (("exec", "--capture"), "--capture"),
        pytest.param(("report", "run", "--export"), "--export", marks=pytest.mark.slow),
        pytest.param(("report", "run", "--share"), "--share", marks=pytest.mark.slow),
    ],
)
def test_a_folder_that_cannot_be_made(
    words: tuple[str, ...], option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can make a folder there, not even root; the advice names the option."""
    monkeypatch.chdir(tmp_path)
    if "run" in words:
        Synthetic(repetitions=1).write(tmp_path / "run")
    done = rocelab(*words, "/sys/rocelab", *(["--", "true"] if "exec" in words else []))
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert "/sys/rocelab" in done.stderr
    assert f"with {option}." in done.stderr
