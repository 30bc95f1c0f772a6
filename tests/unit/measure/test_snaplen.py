# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of each frame a capture keeps: the plan decides, and every frame is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fake_testbed import MESSAGES, FakeTestbed
from rocelab.measure import runner, snaplen
from rocelab.plans import plan_file
from rocelab.plans.plan import Plan
from rocelab.record import read
from rocelab.report.proof_tables import section
from rocelab.studies import library
from rocelab.testbed.interface import WHOLE_FRAMES

PLAN = """
[plan]
name = "p"
repetitions = 1
transports = ["rxe-v2", "tcp"]
probes = []
[testbed]
nodes = 4
switches = 1
[[benchmark]]
{}
"""
MIB = 1 << 20


def plan(benchmark: str) -> Plan:
    return plan_file.from_toml(PLAN.format(benchmark), "p.toml")


def kept(benchmark: str, transport: str = "rxe-v2") -> int:
    (cell,) = (c for c in plan(benchmark).cells() if c.transport.name == transport)
    return snaplen.choose(cell, cell.benchmark.sizes)


def bench(tool: str, test: str, size: int, iterations: int, mpi: str = "") -> str:
    table = f"[benchmark.mpi]\n{mpi}" if mpi else ""
    return f'tool = "{tool}"\ntest = "{test}"\nsizes = [{size}]\niterations = {iterations}\n{table}'


@pytest.mark.parametrize(
    ("benchmark", "whole"),
    [
        # 256 MiB, back and forth
        (bench("perftest", "write_lat", MIB, 128), True),
        (bench("perftest", "write_lat", MIB, 129), False),
        (bench("perftest", "write_bw", MIB, 5000), False),
        # a duration instead of a number of messages
        (bench("perftest", "write_bw", 64, 10) + "cpu_util = true", False),
        (bench("rcopy", "put", 256 * MIB, 10), True),
        (bench("mpibench", "latency", MIB, 128), True),
        (bench("mpibench", "latency", MIB, 128, "ranks = 8"), True),
        (bench("mpibench", "multi_lat", MIB, 128, "ranks = 8"), False),
        # a window of messages
        (bench("mpibench", "bw", MIB, 128, "window = 1"), True),
        (bench("mpibench", "bw", MIB, 128, "window = 2"), False),
        (bench("mpibench", "alltoall", 65536, 128, "ranks = 4"), True),
        (bench("mpibench", "alltoall", 65536, 129, "ranks = 4"), False),
        # it chooses its own messages
        ('tool = "hpcc"\ntest = "all"\n', False),
        ('tool = "npb"\ntest = "cg"\n', False),
    ],
)
def test_small_steps_keep_whole_frames(benchmark: str, whole: bool) -> None:
    assert kept(benchmark) == (WHOLE_FRAMES if whole else snaplen.HEADERS_ONLY)


def test_tcp_keeps_headers_only() -> None:
    assert kept(bench("perftest", "write_lat", 64, 10), "tcp") == snaplen.HEADERS_ONLY


def test_all_sizes_of_a_step_count() -> None:
    cells = plan(bench("mpibench", "latency", MIB, 100)).cells()
    (cell,) = (c for c in cells if c.transport.is_rxe)
    assert snaplen.choose(cell, (MIB,)) == WHOLE_FRAMES
    assert snaplen.choose(cell, (MIB, MIB)) == snaplen.HEADERS_ONLY


def test_built_in_plans_keep_whole_frames() -> None:
    """The demo and the quick plan of every study."""
    plans = [
        plan_file.load("demo"),
        *(library.plan(name, quick=True) for name in library.NAMES),
    ]
    for each in plans:
        for cell in each.cells():
            if cell.transport.family == "verbs":
                assert snaplen.choose(cell, cell.benchmark.sizes) == WHOLE_FRAMES


def test_truncated_frames_count_like_whole_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proof and results are the same; cell.json and the report state the snap length."""
    benchmark = bench("perftest", "send_bw", 64, MESSAGES) + 'transports = ["rxe-v2"]'
    steps, notes = {}, {}
    for bound in (snaplen.WHOLE_UP_TO, 0):
        monkeypatch.setattr(snaplen, "WHOLE_UP_TO", bound)
        monkeypatch.setattr(snaplen, "HEADERS_ONLY", 60)
        outcome = runner.run(plan(benchmark), FakeTestbed(), tmp_path / str(bound))
        assert outcome.ok == 1
        (cell,) = (outcome.path / "cells").iterdir()
        (steps[bound],) = json.loads((cell / "cell.json").read_text())["steps"]
        notes[bound] = " ".join(n.text for n in section(read.load(outcome.path)).notes)
    whole, cut = steps.values()
    assert (whole.pop("capture"), cut.pop("capture")) == (
        {"snaplen": 65535, "whole_frames": True, "lost": 0, "not_kept": 0},
        {"snaplen": 60, "whole_frames": False, "lost": 0, "not_kept": 0},
    )
    assert whole["frames"] == cut["frames"]
    assert whole["proof"] == cut["proof"]
    said = "first 60 bytes of each"
    assert [said in text for text in notes.values()] == [False, True]
