# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults exact to the packet: proxy, wire, both drivers' records and the analyzer agree on each."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import counted_faults
from killed_run import Killed
from polling import wait_until
from rocelab import capture
from rocelab.directory import Directory
from rocelab.measure import runner
from rocelab.plans import plan_file
from rocelab.plans.catalog import TRANSPORTS
from rocelab.plans.plan import Plan
from rocelab.record import faults_document
from rocelab.record.faults_document import Event
from rocelab.testbed.node import Node
from rocelab.testbed.qemu import filter_redirector
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rocelab.testbed.qemu.qmp import execute
from rocelab.testbed.ssh import inventory, ssh_testbed

PLAN = """
[plan]
name = "faults"
repetitions = 1
transports = ["rxe-v2"]
probes = ["rxestat", "rxedump"]
[testbed.faults]
drop = { action = "drop", message = 10, packet = 7 }
corrupt = { action = "corrupt", message = 30, packet = 5, bit = 1000 }
twice = { action = "duplicate", message = 50, packet = 5 }
reorder = { action = "reorder", message = 70, packet = 5, count = 2 }
ce = { action = "mark_ce", message = 90, packet = 5 }
cnps = { action = "cnp", message = 100, count = 5 }
late = { action = "delay", message = 110, packet = 15, duration_us = 20000 }
notready = { action = "rnr_nak", message = 130 }
last = { action = "drop", message = 150, packet = -1 }
ack = { action = "drop", direction = "to_client", message = 160, packet = -1 }
flap = { action = "flap", message = 10, packet = 7, duration_us = 300000 }
answer = { action = "drop", direction = "to_client", message = 10, packet = 7 }
begin = { action = "mark_ce", message = 1 }
timed = { action = "drop", at_us = 3000, every_us = 30000, times = 3 }
killed = { action = "kill", message = 10, packet = 1 }
gone = { action = "vanish", message = 10, packet = 1 }
stopped = { action = "stop", message = 10, duration_us = 100000 }
[[benchmark]]
tool = "perftest"
test = "send_bw"
events = true
sizes = [16384]
iterations = 160
path_mtu = 1024
qp_timeout = 18
faults = ["drop", "corrupt", "twice", "reorder", "ce", "cnps", "late", "notready", "last", "ack"]
[[benchmark]]
tool = "perftest"
test = "send_bw"
events = true
label = "flap"
sizes = [16384]
iterations = 20
path_mtu = 1024
qp_timeout = 18
faults = ["flap"]
[[benchmark]]
tool = "perftest"
test = "send_lat"
events = true
sizes = [16384]
iterations = 40
path_mtu = 1024
qp_timeout = 18
faults = ["begin", "timed"]
[[benchmark]]
tool = "perftest"
test = "read_bw"
events = true
sizes = [16384]
iterations = 20
path_mtu = 1024
qp_timeout = 18
faults = ["answer"]
[[benchmark]]
tool = "perftest"
test = "send_lat"
events = true
label = "killed"
sizes = [16384]
iterations = 20
qp_timeout = 18
retry_count = 3
faults = ["killed"]
[[benchmark]]
tool = "perftest"
test = "send_lat"
events = true
label = "gone"
sizes = [16384]
iterations = 20
qp_timeout = 18
retry_count = 3
faults = ["gone"]
[[benchmark]]
tool = "perftest"
test = "send_bw"
events = true
label = "stopped"
sizes = [16384]
iterations = 40
path_mtu = 1024
qp_timeout = 18
rx_depth = 2
faults = ["stopped"]
"""
CLIENT = "10.44.0.1"


@dataclass(frozen=True)
class Step:
    """A measured step: its cell.json entry, what the proxy did, and three views of its packets."""

    record: dict[str, Any]
    events: tuple[Event, ...]
    wire: pl.DataFrame
    drivers: dict[str, pl.DataFrame]

    def event(self, fault: str) -> Event:
        """The one event of a fault that names its packet."""
        (one,) = (
            each
            for each in self.events
            if each.fault == fault and each.done != "lost" and not each.done.startswith("sent ")
        )
        return one

    def recovery(self, fault: str) -> dict[str, Any]:
        """What cell.json says of a fault."""
        (one,) = (each for each in self.record["mended"] if each["fault"] == fault)
        return dict(one)

    def times(self, node: str, way: str, psn: int, *, answers: bool = False) -> int:
        """How often a driver sent or got a packet, and did not drop it for its contents."""
        frame = self.drivers[node].filter(
            pl.col("psn") == psn,
            pl.col("opcode").is_between(0x0D, 0x12) == answers,
            pl.col("comment").str.contains(f" dir={way} "),
            ~pl.col("comment").str.contains(" drop=icrc"),
        )
        return frame.height

    def on_wire(self, psn: int, *, answers: bool = False) -> int:
        """How often the client's card sent a request, or got an answer."""
        return self.wire.filter(
            pl.col("psn") == psn,
            pl.col("opcode").is_between(0x0D, 0x12) == answers,
            (pl.col("src") != CLIENT) == answers,
        ).height


