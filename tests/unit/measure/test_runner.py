# SPDX-License-Identifier: GPL-2.0-or-later
"""The runner on a fake testbed: order of cells, atomic cells, resume, interruption."""

from __future__ import annotations

import io
import json
import random
import shutil
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from fake_testbed import MESSAGES, QPERF, FakeTestbed
from rocelab.errors import CellError, ExitCode, RocelabError, TestbedError, UsageError
from rocelab.measure import results, runner
from rocelab.measure.cell import Outcome
from rocelab.measure.progress import Estimate, NullProgress
from rocelab.plans import plan_file
from rocelab.plans.plan import Cell
from rocelab.record import results_table
from rocelab.record.folder import RunFolder, plan_of
from rocelab.report import build
from rocelab.terminal import run_tables

PLAN = plan_file.from_toml(
    f"""
[plan]
name = "fake"
repetitions = 3
transports = ["tcp", "rxe-v2"]
probes = []
[[benchmark]]
tool = "qperf"
test = "tcp_lat"
sizes = [64]
transports = ["tcp"]
[[benchmark]]
tool = "perftest"
test = "send_bw"
sizes = [64]
iterations = {MESSAGES}
transports = ["rxe-v2"]
""",
    "fake.toml",
)
CELLS = [cell.name for cell in PLAN.cells()]
_OURS = str(Path(runner.__file__).parents[1])


class Watcher(NullProgress):
    """Records progress."""

    def __init__(self) -> None:
        self.finished: list[tuple[str, bool]] = []
        self.kept = -1
        self.notes: list[str] = []

    def run_started(self, run: str, *, cells: int, finished: int) -> None:
        self.kept = finished

    def cell_finished(
        self, cell: Cell, *, error: RocelabError | None, seconds: float, left: float | None
    ) -> None:
        self.finished.append((cell.name, error is None))

    def note(self, text: str) -> None:
        self.notes.append(text)


def cells_on_disk(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "cells").iterdir())


def record(run: Path, cell: str) -> dict[str, object]:
    content = json.loads((run / "cells" / cell / "cell.json").read_text())
    assert isinstance(content, dict)
    return content


def test_a_run_from_end_to_end(tmp_path: Path) -> None:
    watcher = Watcher()
    outcome = runner.run(PLAN, FakeTestbed(), tmp_path / "runs", progress=watcher)
    assert outcome.exit_code is ExitCode.OK
    assert (outcome.ok, outcome.failed, outcome.missing) == (6, (), 0)
    assert watcher.finished == [(name, True) for name in CELLS]
    assert cells_on_disk(outcome.path) == sorted(CELLS)
    meta = json.loads((outcome.path / "run.json").read_text())
    assert meta["status"] == "complete"
    assert meta["cells"] == CELLS
    assert plan_file.from_dict(meta["plan"], "run.json") == PLAN
    step = outcome.path / "cells" / "perftest-send_bw.rxe-v2.r01" / "64"
    assert {path.name for path in step.iterdir()} == {
        *("client.out", "client.err", "server.out", "server.err", "wire.pcap"),
    }
    table = pl.read_parquet(outcome.path / "results.parquet")
    assert table.schema == results_table.SCHEMA
    mean = table.filter(pl.col("metric") == "latency.mean")
    assert mean["value"].to_list() == [8778.32106] * 3
    assert mean["kind"].unique().to_list() == ["one_way_half_rtt"]
    frames = table.filter(
        (pl.col("metric") == "wire.frames")
        & (pl.col("kind") == "roce_v2")
        & (pl.col("transport") == "rxe-v2")
    )
    assert frames["value"].to_list() == [2.0 * MESSAGES] * 3
    # 14 Ethernet, 20 IPv4, 8 UDP, 12 BTH, 4 ICRC
    headers = table.filter((pl.col("metric") == "wire.header_bytes") & (pl.col("kind") == "roce"))
    assert headers["value"].to_list() == [58.0] * 3


PLAIN = plan_file.from_toml(
    '[plan]\nname = "plain"\nrepetitions = 1\ntransports = ["tcp"]\nprobes = []\n'
    '[[benchmark]]\ntool = "qperf"\ntest = "tcp_lat"\nsizes = [64]\n',
    "plain.toml",
)
NO_ROOT = "a capture needs root on n1, n2"


