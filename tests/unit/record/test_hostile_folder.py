# SPDX-License-Identifier: GPL-2.0-or-later
"""A hostile run folder reaches nothing outside itself: no reads, writes, deletions or hangs.

These tests verify the promises of SECURITY.md.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from rocelab import limits
from rocelab.cli.app import app
from rocelab.directory import Directory
from rocelab.errors import ExitCode, RocelabError, UsageError
from rocelab.record import read
from rocelab.record.folder import RunFolder
from synthetic_run import Synthetic

pytestmark = pytest.mark.slow

RUN = Synthetic(tests=("write_lat",), sizes=(64,), repetitions=1)
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIattacker evil@example"
WITHIN = 60
"""Seconds after which a command counts as hanging."""


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(WITHIN)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A run folder next to a victim's home."""
    home = tmp_path / "victim" / "home"
    for name in (".ssh", ".config", ".x.part"):
        (home / name).mkdir(parents=True)
        (home / name / "mine").write_text("mine")
    (tmp_path / "victim" / "pics").mkdir()
    (tmp_path / "victim" / "pics" / "mine.svg").write_text("mine")
    (tmp_path / "victim" / "authorized_keys").write_text("mine\n")
    return RUN.write(tmp_path / "evil")


def victims(evil: Path) -> dict[str, bytes]:
    """Everything outside the run folder, by name."""
    root = evil.parent
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else b""
        for path in root.rglob("*")
        if not path.is_relative_to(evil)
    }


def edit(path: Path, **members: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | members))


@dataclass(frozen=True)
class Done:
    """The outcome of a command."""

    returncode: int
    stdout: str
    stderr: str


def command(*words: str | Path) -> Done:
    done = CliRunner().invoke(app, [str(word) for word in words], standalone_mode=False)
    if isinstance(done.exception, RocelabError):
        error = done.exception
        return Done(error.exit_code, done.stdout, f"{error.what}\n{error.cause}\n{error.action}")
    if done.exception is not None:
        raise done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


def refused(done: Done) -> str:
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert done.stdout == ""
    return done.stderr


def test_figures_that_link_elsewhere(evil: Path) -> None:
    (evil / "figures").symlink_to("../victim/pics")
    before = victims(evil)
    assert "figures" in refused(command("report", evil))
    assert victims(evil) == before
    assert not (evil / "report.html").exists()


def test_a_temporary_name_that_links_elsewhere(evil: Path) -> None:
    edit(evil / "run.json", run=f"x\n{KEY}\n")
    (evil / ".report.html.part").symlink_to("../victim/authorized_keys")
    before = victims(evil)
    done = command("report", evil)
    assert done.returncode == ExitCode.OK, done.stderr
    assert victims(evil) == before
    # no line of the page comes from the attacker
    assert KEY not in (evil / "report.html").read_text().splitlines()


@pytest.mark.parametrize("name", ["report.html", "figures/latency-one-way-half-rtt-tcg.svg"])
def test_a_file_of_the_report_that_links_elsewhere_is_replaced(evil: Path, name: str) -> None:
    (evil / "figures").mkdir()
    link = evil / name
    link.symlink_to(evil.parent / "victim" / "authorized_keys")
    before = victims(evil)
    done = command("report", evil)
    assert done.returncode == ExitCode.OK, done.stderr
    assert victims(evil) == before
    assert link.is_file()
    assert not link.is_symlink()


def test_cells_that_link_to_a_home_are_not_swept(evil: Path) -> None:
    for path in (evil / "cells").rglob("*.json"):
        path.unlink()
    for path in (evil / "cells").iterdir():
        path.rmdir()
    (evil / "cells").rmdir()
    (evil / "cells").symlink_to("../victim/home")
    before = victims(evil)
    with pytest.raises(UsageError, match="cells"):
        RunFolder.open(evil)
    refused(command("report", evil))
    assert victims(evil) == before


def test_a_cell_that_links_to_a_home_is_not_emptied(evil: Path) -> None:
    [cell, *_] = RunFolder(evil).plan().cells()
    for name in (cell.name, f".{cell.name}.part", f".{cell.name}.old"):
        place = evil / "cells" / name
        if place.exists():
            (place / "cell.json").unlink()
            place.rmdir()
        place.symlink_to(evil.parent / "victim" / "home")
    before = victims(evil)
    folder = RunFolder.open(evil)
    assert folder.record(cell.name) is None
    folder.begin(cell)
    folder.commit(cell, {"status": "error"})
    assert victims(evil) == before
    assert folder.record(cell.name) is not None


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link_to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_the_same(path: Path) -> None:
    """A link to a file that would be valid within the folder."""
    other = path.parent.parent / f"other-{path.name}"
    other.write_bytes(_CONTENT[path.name])
    path.symlink_to(other)


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(path.parent)  # a socket's name has at most 107 bytes
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


def deep(path: Path) -> None:
    path.write_text('{"schema": "rocelab.run/1", "a": ' + "[" * 100_000 + "]" * 100_000 + "}")


def deep_enough_to_parse(path: Path) -> None:
    deepest = 800
    path.write_text(
        '{"schema": "rocelab.run/1", "nodes": ' + '{"a":' * deepest + "1" + "}" * deepest + "}"
    )


