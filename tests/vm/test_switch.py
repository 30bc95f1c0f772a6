# SPDX-License-Identifier: GPL-2.0-or-later
"""MPI on three machines over a fourth that is a switch, proven where frames arrive."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack

import polars as pl
import pytest

import vmlab
from requirements import missing
from rocelab.errors import ExitCode, MissingError
from rocelab.measure import runner, snaplen
from rocelab.plans import plan_file
from rocelab.record import results_table
from rocelab.testbed import artifacts, linktap
from rocelab.testbed.node.endpoint import Endpoint
from rocelab.testbed.node.prepare_node import DEVICE, install_probes, prepare
from rocelab.testbed.qemu import bring_up
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rocelab.testbed.ssh.ssh_testbed import SshTestbed

pytestmark = pytest.mark.long
PLAN = """
[plan]
name = "switch"
repetitions = 1
transports = ["rxe-v2"]
probes = []
[testbed]
nodes = 3
switches = 1
[[benchmark]]
tool = "mpibench"
test = "bcast"
sizes = [4, 4096]
iterations = 10
timeout = 300
[benchmark.mpi]
ranks = 3
[[benchmark]]
tool = "perftest"
test = "send_bw"
events = true
sizes = [4096]
iterations = 50
qp_timeout = 18
"""


@pytest.fixture(scope="module")
def testbed() -> Iterator[QemuTestbed]:
    try:
        made = bring_up.up(
            f"switch-{os.getpid()}",
            line=vmlab.LINE,
            mtu=vmlab.MTU,
            nodes=3,
            switches=1,
            memory_mb=768,
            emulation="tcg",
            lifeline=True,
        )
    except MissingError as error:
        missing(f"{error.what}: {error.action}")
    try:
        prepare(made.nodes, artifacts.driver(vmlab.LINE), artifacts.programs(vmlab.LINE))
        with vmlab.healthy(made.machines, "switch"):
            yield made
    finally:
        made.down()


def forwarded(testbed: QemuTestbed) -> int:
    """Return the packets that the switch's bridge on the data link has forwarded."""
    assert testbed.switch is not None
    return sum(
        int(text)
        for text in testbed.switch.run(
            ("sh", "-c", "cat /sys/class/net/hop1/lower_*/statistics/rx_packets")
        ).stdout.split()
    )


def test_as_hosts_of_ones_own_each_captures_what_arrives(
    testbed: QemuTestbed, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three captures together have as many RoCE packets as the drivers count, cut to headers."""
    monkeypatch.setattr(snaplen, "WHOLE_UP_TO", 0)
    for node in testbed.nodes:
        install_probes(node, [artifacts.probe(linktap.TAP, vmlab.LINE)])
    ends = [Endpoint(node.name, node.link, DEVICE, node) for node in testbed.nodes]
    text = PLAN.replace("nodes = 3\nswitches = 1", 'provider = "ssh"\nnodes = 3\nswitches = 1')
    plan = plan_file.from_toml(text.replace("bcast", "alltoall"), "hosts.toml")
    outcome = runner.run(plan, SshTestbed(ends, ExitStack()), tmp_path)
    assert outcome.exit_code is ExitCode.OK, outcome
    (cell,) = (outcome.path / "cells").glob("mpibench-*")
    (step,) = json.loads((cell / "cell.json").read_text())["steps"]
    headers = {"snaplen": snaplen.HEADERS_ONLY, "whole_frames": False}
    assert step["capture"] == {**headers, "lost": 0, "not_kept": 0}
    sent = sum(counted["rxe"]["sent_pkts"] for counted in step["counters"].values())
    assert step["frames"]["roce_v2"] == sent > 0
    # the first does not see the traffic between the second and the third
    assert sum(step["counters"]["n1"]["rxe"][name] for name in ("sent_pkts", "rcvd_pkts")) < sent
    (wire,) = cell.glob("*/wire.pcap")
    assert wire.stat().st_size <= 24 + step["frames"]["frames"] * (16 + snaplen.HEADERS_ONLY)


def test_all_nodes_exchange_over_the_switch(testbed: QemuTestbed, tmp_path) -> None:
    """Drivers, ports of the switch and captures at its cards count the same RoCE packets."""
    before = forwarded(testbed)
    outcome = runner.run(plan_file.from_toml(PLAN, "switch.toml"), testbed, tmp_path)
    assert outcome.exit_code is ExitCode.OK, outcome
    crossed = forwarded(testbed) - before
    table = results_table.load(outcome.path)
    sent = table.filter(pl.col("metric") == "driver.sent_pkts")
    assert sorted(sent.filter(pl.col("tool") == "mpibench")["node"]) == ["n1", "n2", "n3"]
    assert sorted(sent.filter(pl.col("tool") == "perftest")["node"]) == ["n1", "n2"]
    frames = table.filter(pl.col("metric") == "wire.frames", pl.col("kind") == "roce_v2")
    assert frames["value"].sum() == sent["value"].sum() > 0
    every = table.filter(pl.col("metric") == "wire.frames")["value"].sum()
    assert crossed >= every