def test_counters_prove_a_run_that_nothing_captures(tmp_path: Path) -> None:
    outcome = runner.run(PLAIN, FakeTestbed(missing=NO_ROOT), tmp_path)
    assert outcome.exit_code is ExitCode.OK
    (cell,) = cells_on_disk(outcome.path)
    assert not (outcome.path / "cells" / cell / "64/wire.pcap").exists()
    step: dict[str, Any] = record(outcome.path, cell)["steps"][0]  # type: ignore[index]
    assert (step["capture"], step["frames"]) == ({"missing": NO_ROOT}, None)
    assert step["counters"]["n2"]["tcp"] == {"InSegs": 200, "OutSegs": 200}
    table = pl.read_parquet(outcome.path / "results.parquet")
    assert not table["metric"].str.starts_with("wire.").any()
    segments = table.filter(pl.col("metric") == "tcp.OutSegs")
    assert segments["value"].to_list() == [200.0, 200.0]
    report = build(outcome.path).read_text()
    assert f"Nothing captured the link: {NO_ROOT}." in report
    assert "frames in the capture" not in report


def test_counters_disprove_a_run_that_took_another_path(tmp_path: Path) -> None:
    def elsewhere(bed: FakeTestbed, argv: tuple[str, ...]) -> None:
        bed.segments -= 200 if "qperf" in argv else 0

    bed = FakeTestbed(missing=NO_ROOT, on_client=elsewhere)
    outcome = runner.run(PLAIN, bed, tmp_path)
    assert outcome.exit_code is ExitCode.CELL
    error = record(outcome.path, outcome.failed[0])["error"]
    assert error["kind"] == "proof"  # type: ignore[index]
    assert "TCP segments sent is 0, expected at least 1" in error["what"]  # type: ignore[index]


def test_each_benchmark_is_warmed_up_once_per_transport(tmp_path: Path) -> None:
    bed = FakeTestbed()
    runner.run(PLAN, bed, tmp_path)
    assert len(bed.clients) == 6 + 2
    short = [argv for argv in bed.clients if "ib_send_bw" in argv]
    assert [argv[argv.index("-n") + 1] for argv in short] == ["50", *["1000"] * 3]


