# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider veth: traffic crosses the pair, counts agree, and nothing is left behind."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl
import pytest

import counted_faults
import vethlab
import vmlab
from command_line import rocelab
from rocelab import correlate
from rocelab.errors import ExitCode, TestbedError
from rocelab.measure import runner
from rocelab.plans import plan_file
from rocelab.record import results_table
from rocelab.testbed import artifacts, linktap
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import add_device, install_probes, remove_device
from rocelab.testbed.veth import pair_setup
from rocelab.testbed.veth.layout import SWITCH, Layout
from rocelab.testbed.veth.veth_testbed import VethTestbed

PLAN = """
[plan]
name = "veth"
repetitions = 1
transports = ["rxe-v2"]
[testbed]
provider = "veth"
[[benchmark]]
tool = "perftest"
test = "send_bw"
events = true
sizes = [64, 4096]
iterations = 60
qp_timeout = 18
[[benchmark]]
tool = "perftest"
test = "write_lat"
sizes = [64]
iterations = 20
qp_timeout = 18
[[benchmark]]
tool = "qperf"
test = "tcp_bw"
sizes = [4096]
transports = ["tcp"]
"""
_BYTES = "/sys/class/net/{}/statistics/tx_bytes"
_STATE = """
ip rule; ip route show table all; ip -br link; ip -br addr; ip neigh show nud permanent; rdma link
sysctl -a 2>/dev/null | grep -E 'rp_filter|accept_local|accept_dad|router_solicitations'
"""


@pytest.fixture(scope="module")
def shared() -> Iterator[VethTestbed]:
    with vethlab.boot(name="veth", icount=False) as testbed:
        yield testbed


@pytest.fixture
def testbed(shared: VethTestbed, request: pytest.FixtureRequest) -> Iterator[VethTestbed]:
    with vmlab.healthy([shared.nodes[0].machine], request.node.name):
        yield shared


@pytest.fixture
def machine(testbed: VethTestbed) -> Node:
    return testbed.nodes[0].machine


def sent_bytes(machine: Node, netdev: str) -> int:
    return int(machine.run(["cat", _BYTES.format(netdev)]).stdout)


def test_a_plan_runs_on_it_and_every_count_agrees(
    testbed: VethTestbed, machine: Node, tmp_path
) -> None:
    """TCP and rxe cross the pair, never lo; each end's probe has all packets of that end."""
    over_lo = sent_bytes(machine, "lo")
    outcome = runner.run(plan_file.from_toml(PLAN, "veth.toml"), testbed, tmp_path)
    assert outcome.exit_code is ExitCode.OK, outcome
    assert sent_bytes(machine, "lo") == over_lo

    table = results_table.load(outcome.path)
    values = {(r["test"], r["size"], r["node"], r["metric"], r["kind"]): r["value"]
              for r in table.iter_rows(named=True)}  # fmt: skip
    for test, size in (("send_bw", 64), ("send_bw", 4096), ("write_lat", 64)):
        counted = 0
        for node in ("n1", "n2"):
            sent = values[test, size, node, "driver.sent_pkts", "counter"]
            seen = {
                key: n for key, n in values.items() if key[:4] == (test, size, node, "packets.tx")
            }
            assert sum(seen.values()) == sent > 0
            counted += sent
        assert values[test, size, "wire", "wire.frames", "roce_v2"] == counted
    # the client's sixty SENDs of one packet each
    assert values["send_bw", 64, "n1", "packets.tx", "SEND"] == 60
    assert ("send_bw", 64, "n2", "packets.tx", "SEND") not in values
    carried = values["tcp_bw", 4096, "wire", "wire.payload_bytes", "tcp"]
    assert values["tcp_bw", 4096, "n1", "netdev.tx_bytes", "counter"] > carried

    meta = json.loads((outcome.path / "run.json").read_text())
    assert meta["testbed"]["provider"] == "veth"
    assert meta["testbed"]["one_clock"] is True
    assert "not outside the node" in meta["testbed"]["witness"]
    assert {name: node["verbs"]["device"] for name, node in meta["nodes"].items()} == {
        "n1": "rxe0",
        "n2": "rxe1",
    }


ONE_WAY = """
[plan]
name = "one-way"
repetitions = 1
transports = ["rxe-v2"]
probes = ["rxestat", "rxedump"]
[testbed]
provider = "veth"
[[benchmark]]
tool = "perftest"
test = "write_lat"
sizes = [64]
iterations = 20
qp_timeout = 20
"""
DELAY_MS = 40
PAIR = Layout(vmlab.MTU)


