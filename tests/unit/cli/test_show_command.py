# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab show`: a finished run's tables again, at any width, and as JSON."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import tarfile
import termios
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from command_line import in_process
from json_keys import keys
from rocelab.report import build
from synthetic_run import Synthetic

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "tests/unit/data/sample-run.tar.gz"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "demo"
    folder.mkdir()
    with tarfile.open(SAMPLE) as tar:
        tar.extractall(folder, filter="data")
    return folder


def shown(run: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rocelab", "show", str(run)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("columns", ["0", "-5", "x", "²", "٣", "9" * 12, "9" * 5000])
def test_no_number_of_columns_means_that_nobody_knows(demo: Path, columns: str) -> None:
    assert shown(demo, COLUMNS=columns).stdout == shown(demo, COLUMNS="80").stdout


def test_a_terminal_narrower_than_any(demo: Path) -> None:
    assert shown(demo, COLUMNS="1").stdout == shown(demo, COLUMNS="40").stdout


@pytest.mark.parametrize("columns", [80, 60])
def test_the_demo_fits(demo: Path, columns: int) -> None:
    done = shown(demo, COLUMNS=str(columns))
    assert max(map(len, done.stdout.splitlines())) <= columns
    assert "…" not in done.stdout
    for benchmark in ("pingpong latency", "perftest send_bw", "mpibench latency"):
        assert benchmark in done.stdout
        assert f"Inside the driver: {benchmark} over rxe-v2" in done.stdout
    table = pl.read_parquet(demo / "results.parquet")
    marginal = table.filter(transport="rxe-v1", metric="cost.message", kind="marginal")
    cost = marginal["value"].sum()
    assert f" {cost:,.0f}" in done.stdout
    assert "reading" in done.stderr


@pytest.mark.parametrize("kind", ["marginal", "start", "residual"])
@pytest.mark.parametrize("value", [None, 0.0, -1.0, 1e308])
def test_costs_that_no_run_has(demo: Path, tmp_path: Path, kind: str, value: float | None) -> None:
    run = shutil.copytree(demo, tmp_path / "run")
    table = pl.read_parquet(run / "results.parquet")
    chosen = pl.col("kind") == kind
    changed = (
        table.filter(~chosen)
        if value is None
        else table.with_columns(value=pl.when(chosen).then(value).otherwise(pl.col("value")))
    )
    changed.write_parquet(run / "results.parquet")
    assert in_process("show", str(run)).returncode == 0


def test_work_divided_by_messages_is_headed_with_what_it_contains(
    demo: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(demo, tmp_path / "run")
    table = pl.read_parquet(run / "results.parquet")
    of_slopes = pl.col("kind").str.contains("marginal|start|residual")
    table.filter(~of_slopes).write_parquet(run / "results.parquet")
    done = shown(run)
    assert "with the start of the programs and the probes" in " ".join(done.stdout.split())
    work = table.filter(
        pl.col("metric").str.contains(r"^cpu\.[a-z]+\.(benchmark|rxe|network)$"),
        transport="tcp", test="latency", tool="pingpong", size=64, kind="per_message",
    )  # fmt: skip
    user = pl.col("metric") == "cpu.user.benchmark"
    assert f" {work.filter(~user)['value'].sum():,.0f} " in done.stdout
    assert f" {work.filter(user)['value'].sum():,.0f}\n" in done.stdout


def test_a_label_tells_two_benchmarks_apart(tmp_path: Path) -> None:
    run = Synthetic(tests=("write_lat",), sizes=(64,), repetitions=1).write(tmp_path / "run")
    meta = json.loads((run / "run.json").read_text())
    [benchmark] = meta["plan"]["benchmark"]
    benchmark["label"] = "busy"
    (run / "run.json").write_text(json.dumps(meta))
    table = pl.read_parquet(run / "results.parquet")
    table.with_columns(test=pl.lit("write_lat-busy")).write_parquet(run / "results.parquet")
    assert "perftest write_lat-busy" in in_process("show", str(run)).stdout


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_nothing_but_text(demo: Path, environment: dict[str, str]) -> None:
    """Even where rich is made to believe in a terminal."""
    colourful = shown(demo, FORCE_COLOR="1", TERM="xterm-256color")
    assert "\x1b[" in colourful.stdout
    plain = shown(demo, **{"FORCE_COLOR": "1", "TERM": "xterm-256color"} | environment)
    assert "\x1b" not in plain.stdout + plain.stderr


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_a_terminal_decides_the_width(demo: Path, term: str) -> None:
    """Also a dumb one, which rich takes for 80 columns wide."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 60))
    environment = {**os.environ, "TERM": term, "NO_COLOR": "1"}
    for name in ("COLUMNS", "LINES"):
        environment.pop(name, None)
    with subprocess.Popen(
        [sys.executable, "-m", "rocelab", "show", str(demo)],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as process:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # EIO: the last that had it open has ended
            while part := os.read(ours, 65536):
                shown += part
    os.close(ours)
    assert process.returncode == 0
    assert b"pingpong latency" in shown
    assert max(map(len, shown.decode().splitlines())) <= 60


def test_json_has_every_series(demo: Path) -> None:
    done = in_process("show", "--json", str(demo))
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "rocelab.show/1"
    assert document["accelerator"] == "lockstep"
    assert {cell["status"] for cell in document["cells"]} == {"ok"}
    table = pl.read_parquet(demo / "results.parquet")
    assert len(document["results"]) == table.height  # one repetition
    [latency] = [
        result
        for result in document["results"]
        if (result["metric"], result["transport"], result["size"], result["tool"])
        == ("latency.mean", "tcp", 64, "pingpong")
    ]
    [value] = table.filter(
        metric="latency.mean", transport="tcp", size=64, tool="pingpong"
    )["value"]  # fmt: skip
    assert latency["median"] == latency["mean"] == pytest.approx(value)
    assert (latency["interval"], latency["unit"], latency["repetitions"]) == (None, "ns", 1)
    described = (ROOT / "docs/formats/json.md").read_text()
    assert not {key for key in keys(document) if f"`{key}`" not in described}


def test_json_and_the_report_agree_on_intervals(tmp_path: Path) -> None:
    run = Synthetic(tests=("write_lat",), sizes=(64,), repetitions=6, accelerator="kvm").write(
        tmp_path / "run"
    )
    results = json.loads(in_process("show", "--json", str(run)).stdout)["results"]
    [tcp] = [r for r in results if (r["metric"], r["transport"]) == ("latency.mean", "tcp")]
    low, high = tcp["interval"]
    assert low <= tcp["median"] <= high
    assert "95 % CI" in build(run).read_text(encoding="utf-8")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    done = in_process("show", str(tmp_path))
    assert done.returncode == 2
    assert "what to do" in done.stderr
    assert done.stdout == ""
