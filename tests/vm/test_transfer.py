# SPDX-License-Identifier: GPL-2.0-or-later
"""Files over FTP and rcopy: transports proven by the wire, equal content, nothing left behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import rocelab
from rocelab.errors import ExitCode
from rocelab.measure import pair, runner
from rocelab.plans import plan_file
from rocelab.record import read, results_table
from rocelab.testbed.interface import Testbed
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import add_device, offer_roce_v1, remove_device

PLAN = """
[plan]
name = "files"
repetitions = 1
probes = ["rxecpu"]
stacks = true
transports = ["tcp", "rxe-v1", "rxe-v2"]
[[benchmark]]
tool = "rcopy"
test = "put"
sizes = [300000]
[[benchmark]]
tool = "rcopy"
test = "get"
sizes = [300000]
transports = ["tcp", "rxe-v2"]
"""
SIZE = 300_000
_STATE = """
ls -d /tmp/rocelab-probe.* /run/rocelab-file.* /sys/kernel/config/rdma_cm/* 2>/dev/null
pgrep -a 'vsftpd|rcopy|curl'; lsmod | grep -o '^rdma_[a-z]*' | sort
"""


@pytest.fixture
def both(testbed: Testbed) -> Iterator[Testbed]:
    """Give the devices GIDs of both RoCE versions."""
    offer_roce_v1(testbed.nodes)
    yield testbed
    for node in testbed.nodes:
        remove_device(node)
        add_device(node)


def state(nodes: list[Node]) -> list[str]:
    return [node.run(("sh", "-c", _STATE), check=False).stdout for node in nodes]


def sender(run: Path, test: str) -> str:
    """Return the address that sent most of the payload over rxe-v2."""
    (wire,) = run.glob(f"cells/rcopy-{test}.rxe-v2.r01/*/wire.pcap")
    packets = rocelab.open(wire).packets
    of = packets.group_by("src").agg(pl.col("payload_bytes").sum()).sort("payload_bytes")
    return str(of["src"][-1])


def test_a_file_goes_over_each_transport(both: Testbed, tmp_path: Path) -> None:
    """Transfers by vsftpd and curl, and by rcopy over both RoCE versions."""
    before = state(list(both.nodes))
    outcome = runner.run(plan_file.from_toml(PLAN, "files.toml"), both, tmp_path)
    assert outcome.exit_code is ExitCode.OK, outcome
    assert state(list(both.nodes)) == before
    table = results_table.load(outcome.path)
    for test, transport, kind in (
        ("put", "tcp", "tcp"),
        ("put", "rxe-v1", "roce_v1"),
        ("put", "rxe-v2", "roce_v2"),
        ("get", "tcp", "tcp"),
        ("get", "rxe-v2", "roce_v2"),
    ):
        rows = table.filter(transport=transport, test=test)
        whole = rows.filter(metric="transfer.time", kind="whole")["value"].item()
        rate = rows.filter(metric="bandwidth")["value"].item()
        assert rate == pytest.approx(SIZE / whole * 1e9)
        assert rows.filter(metric="wire.payload_bytes")["value"].item() >= SIZE
        assert rows.filter(metric="wire.frames", kind=kind)["value"].min() > 0  # type: ignore[operator]
        # the programs that send and write a file are the benchmark
        busy = rows.filter(metric="cpu.user.benchmark", kind="time")
        assert set(busy["node"]) == {"n1", "n2"}
        assert busy["value"].min() > 0  # type: ignore[operator]
    # the driver's part is only in the stacks of RoCE
    for stacks in read.load(outcome.path).stacks:
        owners = {frames[1] for frames in stacks.microseconds}
        assert ("rxe" in owners) == (stacks.transport != "tcp"), (stacks.transport, owners)
        assert {"benchmark", "network"} <= owners
    assert len(read.load(outcome.path).stacks) == 5
    assert sender(outcome.path, "put") == both.nodes[0].link.ipv4
    assert sender(outcome.path, "get") == both.nodes[1].link.ipv4
    hashes = {
        step["sha256"]
        for record in outcome.path.glob("cells/*/cell.json")
        for step in json.loads(record.read_text())["steps"]
    }
    # different random bytes each
    assert len(hashes) == 5


def test_a_byte_that_changed_is_an_error(
    testbed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a fault, vsftpd and its folder are gone as well."""
    before = state(list(testbed.nodes))
    good = pair.run

    def corrupting(tool, job, client, server, **words):
        done = good(tool, job, client, server, **words)
        server.run(("sh", "-c", 'printf x >> "$1"', "sh", f"{job.folder}/in/file"))
        return done

    monkeypatch.setattr(pair, "run", corrupting)
    text = PLAN.partition('[[benchmark]]\ntool = "rcopy"\ntest = "get"')[0]
    text = text.replace('"tcp", "rxe-v1", "rxe-v2"', '"tcp"').replace("300000", "1")
    outcome = runner.run(plan_file.from_toml(text, "files.toml"), testbed, tmp_path)
    assert outcome.failed
    (record,) = outcome.path.glob("cells/*/cell.json")
    assert (
        "the received file differs from the sent one"
        in json.loads(record.read_text())["error"]["what"]
    )
    assert state(list(testbed.nodes)) == before