def too_large(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b'{"schema": "rocelab.run/1"}')
        file.truncate(1 << 40)


_CONTENT: dict[str, bytes] = {}
Replace = Callable[[Path], None]
REPLACED = (fifo, link_to_zero, link_to_the_same, link_to_itself, a_folder, a_socket, too_large)


def replaced(path: Path, by: Replace) -> None:
    _CONTENT[path.name] = path.read_bytes()
    path.unlink()
    by(path)


@pytest.mark.parametrize("by", REPLACED, ids=lambda by: by.__name__)
def test_a_cell_that_is_no_regular_file_counts_as_missing(evil: Path, by: Replace) -> None:
    [path] = evil.glob("cells/*rxe*/cell.json")
    replaced(path, by)
    run = read.load(evil)
    assert [cell.status for cell in run.cells] == ["ok", "missing"]
    # nor are its numbers: their proof is gone
    assert set(run.table["transport"]) == {"tcp"}


@pytest.mark.parametrize("by", [*REPLACED, deep, deep_enough_to_parse], ids=lambda by: by.__name__)
def test_a_run_that_is_no_regular_file_is_no_run(evil: Path, by: Replace, tmp_path: Path) -> None:
    other = RUN.write(tmp_path / "good")
    replaced(evil / "run.json", by)
    for words in (
        ("report", evil),
        ("compare", evil, other),
        ("compare", other, evil),
        ("join", evil),
        ("study", "report", evil),
        ("run", "--resume", evil),
    ):
        refused(command(*words))
    assert not (evil / "report.html").exists()


@pytest.mark.parametrize("by", REPLACED, ids=lambda by: by.__name__)
def test_results_that_are_no_regular_file(evil: Path, by: Replace, tmp_path: Path) -> None:
    """The results are not read, and without raw output they cannot be rebuilt."""
    other = RUN.write(tmp_path / "good")
    (evil / "report.html").write_text("the report of before")

    replaced(evil / "results.parquet", by)
    before = victims(evil)
    for words in (("report", evil), ("compare", evil, other), ("study", "report", evil)):
        refused(command(*words))
    assert (evil / "report.html").read_text() == "the report of before"
    assert victims(evil) == before


def test_more_rows_than_a_run_has_are_refused(evil: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_ROWS", len(pl.read_parquet(evil / "results.parquet")) - 1)
    assert "rows" in refused(command("report", evil))


def test_names_of_a_node_do_not_leave_the_step(evil: Path) -> None:
    """A node's name in cell.json is part of a file name."""
    secret = evil.parent / "secret.json"
    secret.write_text('{"schema": "rocelab.rxestat/1", "rows": [], "packets": [], "lost": 7}')
    [path] = evil.glob("cells/*rxe*/cell.json")
    cell = json.loads(path.read_text())
    (path.parent / "64" / "rxestat.").mkdir(parents=True)
    cell["steps"][0]["counters"] = {"/../../../../../secret": {"rxe": {}, "netdev": {}}}
    path.write_text(json.dumps(cell))
    (evil / "results.parquet").unlink()
    refused(command("report", evil))


def test_an_export_into_a_strangers_folder(evil: Path, tmp_path: Path) -> None:
    into = tmp_path / "evil" / "out"
    into.mkdir()
    for name in ("results.csv", "results.parquet", "latency-one-way-half-rtt-tcg.svg"):
        (into / name).symlink_to("../../victim/authorized_keys")
    before = victims(evil)
    done = command("report", evil, "--export", into)
    assert done.returncode == ExitCode.OK, done.stderr
    assert victims(evil) == before


@pytest.mark.parametrize("name", ["wire.pcap", "n1.pcapng"])
@pytest.mark.parametrize("by", [fifo, link_to_zero], ids=lambda by: by.__name__)
def test_captures_that_are_no_regular_files_are_not_joined(
    evil: Path, name: str, by: Replace
) -> None:
    step = evil / "cells" / "perftest-write_lat.rxe-v2.r01" / "64"
    step.mkdir()
    for other in {"wire.pcap", "n1.pcapng"} - {name}:
        (step / other).write_bytes(b"")
    by(step / name)
    assert "no capture" in refused(command("join", evil))


@pytest.mark.parametrize("by", [fifo, link_to_zero], ids=lambda by: by.__name__)
def test_plans_and_inventories_are_regular_files(tmp_path: Path, by: Replace) -> None:
    path = tmp_path / "file.toml"
    by(path)
    assert "regular file" in refused(command("run", path))
    assert "regular file" in refused(command("hosts", "status", "--inventory", path))


@pytest.mark.parametrize("size", [10, 1 << 20])
def test_a_process_that_is_killed_while_it_writes_leaves_nothing(tmp_path: Path, size: int) -> None:
    """The file has no name before it is whole."""
    (tmp_path / "name").write_text("before")
    child = os.fork()
    if child == 0:

        def dies(file: Any) -> None:
            file.write(bytes(size))
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)

        with Directory.open(tmp_path) as folder:
            folder.write("name", dies)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["name"]
    assert (tmp_path / "name").read_text() == "before"
