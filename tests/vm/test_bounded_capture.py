# SPDX-License-Identifier: GPL-2.0-or-later
"""A capture on hosts does not grow with the traffic, and the proof still counts every frame."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rocelab.errors import ExitCode
from rocelab.measure import runner
from rocelab.plans import plan_file
from rocelab.plans.catalog import TRANSPORTS
from rocelab.testbed import linktap
from rocelab.testbed.ssh import inventory, ssh_testbed

_PLAN = """
[plan]
name = "bounded"
repetitions = 1
probes = []
transports = ["tcp", "rxe-v2"]
[testbed]
provider = "ssh"
[[benchmark]]
tool = "perftest"
test = "send_bw"
events = true
sizes = [4096]
iterations = 100
seconds = 1
qp_timeout = 18
"""
_MAX = 20_000


def test_frames_beyond_the_bound_are_counted(
    foreign_hosts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linktap, "MAX_BYTES", _MAX)
    plan = plan_file.from_toml(_PLAN, "bounded.toml")
    hosts = inventory.load(foreign_hosts)
    two = ssh_testbed.up(hosts, transports=[TRANSPORTS["rxe-v2"]])
    try:
        outcome = runner.run(plan, two, tmp_path)
    finally:
        two.down()
    assert outcome.exit_code is ExitCode.OK, outcome
    for path in outcome.path.glob("cells/*/cell.json"):
        cell = json.loads(path.read_text())
        (step,) = cell["steps"]
        assert step["proof"]["ok"]
        assert 10_000 < next(path.parent.rglob("wire.pcap")).stat().st_size <= _MAX
        seen, capture = step["frames"], step["capture"]
        assert 0 < capture["not_kept"] < seen["frames"]
        if cell["transport"] == "rxe-v2":
            sent = sum(counted["rxe"]["sent_pkts"] for counted in step["counters"].values())
            assert seen["roce_v2"] == sent