@pytest.fixture(scope="module")
def steps(shared_testbed: QemuTestbed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Step]:
    """Every benchmark of the plan, once."""
    plan = plan_file.from_toml(PLAN, "faults.toml")
    done = runner.run(plan, shared_testbed, tmp_path_factory.mktemp("faults"))
    by_title = {}
    for cell in plan.cells():
        folder = done.path / "cells" / cell.name
        record = json.loads((folder / "cell.json").read_text())
        assert record["status"] == "ok", record["error"]
        by_title[cell.benchmark.title] = _read(record["steps"][0]["faults"], folder / "16384")
    return by_title


def _read(record: dict[str, Any], folder: Path) -> Step:
    with Directory.open(folder) as step:
        events = faults_document.read(step)
    tables = {
        name: pl.DataFrame(capture.read(str(folder / name)).packets)
        for name in ("wire.pcap", "n1.pcapng", "n2.pcapng")
    }
    wire = tables.pop("wire.pcap")
    return Step(record, events, wire, {name[:2]: table for name, table in tables.items()})


def test_every_fault_met_its_packet_once(testbed: QemuTestbed, steps: dict[str, Step]) -> None:
    """At the place that the plan says, and nothing else happened."""
    del testbed
    for step in steps.values():
        assert step.record["never_met"] == []
        assert all(each["found"] for each in step.record["mended"])
    met = Counter(
        (each.fault, each.done) for each in steps["send_bw"].events if each.done != "lost"
    )
    assert met == {
        ("drop", "drop"): 1,
        ("corrupt", "corrupt"): 1,
        ("twice", "duplicate"): 1,
        ("reorder", "reorder"): 1,
        ("ce", "mark_ce"): 1,
        ("cnps", "cnp"): 1,
        ("cnps", "sent cnp"): 5,
        ("late", "delay"): 1,
        ("notready", "rnr_nak"): 1,
        ("notready", "sent rnr_nak"): 1,
        ("last", "drop"): 1,
        ("ack", "drop"): 1,
    }
    drop = steps["send_bw"].event("drop")
    assert (drop.message, drop.packet, drop.opcode) == (10, 7, 0x01)


@pytest.mark.parametrize(
    ("fault", "less"),
    [("drop", 1), ("corrupt", 1), ("twice", -1), ("reorder", 0), ("ce", 0), ("late", 0)],
)
def test_wire_and_drivers_agree_on_a_request(
    testbed: QemuTestbed, steps: dict[str, Step], fault: str, less: int
) -> None:
    """The client's driver sent it as often as its card did; the server's got as many less."""
    del testbed
    step = steps["send_bw"]
    psn = step.event(fault).psn
    assert psn is not None
    sent = step.on_wire(psn)
    assert sent >= 1
    assert step.times("n1", "tx", psn) == sent
    assert step.times("n2", "rx", psn) == sent - less


def test_a_corrupted_packet_is_dropped_for_its_icrc(
    testbed: QemuTestbed, steps: dict[str, Step]
) -> None:
    """Nothing before the driver noticed: the UDP checksum was not there to fail."""
    del testbed
    step = steps["send_bw"]
    dropped = step.drivers["n2"].filter(pl.col("comment").str.contains(" drop="))
    bad = dropped.filter(pl.col("psn") == step.event("corrupt").psn)
    assert bad.height == 1
    assert " drop=icrc" in bad["comment"][0]
    assert bad["icrc_ok"].to_list() == [False]


def test_a_lost_answer(testbed: QemuTestbed, steps: dict[str, Step]) -> None:
    """The server sent it and the client did not get it; the READ's data were fetched again."""
    del testbed
    for name, fault in (("send_bw", "ack"), ("read_bw", "answer")):
        step = steps[name]
        psn = step.event(fault).psn
        assert psn is not None
        sent = step.times("n2", "tx", psn, answers=True)
        assert sent >= 1
        assert step.on_wire(psn, answers=True) == sent - 1
        assert step.times("n1", "rx", psn, answers=True) == sent - 1
    assert steps["read_bw"].recovery("answer")["recovered_ns"] > 0