@pytest.mark.parametrize(("accelerator", "warm_ups"), [("kvm", 2), ("icount", 1)])
def test_a_program_is_read_from_the_disk_once(
    accelerator: str, warm_ups: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where instructions are counted; elsewhere what a transport needs is warmed up as well."""
    plan = PLAN.to_dict()
    plan["benchmark"] = [{**plan["benchmark"][1], "transports": ["rxe-v1", "rxe-v2"]}]
    warmed: list[bool] = []

    # the fake nodes have no RoCE v1
    def measured(cell: Cell, *_: object, warm: bool, **__: object) -> Outcome:
        warmed.append(warm)
        return Outcome({"cell": cell.name, "status": "ok", "steps": []}, None)

    monkeypatch.setattr(runner, "measure", measured)
    monkeypatch.setattr(results, "rebuild", lambda _: None)
    bed = FakeTestbed(accelerator=accelerator)
    runner.run(plan_file.from_dict(plan, "both.toml"), bed, tmp_path)
    assert (len(warmed), sum(warmed)) == (6, warm_ups)


@pytest.mark.parametrize(("accelerator", "asks"), [("kvm", "tcp_lat"), ("icount", "conf")])
def test_where_instructions_are_counted_qperf_is_only_loaded(
    accelerator: str, asks: str, tmp_path: Path
) -> None:
    bed = FakeTestbed(accelerator=accelerator)
    outcome = runner.run(PLAN, bed, tmp_path)
    assert not outcome.failed
    asked = [argv[-2] for argv in bed.clients if "qperf" in argv]
    assert asked == [asks, "tcp_lat", "tcp_lat", "tcp_lat"]


def test_each_server_has_its_own_port_and_ends(tmp_path: Path) -> None:
    bed = FakeTestbed()
    runner.run(PLAN, bed, tmp_path)
    ports = [argv[argv.index("-p") + 1] for argv in bed.clients if "-p" in argv]
    assert len(set(ports)) == len(ports)
    assert all(process.killed for process in bed.started)


def test_the_run_continues_after_a_failing_benchmark(tmp_path: Path) -> None:
    def broken(_: FakeTestbed, argv: tuple[str, ...]) -> str | None:
        return "\x1b[31mnonsense" if "qperf" in argv else None

    watcher = Watcher()
    outcome = runner.run(PLAN, FakeTestbed(on_client=broken), tmp_path, progress=watcher)
    assert outcome.exit_code is ExitCode.CELL
    assert outcome.status == "complete"
    assert outcome.failed == tuple(name for name in CELLS if name.startswith("qperf"))
    cell = record(outcome.path, "qperf-tcp_lat.tcp.r01")
    assert cell["status"] == "error"
    assert cell["error"]["kind"] == "benchmark"  # type: ignore[index]
    # its output is kept
    kept = outcome.path / "cells" / "qperf-tcp_lat.tcp.r01" / "64" / "client.out"
    assert kept.read_text() == "\x1b[31mnonsense"
    table = pl.read_parquet(outcome.path / "results.parquet")
    assert table["tool"].unique().to_list() == ["perftest"]


def test_traffic_that_took_another_path_is_an_error_with_its_proof(tmp_path: Path) -> None:
    def looped_back(bed: FakeTestbed, argv: tuple[str, ...]) -> str | None:
        if "ib_send_bw" in argv:
            bed.nodes[0].sent += 1
            bed.nodes[0].received += 1
        return None

    outcome = runner.run(PLAN, FakeTestbed(on_client=looped_back), tmp_path)
    assert outcome.exit_code is ExitCode.CELL
    cell = record(outcome.path, "perftest-send_bw.rxe-v2.r02")
    assert cell["error"]["kind"] == "proof"  # type: ignore[index]
    assert "RoCE v2 frames on the wire is 2000, expected 2001" in cell["error"]["what"]  # type: ignore[index]
    assert cell["steps"][0]["proof"]["ok"] is False  # type: ignore[index]


class AfterCells:
    """Raises an exception after a number of client runs (including warm-ups)."""

    def __init__(self, clients: int, act: BaseException | None = None) -> None:
        self.left = clients
        self.act = act

    def __call__(self, bed: FakeTestbed, _: tuple[str, ...]) -> str | None:
        self.left -= 1
        if self.left == 0:
            if self.act:
                raise self.act
            bed.dead = True
            raise TestbedError("node n1 does not answer")
        return None


def test_ctrl_c_keeps_finished_cells_and_nothing_else(tmp_path: Path) -> None:
    bed = FakeTestbed(on_client=AfterCells(5, KeyboardInterrupt()))
    outcome = runner.run(PLAN, bed, tmp_path)
    assert outcome.exit_code is ExitCode.INTERRUPTED
    assert outcome.status == "interrupted"
    assert cells_on_disk(outcome.path) == sorted(CELLS[: outcome.ok])
    assert outcome.missing == 6 - outcome.ok > 0
    assert json.loads((outcome.path / "run.json").read_text())["status"] == "interrupted"
    assert results_table.load(outcome.path)["repetition"].max() is not None
    assert all(process.killed for process in bed.started)


SQUEUE = """#!/bin/sh
echo '{state}|{reason}|1:00|0:00|s[1-2]'
"""


@pytest.mark.parametrize(
    ("state", "reason", "ended"),
    [
        ("COMPLETING", "TimeLimit", "its time is over"),
        ("TIMEOUT", "None", "its time is over"),
        ("CANCELLED", "None", "it is 'CANCELLED'"),
        ("RUNNING", "None", ""),
    ],
)
def test_sigterm_of_a_job_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, reason: str, ended: str
) -> None:
    """Slurm's reason, if Slurm has ended the job; else somebody else has sent the signal."""
    squeue = tmp_path / "squeue"
    squeue.write_text(SQUEUE.format(state=state, reason=reason))
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    bed = FakeTestbed(on_client=AfterCells(5, KeyboardInterrupt("SIGTERM")))
    outcome = runner.run(PLAN, bed, tmp_path / "runs")
    reason = json.loads((outcome.path / "run.json").read_text())["reason"]
    if not ended:
        assert (outcome.status, outcome.ended_by, reason) == ("interrupted", "SIGTERM", "SIGTERM")
        assert outcome.exit_code is ExitCode.TERMINATED
        return
    assert (outcome.status, outcome.ended_by) == ("stopped", "")
    assert reason == f"Slurm's job 7 has ended: {ended}"
    assert outcome.exit_code is ExitCode.TESTBED
    assert outcome.error is not None
    assert "rocelab run --resume" in outcome.error.action


@pytest.mark.parametrize("moment", ["begin", "commit"])
def test_ctrl_c_at_a_cell_s_edges_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A signal may arrive just when the cell's folder is created or about to be renamed."""
    begin = RunFolder.begin

    def interrupted(folder: RunFolder, cell: Cell, *_: object) -> Path:
        if moment == "begin":
            begin(folder, cell)
        raise KeyboardInterrupt

    monkeypatch.setattr(RunFolder, moment, interrupted)
    outcome = runner.run(PLAN, FakeTestbed(), tmp_path)
    assert outcome.exit_code is ExitCode.INTERRUPTED
    assert list((outcome.path / "cells").iterdir()) == []


def test_resume_runs_only_failed_and_missing_cells(tmp_path: Path) -> None:
    first = runner.run(PLAN, FakeTestbed(on_client=AfterCells(5, KeyboardInterrupt())), tmp_path)
    kept = {
        name: (first.path / "cells" / name / "cell.json").stat().st_mtime_ns
        for name in cells_on_disk(first.path)
    }
    # make one of them an error, and leave the folder of an interrupted attempt
    bad = min(kept)
    RunFolder(first.path).begin(PLAN.cells()[-1])
    path = first.path / "cells" / bad / "cell.json"
    path.write_text(path.read_text().replace('"ok"', '"error"', 1))
    started = json.loads((first.path / "run.json").read_text())["started"]

    watcher = Watcher()
    assert plan_of(first.path) == PLAN
    second = runner.run(PLAN, FakeTestbed(), tmp_path, resume=first.path, progress=watcher)
    assert second.exit_code is ExitCode.OK
    assert second.path == first.path
    assert watcher.kept == len(kept) - 1
    assert {name for name, _ in watcher.finished} == set(CELLS) - (set(kept) - {bad})
    assert cells_on_disk(second.path) == sorted(CELLS)
    for name in set(kept) - {bad}:
        assert (second.path / "cells" / name / "cell.json").stat().st_mtime_ns == kept[name]
    assert record(second.path, bad)["status"] == "ok"
    assert json.loads((first.path / "run.json").read_text())["started"] == started


def test_resume_follows_the_plan_in_the_run(tmp_path: Path) -> None:
    first = runner.run(PLAN, FakeTestbed(), tmp_path)
    other = plan_file.load("demo")
    watcher = Watcher()
    second = runner.run(other, FakeTestbed(), tmp_path, resume=first.path, progress=watcher)
    assert (second.ok, watcher.finished) == (6, [])


def test_resume_on_another_testbed_is_refused(tmp_path: Path) -> None:
    first = runner.run(PLAN, FakeTestbed(), tmp_path)
    with pytest.raises(UsageError, match=r"kernel of n1 was .* and is"):
        runner.run(PLAN, FakeTestbed(kernel="other"), tmp_path, resume=first.path)
    with pytest.raises(UsageError, match="accelerator was 'tcg', and is 'kvm'"):
        runner.run(PLAN, FakeTestbed(accelerator="kvm"), tmp_path, resume=first.path)


def test_resume_of_other_folders_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a run folder"):
        runner.run(PLAN, FakeTestbed(), tmp_path, resume=tmp_path)
    (tmp_path / "run.json").write_text('{"schema": "rocelab.run/9"}')
    with pytest.raises(UsageError, match="another version"):
        plan_of(tmp_path)


def test_a_dead_node_costs_one_cell_when_the_testbed_can_be_remade(tmp_path: Path) -> None:
    watcher = Watcher()
    outcome = runner.run(
        PLAN,
        FakeTestbed(on_client=AfterCells(4)),
        tmp_path,
        progress=watcher,
        remake=FakeTestbed,
    )
    assert outcome.status == "complete"
    assert outcome.ok == 5
    (failed,) = outcome.failed
    error = record(outcome.path, failed)["error"]
    assert error["kind"] == "testbed"  # type: ignore[index]
    assert "Oops: panic" in error["cause"]  # type: ignore[index]
    assert outcome.exit_code is ExitCode.CELL
    assert any("making a new testbed" in note for note in watcher.notes)


def test_a_dead_node_stops_the_run_when_the_testbed_cannot_be_remade(tmp_path: Path) -> None:
    outcome = runner.run(PLAN, FakeTestbed(on_client=AfterCells(4)), tmp_path)
    assert outcome.exit_code is ExitCode.TESTBED
    assert outcome.status == "stopped"
    assert outcome.error is not None
    assert "--resume" in outcome.error.action
    assert outcome.ok >= 1
    assert len(outcome.failed) == 1
    assert outcome.ok + 1 + outcome.missing == 6
    assert json.loads((outcome.path / "run.json").read_text())["reason"] == "node n1 died"


def test_a_benchmark_that_failed_because_its_testbed_ended(tmp_path: Path) -> None:
    """As when a Slurm job's time is over: its client is killed, and ends with an error."""

    def killed(bed: FakeTestbed, _: tuple[str, ...]) -> str | None:
        bed.dead = True
        raise CellError("the client exited with 143")

    outcome = runner.run(PLAN, FakeTestbed(on_client=killed), tmp_path)
    assert outcome.exit_code is ExitCode.TESTBED
    (failed,) = outcome.failed
    error = record(outcome.path, failed)["error"]
    assert (error["what"], error["kind"]) == ("node n1 died", "testbed")  # type: ignore[index]


def test_a_death_in_the_last_cell_is_reported(tmp_path: Path) -> None:
    last = FakeTestbed(on_client=AfterCells(8))
    outcome = runner.run(PLAN, last, tmp_path)
    assert (outcome.exit_code, outcome.ok, outcome.missing) == (ExitCode.TESTBED, 5, 0)


def test_a_node_that_recovers_costs_only_its_cell(tmp_path: Path) -> None:
    stutter = AfterCells(4, TestbedError("the command did not end within 60 s"))
    outcome = runner.run(PLAN, FakeTestbed(on_client=stutter), tmp_path)
    assert (outcome.exit_code, outcome.ok, outcome.status) == (ExitCode.CELL, 5, "complete")


def test_a_testbed_that_keeps_dying_stops_the_run(tmp_path: Path) -> None:
    made = []

    def remake() -> FakeTestbed:
        made.append(1)
        return FakeTestbed(on_client=AfterCells(1))

    outcome = runner.run(PLAN, FakeTestbed(on_client=AfterCells(1)), tmp_path, remake=remake)
    assert outcome.exit_code is ExitCode.TESTBED
    assert len(made) == 1
    assert len(outcome.failed) == 2


def test_each_repetition_on_machines_booted_for_it(tmp_path: Path) -> None:
    made: list[FakeTestbed] = []

    def remake() -> FakeTestbed:
        made.append(FakeTestbed())
        return made[-1]

    first = FakeTestbed()
    watcher = Watcher()
    outcome = runner.run(PLAN.with_boots(4), first, tmp_path, progress=watcher, remake=remake)
    assert (outcome.exit_code, outcome.ok) == (ExitCode.OK, 8)
    # on each testbed one repetition, and what warms its two benchmarks up
    assert [len(bed.clients) for bed in (first, *made)] == [2 + 2] * 4
    assert sum("booting" in note for note in watcher.notes) == 3


def test_a_resumed_run_boots_for_what_is_missing(tmp_path: Path) -> None:
    plan = PLAN.with_boots(4)
    whole = runner.run(plan, FakeTestbed(), tmp_path, remake=FakeTestbed)
    for name in CELLS[2:4]:
        shutil.rmtree(whole.path / "cells" / name)
    made = []

    def remake() -> FakeTestbed:
        made.append(1)
        return FakeTestbed()

    outcome = runner.run(plan, FakeTestbed(), tmp_path, resume=whole.path, remake=remake)
    assert (outcome.ok, len(made)) == (8, 0)


def test_machines_that_stay_up_are_not_fresh(tmp_path: Path) -> None:
    outcome = runner.run(PLAN.with_boots(2), FakeTestbed(), tmp_path)
    assert (outcome.exit_code, outcome.ok, outcome.missing) == (ExitCode.TESTBED, 2, 2)


def test_a_full_disk_stops_the_run(tmp_path: Path) -> None:
    full = FakeTestbed(on_client=AfterCells(4, OSError(28, "No space left on device")))
    outcome = runner.run(PLAN, full, tmp_path)
    assert outcome.exit_code is ExitCode.MISSING
    assert outcome.ok >= 1
    assert cells_on_disk(outcome.path) == sorted(CELLS[: outcome.ok])


def test_results_can_be_rebuilt(tmp_path: Path) -> None:
    outcome = runner.run(PLAN, FakeTestbed(), tmp_path)
    table = outcome.path / "results.parquet"
    before = table.read_bytes()
    table.unlink()
    with pytest.raises(UsageError, match="cannot be read"):
        results_table.load(outcome.path)
    assert results.rebuild(outcome.path).read_bytes() == before
    (outcome.path / "cells" / CELLS[0] / "64" / "client.out").write_text("")
    with pytest.raises(UsageError, match="cannot be read again"):
        results.rebuild(outcome.path)


def test_the_summary_fits_a_terminal(tmp_path: Path) -> None:
    def hostile(_: FakeTestbed, argv: tuple[str, ...]) -> str | None:
        return QPERF.replace("8778.32106", "\x1b]0;owned\x07") if "qperf" in argv else None

    for bed in (FakeTestbed(), FakeTestbed(on_client=hostile)):
        outcome = runner.run(PLAN, bed, tmp_path)
        screen = io.StringIO()
        run_tables.show(outcome.path, Console(width=80, file=screen))
        text = screen.getvalue()
        assert max(map(len, text.splitlines())) <= 80
        assert "no time is real" in text
        assert "\x1b" not in text
        assert "\x07" not in text


def test_three_transports_fit_a_terminal_too() -> None:
    """They are listed in rows: no number or interval is truncated."""
    plan = replace(PLAN, transports=("tcp", "rxe-v1", "rxe-v2"))
    benchmark = plan.benchmarks[0]
    rows = [
        {
            "metric": "latency.mean", "kind": "one_way_half_rtt", "tool": benchmark.tool,
            "test": benchmark.title, "size": size, "transport": transport, "value": value * 1e6,
        }
        for size in benchmark.sizes
        for transport in plan.transports
        for value in (1079.4, 1179.4, 1302.4)
    ]  # fmt: skip
    screen = io.StringIO()
    parts = run_tables._comparison(pl.DataFrame(rows), plan, "latency.mean", "Latency, µs", 1e-3)
    Console(width=80, file=screen).print(*parts, sep="\n")
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    for transport in plan.transports:
        mine = [line for line in lines if transport in line.split()]
        assert len(mine) == len(benchmark.sizes)
        assert all("1,179,400 (1,079,400 to 1,302,400)" in line for line in mine)


def test_two_runs_in_the_same_second_get_two_folders(tmp_path: Path) -> None:
    paths = {RunFolder.create(tmp_path, PLAN, {}).path for _ in range(5)}
    assert len(paths) == 5


def test_a_run_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot make a run folder"):
        runner.run(PLAN, FakeTestbed(), tmp_path / "file")


@pytest.mark.parametrize(
    "change",
    [
        {"plan": []},
        {"plan": {"plan": {"name": "../../x", "transports": ["tcp"]}}},
        {"nodes": []},
        {"nodes": {"n1": 5}},
        {"accelerator": None},
    ],
)
def test_a_hostile_run_json_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    first = runner.run(PLAN, FakeTestbed(), tmp_path)
    path = first.path / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UsageError):
        runner.run(PLAN, FakeTestbed(), tmp_path, resume=first.path)


