# SPDX-License-Identifier: GPL-2.0-or-later
"""A size that does not end in time costs no other size its result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fake_testbed import MESSAGES, FakeTestbed
from rocelab import metrics
from rocelab.errors import StallError
from rocelab.measure import cell as cells
from rocelab.measure import runner
from rocelab.measure.mpi import mpi_step
from rocelab.measure.pair_step import Step
from rocelab.measure.rig import Rig
from rocelab.measure.transport_proof import Proof
from rocelab.plans import plan_file
from rocelab.plans.benchmarks.tool import Value
from rocelab.record import read
from rocelab.report import proof_tables

PAIR = f"""
[plan]
name = "slow"
repetitions = 1
transports = ["rxe-v2"]
probes = []
[[benchmark]]
tool = "perftest"
test = "send_bw"
sizes = [64, 128, 256]
iterations = {MESSAGES}
"""
SWEEP = """
[plan]
name = "slow"
repetitions = 1
transports = ["tcp"]
probes = []
[[benchmark]]
tool = "mpibench"
test = "latency"
sizes = [4, 8, 16]
"""


class SlowBed(FakeTestbed):
    """A message of more than 64 bytes takes too long."""

    def benchmark(self, argv: tuple[str, ...]) -> tuple[int, str]:
        said = super().benchmark(argv)
        return said if argv[argv.index("-s") + 1] == "64" else (124, "")


def test_the_sizes_before_a_slow_one_have_results(tmp_path: Path) -> None:
    outcome = runner.run(plan_file.from_toml(PAIR, "p.toml"), SlowBed(), tmp_path)
    assert outcome.failed == ("perftest-send_bw.rxe-v2.r01",)
    results = pl.read_parquet(outcome.path / "results.parquet")
    assert set(results.filter(pl.col("metric") == metrics.BANDWIDTH)["size"]) == {64}
    (note,) = proof_tables.errors(read.load(outcome.path)).notes
    assert "except of the sizes that a stalled cell finished" in note.text


def _sweep(
    slow: tuple[int, ...], tried: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch, to: Path
) -> cells.Outcome:
    """Measure a cell of three sizes whose mpiruns of `slow` do not end."""

    def measure(_: object, sizes: tuple[int, ...], *args: object, **more: Any) -> Step:
        tried.append(sizes)
        (more["into"] / "mpirun.out").write_text("")
        if set(sizes) & set(slow):
            raise StallError("mpirun did not end")
        values = {size: (Value(metrics.LATENCY, "", 10.0, "ns"),) for size in sizes}
        record = {"size": sizes[0] if len(sizes) == 1 else None, "sizes": list(sizes)}
        return Step(record, Proof("tcp", ()), (), values)

    monkeypatch.setattr(mpi_step, "measure", measure)
    (cell,) = plan_file.from_toml(SWEEP, "p.toml").cells()
    return cells.measure(cell, Rig.on(FakeTestbed()), to)


def _sizes(steps: Sequence[Any]) -> list[Any]:
    return [step["sizes"] for step in steps]


def test_a_slow_mpirun_is_tried_by_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[int, ...]] = []
    outcome = _sweep((16,), tried, monkeypatch, tmp_path)
    assert tried == [(4, 8, 16), (4,), (8,), (16,)]
    assert _sizes(outcome.record["steps"]) == [[4], [8]]
    assert outcome.record["error"]["kind"] == "stall"
    assert outcome.record["error"]["size"] == 16
    assert not (tmp_path / "all").exists()


def test_a_quick_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[int, ...]] = []
    outcome = _sweep((), tried, monkeypatch, tmp_path)
    assert tried == [(4, 8, 16)]
    assert outcome.error is None
