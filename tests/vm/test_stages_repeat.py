# SPDX-License-Identifier: GPL-2.0-or-later
"""What a typical packet costs in each stage of the driver is the same in two runs of one plan.

Nor does it depend on the node: both reach their peer on the same path.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

import vmlab
from rocelab import metrics, stage_table
from rocelab.measure import runner
from rocelab.plans import plan_file
from rocelab.record import read
from rocelab.testbed.interface import Testbed

PLAN = """
[plan]
name = "repeat"
repetitions = 1
transports = ["rxe-v2"]
probes = ["rxestat"]

[[benchmark]]
tool = "perftest"
test = "send_bw"
sizes = [4096]
iterations = 1000
qp_timeout = 21
"""
"""Many packets on the way at once, so that interrupts of the card fall into the driver's work."""
WORST = 0.05

Stages = dict[tuple[str, str, str, str], float]


@pytest.fixture(scope="module")
def counting(boot: vmlab.Boot) -> Iterator[Testbed]:
    """Nodes in lockstep, whose clocks count instructions."""
    with boot(name="repeat", prepared=True, lockstep=True) as testbed:
        yield testbed


def stages(testbed: Testbed, to: Path) -> Stages:
    """What a typical packet costs: by node, opcode class, direction and stage."""
    outcome = runner.run(plan_file.from_toml(PLAN, "repeat.toml"), testbed, to)
    assert not outcome.failed
    parsed = (
        (metrics.Stage.parse(row["metric"]), row) for row in read.results(outcome.path).to_dicts()
    )
    return {
        (row["node"], row["kind"], stage.direction, stage.stage): row["value"]
        for stage, row in parsed
        if stage and stage.figure == metrics.TYPICAL and stage.stage not in stage_table.APART
    }


def test_two_runs_agree(counting: Testbed, tmp_path: Path) -> None:
    first, second = (stages(counting, tmp_path / name) for name in ("first", "second"))
    assert first.keys() == second.keys()
    apart = {
        key: abs(first[key] - second[key]) / (max(first[key], second[key]) or 1) for key in first
    }
    sent = {key[0]: cost for key, cost in first.items() if key[2:] == ("tx", "xmit")}
    assert sent["n1"] == pytest.approx(sent["n2"], rel=0.01)
    assert len(apart) >= len(stage_table.TX) + len(stage_table.DELIVERING)
    assert statistics.median(apart.values()) < 0.001
    assert max(apart.values()) <= WORST, sorted(apart.items(), key=lambda each: each[1])[-3:]