def test_the_analyzer_names_what_mended_it(testbed: QemuTestbed, steps: dict[str, Step]) -> None:
    """NAKs for what was lost within the stream, the timer for what was last."""
    del testbed
    record = steps["send_bw"].record
    assert record["naks"]["psn_sequence_error"] >= 2
    assert record["naks"]["rnr"] == 1
    assert record["causes"]["after_nak"] > 0
    assert record["causes"]["after_rnr"] > 0
    assert record["driver"]["n2"]["out_of_seq_request"] >= 2
    # rxe's completer ignores a NAK that is beyond a request which is being sent again
    assert record["driver"]["n1"].get("rcvd_rnr_err", 0) <= 1
    assert record["sent_again"]["client"] > 0
    ack = steps["send_bw"].recovery("ack")["recovered_ns"]
    # the last acknowledgement: nothing but the timer, 4.096 us * 2^18, can notice
    assert ack > 1_000_000_000


def test_a_flap_is_survived(testbed: QemuTestbed, steps: dict[str, Step]) -> None:
    """All packets within it are lost, and the connection is not."""
    del testbed
    step = steps["send_bw-flap"]
    assert sum(each.psn is not None for each in step.events) > 1
    assert step.recovery("flap")["recovered_ns"] >= 300_000_000


def test_faults_by_time(testbed: QemuTestbed, steps: dict[str, Step]) -> None:
    """They meet the next packet at their times, and what they take is sent again."""
    del testbed
    step = steps["send_lat"]
    begin = step.event("begin").time_ns
    timed = [each for each in step.events if each.fault == "timed"]
    assert len(timed) == 3
    for each, due_ms in zip(timed, (3, 33, 63), strict=True):
        assert each.time_ns - begin >= due_ms * 1_000_000
    # the next packet may be the one that was lost before, sent again
    for psn, lost in Counter(each.psn for each in timed).items():
        assert psn is not None
        assert step.on_wire(psn) == step.times("n2", "rx", psn) + lost
    mended = [each for each in step.record["mended"] if each["fault"] == "timed"]
    assert all(each["recovered_ns"] > 0 for each in mended)


@pytest.mark.parametrize("fault", ["killed", "gone"])
def test_a_server_that_ends_is_a_measurement(
    testbed: QemuTestbed, steps: dict[str, Step], fault: str
) -> None:
    """The client tries four times; capture, its driver and the application agree on the end."""
    del testbed
    step = steps[f"send_lat-{fault}"]
    event, ended, tried = step.event(fault), step.record["ended"], step.record["unanswered"]
    assert (event.message, event.packet) == (10, 1)
    assert event.psn is not None
    # IBV_WC_RETRY_EXC_ERR, after the first try and three retries
    assert ended["completion_status"] == 12
    assert ended["exit_status"] != 0
    assert step.record["driver"]["n1"]["retry_exceeded_err"] == 1
    assert tried["psn"] == event.psn
    assert tried["tries"] == step.on_wire(event.psn) == step.times("n1", "tx", event.psn) == 4
    assert step.recovery(fault)["recovered_ns"] is None
    # each try waits for 1.07 s, on a clock that may be slow, and never less
    assert ended["gave_up_ns"] > 4 * 4096 * 2**18
    assert {each.done for each in step.events if each.fault == fault} == (
        {"kill"} if fault == "killed" else {"vanish", "lost"}
    )


def test_a_killed_servers_machine_drops_what_still_comes(
    testbed: QemuTestbed, steps: dict[str, Step]
) -> None:
    """Because the queue pair is gone: its driver says so of each try."""
    del testbed
    step = steps["send_lat-killed"]
    tries = step.drivers["n2"].filter(pl.col("psn") == step.event("killed").psn)
    assert tries.height == 4
    assert tries["comment"].str.contains(" drop=qpn").all()


def test_a_receiver_that_is_not_ready(testbed: QemuTestbed, steps: dict[str, Step]) -> None:
    """Its own driver refuses what comes while no receive is posted, and nothing is lost."""
    del testbed
    step = steps["send_bw-stopped"]
    refused = step.wire.filter((pl.col("src") != CLIENT) & pl.col("syndrome").is_between(32, 63))
    assert refused.height > 0
    assert step.record["naks"]["rnr"] == refused.height
    assert step.record["driver"]["n2"]["send_rnr_err"] == refused.height
    assert 0 < step.record["driver"]["n1"]["rcvd_rnr_err"] <= refused.height
    for psn in refused["psn"]:
        assert step.on_wire(psn) > 1
    # after each RNR NAK rxe sends a sequence NAK for what followed: either may be the cause
    causes = step.record["causes"]
    assert causes.get("after_rnr", 0) + causes.get("after_nak", 0) > 0
    assert [each.done for each in step.events] == ["stop"]
    assert step.recovery("stopped")["recovered_ns"] > 100_000_000