@contextmanager
def late_arrivals(machine: Node, netdev: str) -> Iterator[None]:
    """Delay frames between the sender's device and the receiver's driver.

    A queueing discipline at the sender would count as its stage `xmit`.
    """
    commands = (
        ("ip", "link", "add", "late", "type", "ifb"),
        ("ip", "link", "set", "late", "up"),
        ("tc", "qdisc", "add", "dev", "late", "root", "netem", "delay", f"{DELAY_MS}ms"),
        ("tc", "qdisc", "add", "dev", netdev, "ingress"),
        (
            *("tc", "filter", "add", "dev", netdev, "ingress", "matchall"),
            *("action", "mirred", "egress", "redirect", "dev", "late"),
        ),
    )
    try:
        for command in commands:
            machine.run(command)
        yield
    finally:
        machine.run(("tc", "qdisc", "del", "dev", netdev, "ingress"), check=False)
        machine.run(("ip", "link", "delete", "late"), check=False)


def test_one_clock_tells_each_way_apart(testbed: VethTestbed, machine: Node, tmp_path) -> None:
    """A delay in one direction is completely in that direction's times and in no others."""
    with late_arrivals(machine, testbed.nodes[1].link.netdev):
        outcome = runner.run(plan_file.from_toml(ONE_WAY, "one-way.toml"), testbed, tmp_path)
    assert outcome.exit_code is ExitCode.OK, outcome
    (step,) = (outcome.path / "cells").glob("*/64")
    traces = [step / f"{node.name}.pcapng" for node in testbed.nodes]
    joined = correlate.join(step / "wire.pcap", traces)
    assert joined.unexplained == 0
    answered = correlate.messages(joined.packets, one_clock=True).filter("answered", "clean")
    # both ends of a ping-pong write, so each direction has one requester
    delayed = pl.col("requester") == "n1"
    out, home = answered.filter(delayed), answered.filter(~delayed)
    assert min(len(out), len(home)) >= 5
    for ours, other in ((out["there_ns"], out["back_ns"]), (home["back_ns"], home["there_ns"])):
        assert ours.min() >= DELAY_MS * 1_000_000
        assert other.min() >= 0
        assert other.median() < DELAY_MS * 1_000_000
    # with one clock, both ways and the responder's time are parts of the requester's
    parts = answered["there_ns"] + answered["back_ns"]
    assert (parts <= answered["requester_ns"]).all()


def test_the_loop_counts_events(machine: Node) -> None:
    """rcloop reads a counter of each processor; an emulated one has no cycles, but a clock."""
    words = (vethlab.LOOP, "rxe0", "rxe1", "64", "40")
    loops = [
        dict(pair.split("=") for pair in machine.run((*words, *event)).stdout.split())
        for event in ((), ("cpu-clock",))
    ]
    assert "median_cycles" not in loops[0]
    assert float(loops[1]["median_cpu-clock"]) == pytest.approx(
        float(loops[1]["median_ns"]), rel=0.2
    )
    refused = machine.run((*words, "branches"), check=False)
    assert "no event branches" in refused.stderr
    assert refused.returncode == ExitCode.USAGE


def test_a_broken_capture_is_an_error(testbed: VethTestbed, machine: Node, tmp_path) -> None:
    """A capture that ended early proves nothing."""
    with (
        pytest.raises(TestbedError, match="not complete"),
        testbed.capture(tmp_path / "wire.pcap"),
    ):
        machine.run(["pkill", "-KILL", "-x", linktap.TAP])


def test_another_rule_that_comes_first_is_noticed(machine: Node) -> None:
    """Packets over lo could be mistaken for packets over the pair."""
    rule = ("pref", "50", "iif", "lo", "to", "10.45.0.2", "lookup", "local")
    machine.run(["ip", "rule", "add", *rule])
    try:
        with pytest.raises(TestbedError, match="would not cross the veth pair") as caught:
            pair_setup.check(machine, PAIR)
        assert "ip rule" in caught.value.action
    finally:
        machine.run(["ip", "rule", "del", *rule])
    pair_setup.check(machine, PAIR)