def test_links_in_a_hostile_run_are_not_followed(tmp_path: Path) -> None:
    first = runner.run(PLAN, FakeTestbed(), tmp_path / "runs")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("")
    (first.path / "cells" / ".x").symlink_to(precious)
    (first.path / "cells" / ".y").write_text("")
    RunFolder.open(first.path)
    assert (precious / "file").exists()
    assert cells_on_disk(first.path) == sorted(CELLS)


def test_a_run_says_that_its_repetitions_are_few(tmp_path: Path) -> None:
    """Unless others have the rest of them."""
    once = replace(PLAN, repetitions=1)
    alone, among = Watcher(), Watcher()
    runner.run(once, FakeTestbed(), tmp_path, progress=alone)
    runner.run(once, FakeTestbed(), tmp_path, progress=among, one_of_several=True)
    (said,) = alone.notes
    assert "no confidence interval" in said
    assert among.notes == []


def test_remaining_time_is_estimated_from_similar_cells() -> None:
    cells = list(PLAN.cells())
    slow = next(cell for cell in cells if cell.transport.name == "rxe-v2")
    fast = next(cell for cell in cells if cell.transport.name == "tcp")
    estimate = Estimate()
    assert estimate.seconds_left(cells) is None
    estimate.add(slow, 10)
    assert estimate.seconds_left([fast]) == 10
    estimate.add(fast, 2)
    assert estimate.seconds_left([slow, fast, fast]) == 14
    assert estimate.seconds_left([]) == 0