KILLED = """
[plan]
name = "kills"
repetitions = 1
transports = ["rxe-v2"]
probes = ["rxestat"]
[testbed.faults]
stopped = { action = "stop", message = 10, duration_us = 3000000 }
[[benchmark]]
tool = "perftest"
test = "send_lat"
events = true
sizes = [64]
iterations = 20
qp_timeout = 18
faults = ["stopped"]
"""
_STOPPED = "grep -qs '^State:.T' /proc/[0-9]*/status"


@pytest.mark.long
def test_a_killed_run_with_faults(
    testbed: QemuTestbed, shared_testbed: QemuTestbed, tmp_path: Path
) -> None:
    """While its frames wait and the server's process is stopped: nothing stays, and it resumes."""
    plan = tmp_path / "plan.toml"
    plan.write_text(KILLED)
    where = ("--name", shared_testbed.spec.name)
    whole = Killed(testbed.nodes, plan, tmp_path, where)
    whole.before = whole.traces()
    server = testbed.nodes[1]
    with whole.start("killed") as run:
        wait_until(
            "the server is stopped",
            lambda: server.run(("sh", "-c", _STOPPED), check=False).returncode == 0,
            seconds=300,
        )
        run.process.kill()
        run.check_nothing_left()
    assert run.folder is not None
    whole.finish(run.folder)
    (step,) = run.folder.glob("cells/*/64")
    with Directory.open(step) as folder:
        assert [each.done for each in faults_document.read(folder)] == ["stop"]
    assert whole.traces() == whole.before
    qmp = shared_testbed.state.path / f"{testbed.nodes[0].name}.qmp"
    assert filter_redirector.PREFIX not in str(execute(qmp, "qom-list", {"path": "/objects"}))
    assert not list(shared_testbed.state.path.glob(f"{filter_redirector.PREFIX}*"))


def test_faults_by_tc_on_hosts(testbed: QemuTestbed, foreign_hosts: Path, tmp_path: Path) -> None:
    """The machines as SSH hosts: tc, capture, both drivers and the analyzer agree on a packet."""
    del testbed
    text = counted_faults.PLAN.format(provider="ssh") + counted_faults.STOPPED
    plan = plan_file.from_toml(text, "counted.toml")
    two = ssh_testbed.up(inventory.load(foreign_hosts), transports=[TRANSPORTS["rxe-v2"]])
    try:
        client, server = two.nodes
        before = [counted_faults.leftovers(node) for node in two.nodes]
        done = runner.run(plan, two, tmp_path)
        counted_faults.check_packets(done.path, client, server)
        counted_faults.check_stop(done.path, server)
        assert [counted_faults.leftovers(node) for node in two.nodes] == before
        _check_foreign(server, plan, two, tmp_path)
    finally:
        two.down()


def _check_foreign(server: Node, plan: Plan, two: ssh_testbed.SshTestbed, tmp_path: Path) -> None:
    """An ingress discipline of the host's owner is left as it is, and the cell says so."""
    server.root.run(("tc", "qdisc", "add", "dev", server.link.netdev, "clsact"))
    try:
        refused = runner.run(replace(plan, benchmarks=plan.benchmarks[:1]), two, tmp_path / "other")
        (path,) = refused.path.glob("cells/*/cell.json")
        assert "that is not rocelab's" in json.loads(path.read_text())["error"]["what"]
        assert "clsact" in server.run(("tc", "qdisc", "show")).stdout
    finally:
        server.root.run(("tc", "qdisc", "del", "dev", server.link.netdev, "clsact"))


BY_TC = (
    KILLED.replace("[testbed.faults]", '[testbed]\nprovider = "ssh"\n[testbed.faults]')
    .replace("message = 10, duration_us = 3000000", "at_us = 1, duration_us = 8000000")
    .replace("iterations = 20", "iterations = 4000")
    .replace("faults = [", 'faults = ["late", ')
    + '[testbed.faults.late]\naction = "delay"\nevery_packets = 9\n'
)


@pytest.mark.long
def test_a_killed_run_with_faults_by_tc(
    testbed: QemuTestbed, foreign_hosts: Path, tmp_path: Path
) -> None:
    """While the server's process is stopped: no filter, interface or process stays."""
    plan = tmp_path / "plan.toml"
    plan.write_text(BY_TC)
    whole = Killed(testbed.nodes, plan, tmp_path, ("--inventory", str(foreign_hosts)))
    whole.before = whole.traces()
    server = testbed.nodes[1]
    with whole.start("killed") as run:
        wait_until(
            f"the server is stopped; the run said {run.errors}",
            lambda: server.run(("sh", "-c", _STOPPED), check=False).returncode == 0,
            seconds=300,
        )
        assert "rocelab-f" in counted_faults.leftovers(server)
        run.process.kill()
        run.check_nothing_left()
    assert counted_faults.leftovers(server).count("ingress") == 0