def test_what_make_changed_is_as_before(testbed: VethTestbed, machine: Node) -> None:
    """A failed set-up is undone too: a second pair cannot be made next to the first."""

    def state() -> str:
        return machine.run(["sh", "-c", _STATE]).stdout

    pair_setup.remove(machine)
    before = state()
    assert "rocelab" not in before
    assert before.count("0:\tfrom all lookup local") == 1
    pair_setup.remove(machine)
    assert state() == before
    try:
        machine.run(["ip", "link", "add", "rocelab2", "type", "dummy"])
        with pytest.raises(TestbedError, match="rocelab2"):
            pair_setup.make(machine, PAIR)
        machine.run(["ip", "link", "delete", "rocelab2"])
        assert state() == before
        pair_setup.make(machine, PAIR)
        assert "lookup 4791" in state()
        pair_setup.remove(machine)
        assert state() == before
    finally:
        pair_setup.make(machine, PAIR)
        for node in testbed.nodes:
            add_device(node)


def test_the_command_line_knows_both_ends(testbed: VethTestbed) -> None:
    name = testbed.spec.name
    listed = json.loads(rocelab("status", "--json").stdout)["nodes"]
    keys = ("provider", "node", "state", "data_address")
    rows = [tuple(row[key] for key in keys) for row in listed if row["testbed"] == name]
    assert rows == [("veth", "n1", "up", "10.45.0.1"), ("veth", "n2", "up", "10.45.0.2")]
    # whole, however long the names of testbeds are
    status = rocelab("status").stdout
    assert name in status
    assert "10.45.0.1" in status
    assert "…" not in status
    for node in ("n1", "n2"):
        assert rocelab("ssh", "--name", name, node, "rdma", "link").stdout.count("rxe") == 2
    refused = rocelab("run", "demo", "--icount", "--provider", "ssh")
    assert refused.returncode == int(ExitCode.USAGE)
    assert "--icount" in refused.stderr


def test_faults_by_tc(testbed: VethTestbed, machine: Node, tmp_path) -> None:
    """tc, capture, both drivers and the analyzer agree on each packet; all is as before."""
    before = counted_faults.leftovers(machine)
    text = counted_faults.PLAN.format(provider="veth") + counted_faults.KILLED
    outcome = runner.run(plan_file.from_toml(text, "counted.toml"), testbed, tmp_path)
    client, server = testbed.nodes
    counted_faults.check_packets(outcome.path, client, server)
    counted_faults.check_kill(outcome.path, client)
    assert outcome.exit_code is ExitCode.OK
    assert counted_faults.leftovers(machine) == before


SWITCHED = Layout(vmlab.MTU, count=3, switches=2)
RANKS = """
[plan]
name = "ranks"
repetitions = 1
transports = ["tcp", "rxe-v2"]
probes = []
[testbed]
provider = "veth"
nodes = 3
switches = 2
[[benchmark]]
tool = "mpibench"
test = "allreduce"
sizes = [4, 4096]
iterations = 10
timeout = 300
[benchmark.mpi]
ranks = 3
"""
SLOW = """
[plan]
name = "slow"
repetitions = 1
transports = ["rxe-v2"]
[testbed]
provider = "veth"
nodes = 3
switches = 2
[testbed.link]
rate_mbit = 4
delay_us = 30000
loss_ppm = 50000
[[benchmark]]
tool = "perftest"
test = "send_bw"
events = true
sizes = [4096]
iterations = 100
qp_timeout = 15
[[benchmark]]
tool = "qperf"
test = "tcp_lat"
sizes = [64]
transports = ["tcp"]
"""


@pytest.fixture
def switched(testbed: VethTestbed, machine: Node) -> Iterator[VethTestbed]:
    """Three ends over two bridges in a row instead of the pair."""
    pair_setup.remove(machine)
    pair_setup.make(machine, SWITCHED)
    other = VethTestbed(testbed.host, SWITCHED)
    install_probes(machine, [artifacts.mpibench(vmlab.LINE)])
    for node in other.nodes:
        add_device(node)
    yield other
    for node in other.nodes:
        remove_device(node)
    pair_setup.remove(machine)
    pair_setup.make(machine, PAIR)
    for node in testbed.nodes:
        add_device(node)


def forwarded(machine: Node, netdev: str) -> int:
    """Return the frames that a bridge received from a port or from the previous bridge."""
    argv = ["ip", "-n", SWITCH, "-s", "-j", "link", "show", "dev", netdev]
    (link,) = json.loads(machine.run(argv).stdout)
    return int(link["stats64"]["rx"]["packets"])