class _Interrupting:
    """Raises KeyboardInterrupt as a signal's handler does: at line `at` of those run in rocelab."""

    def __init__(self, at: int = -1) -> None:
        self.at = at
        self.passed = 0
        self.first: dict[tuple[str, int], int] = {}
        """When each line ran for the first time."""

    def __enter__(self) -> _Interrupting:
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        # coverage's, without which nothing after this is measured
        sys.settrace(self._before)

    def _call(self, frame: FrameType, event: str, arg: object) -> Any:
        del event, arg
        return self._line if _OURS in frame.f_code.co_filename else None

    def _line(self, frame: FrameType, event: str, arg: object) -> Any:
        del arg
        if event == "line":
            self.passed += 1
            self.first.setdefault((frame.f_code.co_filename, frame.f_lineno), self.passed)
        if self.passed == self.at:
            sys.settrace(None)
            raise KeyboardInterrupt("SIGTERM")
        return self._line


# on the way into or out of `with`, Python closes the file because nobody has it any more
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_interrupted_at_any_line(tmp_path: Path) -> None:
    """A run that was announced never stays `running`; each can be continued."""
    with _Interrupting() as whole:
        runner.run(PLAN, FakeTestbed(), tmp_path / "whole")
    for at in random.Random(626).sample(sorted(whole.first.values()), 60):
        watcher = Watcher()
        out = tmp_path / str(at)
        with _Interrupting(at), suppress(KeyboardInterrupt):
            runner.run(PLAN, FakeTestbed(), out, progress=watcher)
        for path in out.glob("*"):
            if not any(path.iterdir()):
                path.rmdir()  # the line after it was made
                continue
            allowed = {"interrupted", "complete"} | ({"killed"} if watcher.kept < 0 else set())
            assert RunFolder(path).meta()["status"] in allowed
            resumed = runner.run(PLAN, FakeTestbed(), out, resume=path)
            assert (resumed.exit_code, resumed.ok) == (ExitCode.OK, len(CELLS))


def test_nodes_are_asked_for_their_addresses_once(tmp_path: Path) -> None:
    """In a run; and again after a cell that failed, as their devices may be others then."""

    def fails_once(bed: FakeTestbed, argv: tuple[str, ...]) -> str | None:
        begun = sum("ib_send_bw" in each for each in bed.clients)
        # the first one warms up
        return "nonsense" if "ib_send_bw" in argv and begun == 2 else None

    beds = {name: FakeTestbed(on_client=each) for name, each in (("a", None), ("b", fails_once))}
    for name, bed in beds.items():
        runner.run(PLAN, bed, tmp_path / name)
    asked = {
        name: sum(any("gid_attrs/types" in word for word in argv) for argv in bed.commands)
        for name, bed in beds.items()
    }
    assert asked == {"a": 2, "b": 4}
