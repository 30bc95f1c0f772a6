# SPDX-License-Identifier: GPL-2.0-or-later
"""Times come from a pass without probes, and the report says what watching cost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from fake_testbed import MESSAGES, PERFTEST, FakeTestbed
from rocelab import metrics, units
from rocelab.accelerators import ACCELERATORS
from rocelab.measure import runner
from rocelab.measure.probes import watched
from rocelab.measure.probes.loaded_probes import LoadedProbes, ProbeTask
from rocelab.plans import plan_file
from rocelab.plans.plan import Plan
from rocelab.record import read
from rocelab.report import watching
from rocelab.testbed.node import Node

pytestmark = pytest.mark.slow

PLAN = f"""
[plan]
name = "twice"
repetitions = 1
transports = ["rxe-v2"]
probes = ["rxestat"]
{{}}
[[benchmark]]
tool = "perftest"
test = "send_bw"
sizes = [64]
iterations = {MESSAGES}
"""


def plan(line: str = "") -> Plan:
    return plan_file.from_toml(PLAN.format(line), "p.toml")


@pytest.fixture
def attached(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """rxestat attaches to the fake nodes, and writes nothing; returns the folders it ran for."""
    folders: list[str] = []

    @contextmanager
    def rxestat(
        _probes: LoadedProbes,
        _nodes: Sequence[Node],
        _devices: Sequence[str],
        _watched: Sequence[ProbeTask],
        folder: Path,
    ) -> Iterator[None]:
        folders.append(folder.name)
        yield

    monkeypatch.setattr(watched.run_rxestat, "rxestat", rxestat)
    return folders


def _run(text: str, accelerator: str, to: Path) -> tuple[runner.RunOutcome, FakeTestbed]:
    """Run the plan where each pass after the first measures half of the bandwidth."""

    def slower(bed: FakeTestbed, _: tuple[str, ...]) -> str | None:
        if len(bed.clients) != 3:  # warm-up, timing, watched
            return None
        lines = PERFTEST.splitlines()
        row = next(i for i, line in enumerate(lines) if line.startswith(" #bytes")) + 1
        words = lines[row].split()
        words[3:5] = f"{float(words[3]) / 2:.2f}", f"{float(words[4]) / 2:.6f}"
        lines[row] = " " + " ".join(words)
        return "\n".join(lines)

    bed = FakeTestbed(on_client=slower, accelerator=accelerator)
    return runner.run(plan(text), bed, to), bed


def test_on_real_machines_a_watched_step_is_timed_first(
    tmp_path: Path, attached: list[str]
) -> None:
    outcome, bed = _run("", "native", tmp_path)
    assert outcome.ok == 1
    assert len(bed.clients) == 3
    assert attached == ["64"]
    (cell,) = (outcome.path / "cells").iterdir()
    (step,) = json.loads((cell / "cell.json").read_text())["steps"]
    assert step["timing"]["proof"]["ok"]
    assert (cell / "64/timing/wire.pcap").exists()
    results = pl.read_parquet(outcome.path / "results.parquet")

    def one(metric: str) -> float:
        (value,) = results.filter(pl.col("metric") == metric)["value"]
        return float(value)

    for metric in (metrics.BANDWIDTH, metrics.MESSAGE_RATE):
        assert one(metrics.Watched(metric).name) == pytest.approx(one(metric) / 2, rel=1e-3)
    section = watching.section(read.load(outcome.path))
    assert section is not None
    rows = {row[3]: row for row in section.tables[0].rows}
    assert set(rows) == {"bandwidth", "message rate"}
    assert float(rows["bandwidth"][-1].split()[0].replace(units.MINUS, "-")) == pytest.approx(
        -50, abs=0.1
    )


@pytest.mark.parametrize(
    ("accelerator", "line", "passes"),
    [
        *((name, "", 2 if row.is_real_time else 1) for name, row in ACCELERATORS.items()),
        ("native", "timing_pass = false", 1),
        ("icount", "timing_pass = true", 2),
    ],
)
def test_where_times_are_real(
    accelerator: str, line: str, passes: int, tmp_path: Path, attached: list[str]
) -> None:
    outcome, bed = _run(line, accelerator, tmp_path)
    assert outcome.ok == 1
    assert len(bed.clients) == 1 + passes
    assert (watching.section(read.load(outcome.path)) is None) == (passes == 1)
    assert plan_file.from_dict(plan(line).to_dict(), "run.json") == plan(line)


def test_an_unproven_timing_pass_fails_the_cell(tmp_path: Path, attached: list[str]) -> None:
    """Though the pass with probes is proven."""

    def stray(bed: FakeTestbed, _: tuple[str, ...]) -> None:
        if len(bed.clients) == 2:
            bed.nodes[0].sent += 1

    bed = FakeTestbed(on_client=stray, accelerator="native")
    outcome = runner.run(plan(), bed, tmp_path)
    (name,) = outcome.failed
    error = json.loads((outcome.path / "cells" / name / "cell.json").read_text())["error"]
    assert error["kind"] == "proof"
    assert "64 bytes: not proven" in error["what"]
    assert "pass timing" in error["what"]