@pytest.mark.long
def test_mpi_between_three_ends_crosses_every_bridge(
    switched: VethTestbed, machine: Node, tmp_path
) -> None:
    """Driver and wire prove each transport; packets of the first end take both hops."""
    ports = ("port1", "hop-down2", "port2", "port3")
    before = {port: forwarded(machine, port) for port in ports}
    outcome = runner.run(plan_file.from_toml(RANKS, "ranks.toml"), switched, tmp_path)
    assert outcome.exit_code is ExitCode.OK, outcome
    crossed = {port: forwarded(machine, port) - before[port] for port in ports}
    assert crossed["port1"] == crossed["hop-down2"] > 0
    table = results_table.load(outcome.path)
    sent = table.filter(pl.col("metric") == "driver.sent_pkts", pl.col("transport") == "rxe-v2")
    assert sorted(sent["node"]) == ["n1", "n2", "n3"]
    frames = table.filter(pl.col("metric") == "wire.frames")
    by_kind = {
        kind: frames.filter(pl.col("kind") == kind)["value"].sum() for kind in ("roce_v2", "tcp")
    }
    # each rank connects to itself within the driver, by seven packets with UCX 1.18
    assert 0 <= sent["value"].sum() - by_kind["roce_v2"] <= 3 * 32
    assert by_kind["roce_v2"] > 3 * 32
    # every frame entered by a port once
    assert by_kind["tcp"] + by_kind["roce_v2"] <= sum(crossed[p] for p in ports if "port" in p)


def soonest_ms(machine: Node) -> float:
    """Return the fastest of many echoes between the first end and the second."""
    argv = ("ping", "-q", "-c", "300", "-i", "0.002", "-I", "10.45.0.1", "10.45.0.2")
    summary = machine.run(argv).stdout.splitlines()[-1]
    # rtt min/avg/max/mdev = …
    return float(summary.split(" = ")[1].split("/")[0])


@pytest.mark.long
def test_each_switch_costs_time(testbed: VethTestbed, machine: Node) -> None:
    """The fastest round trip grows from no bridge to one and to five, measured in turns."""
    soonest = dict.fromkeys((0, 1, 5), math.inf)
    try:
        for switches in (*soonest, *soonest):
            pair_setup.remove(machine)
            pair_setup.make(machine, Layout(vmlab.MTU, switches=switches))
            soonest[switches] = min(soonest[switches], soonest_ms(machine))
    finally:
        pair_setup.remove(machine)
        pair_setup.make(machine, PAIR)
        for node in testbed.nodes:
            add_device(node)
    assert soonest[0] < soonest[1] < soonest[5], soonest


@pytest.mark.long
def test_a_plans_link_is_late_slow_and_loses(
    switched: VethTestbed, machine: Node, tmp_path
) -> None:
    """Rate, delay and loss show in the numbers; loss is counted; all is restored."""
    netdevs = [node.link.netdev for node in switched.nodes]
    disciplines = [machine.run(["tc", "qdisc", "show", "dev", each]).stdout for each in netdevs]
    outcome = runner.run(plan_file.from_toml(SLOW, "slow.toml"), switched, tmp_path)
    assert outcome.exit_code is ExitCode.OK, outcome
    after = [machine.run(["tc", "qdisc", "show", "dev", each]).stdout for each in netdevs]
    assert after == disciplines
    values = {(r["test"], r["node"], r["metric"], r["kind"]): r["value"]
              for r in results_table.load(outcome.path).iter_rows(named=True)}  # fmt: skip
    # half a round trip, in ns
    assert values["tcp_lat", "n1", "latency.mean", "one_way_half_rtt"] >= 30e6
    assert values["send_bw", "n1", "bandwidth", "one_way"] <= 4e6 / 8
    sent, lost, received = (
        sum(values["send_bw", node, name, "counter"] for node in ("n1", "n2"))
        for name in ("driver.sent_pkts", "link.dropped", "driver.rcvd_pkts")
    )
    frames = values["send_bw", "wire", "wire.frames", "roce_v2"]
    assert 0 < sent - frames <= lost
    assert frames == received
    # a hundred messages of one packet, and retransmissions of lost ones
    assert values["send_bw", "n1", "driver.sent_pkts", "counter"] > 100
