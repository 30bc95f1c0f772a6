# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults injected in seeded connections are found, as ambiguous if the capture cannot decide.

Each kind of fault gets 200 seeds, or as many as ROCELAB_SEEDS says. All but the first few are
marked `slow`.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from corpus import files, lossy_wire, schedule
from rocelab import capture

Packet = tuple[int, bytes]

SEEDS = int(os.environ.get("ROCELAB_SEEDS", "200"))
QUICK = 15
"""Seeds that are not slow: both services, all transports and VLAN stacks are among them."""
SERVICES = ("RC", "XRC")


def seeds(step: int = 1) -> list[Any]:
    """Every `step`-th seed, for parametrize."""
    return [
        seed if seed < QUICK * step else pytest.param(seed, marks=pytest.mark.slow)
        for seed in range(0, SEEDS, step)
    ]


def analyze(path: Path, packets: list[Packet]) -> dict[str, Any]:
    path.write_bytes(files.pcap(packets))
    return capture.analyze([str(path)]).result


def direction(result: dict[str, Any], side: str) -> dict[str, Any]:
    (connection,) = result["connections"]
    return next(row for row in connection["directions"] if row["from"] == side)


def check_counters(result: dict[str, Any], wire: lossy_wire.Wire) -> None:
    truth = wire.truth
    a = direction(result, "a")
    assert a["messages"] == truth.messages
    assert a["goodput_bytes"] == truth.goodput_bytes
    assert a["retransmitted"] == truth.retransmitted
    b = direction(result, "b")
    assert b["messages"] == truth.response_messages
    assert b["goodput_bytes"] == truth.response_bytes
    assert sum(b["naks"].values()) == truth.naks
    assert b["rnr"] == truth.rnr
    assert {result["connections"][0][side]["qpn"] for side in "ab"} == {
        wire.plan.qpn_a, wire.plan.qpn_b,
    }  # fmt: skip


@pytest.mark.parametrize("seed", seeds())
def test_clean_traffic_has_no_finding(seed: int, tmp_path: Path) -> None:
    wire = lossy_wire.Wire(schedule.plan(seed, faults=0, services=SERVICES))
    result = analyze(tmp_path / "clean.pcap", wire.run())
    assert result["findings"] == []
    check_counters(result, wire)


Found = tuple[str, bool]
"""Rule, ambiguous."""


def resent(truth: lossy_wire.Truth, index: int) -> list[Found]:
    """How packets retransmitted near a fault are classified if no NAK asked for them.

    The requester's window is 12 packets; faults are more than 30 packets apart.
    """
    runs = [run for run in truth.runs if abs(run.first - index) <= 14]
    return [("spurious-retransmission" if run.acked else "timeout", True) for run in runs]


def expected(kind: str, index: int, wire: lossy_wire.Wire) -> list[Found]:
    """All findings of one fault, each as often as it must occur."""
    truth = wire.truth
    nak_sent = index in truth.nak_indices
    loss = ("loss", False)
    match kind:
        case "drop_before":
            # without a NAK the lost packet is first seen when retransmitted, like any other
            return [loss] if nak_sent else []
        case "drop_behind":
            return [loss] if nak_sent else [("timeout", True)]
        case "corrupt":
            return [("icrc-bad", False), loss] if nak_sent else [("icrc-bad", False)]
        case "duplicate":
            return [("duplicate", False)]
        case "reorder":
            # no finding if no packet followed closely enough to overtake it; ambiguous if the next
            # packet is already a retransmission
            return [("reorder", not new) for late, new in truth.overtaken.items() if late == index]
        case "rnr":
            return [("rnr", False)]
        case "delay":
            # shorter than the requester's timeout: it only waits
            return []
        case _:
            # a later ACK replaces a lost one (coalescing is legal), so there is no finding; if
            # none came, the retransmission shows whether the tap saw the ACK
            return resent(truth, index)


def count_findings(result: dict[str, Any]) -> Counter[Found]:
    """A finding of several packets counts as often."""
    counts: Counter[Found] = Counter()
    for row in result["findings"]:
        counts[row["rule"], row["ambiguous"]] += row["count"]
    return counts


def wanted(wire: lossy_wire.Wire) -> Counter[Found]:
    rows = [expected(kind, index, wire) for index, kind in wire.plan.faults.items()]
    return Counter(row for one in rows for row in one)


@pytest.mark.parametrize("kind", schedule.FAULTS)
@pytest.mark.parametrize("seed", seeds())
def test_injected_fault(kind: str, seed: int, tmp_path: Path) -> None:
    plan = schedule.plan(1000 + seed, faults=1, kinds=(kind,), services=SERVICES)
    wire = lossy_wire.Wire(plan)
    result = analyze(tmp_path / "fault.pcap", wire.run())
    assert count_findings(result) == wanted(wire)
    check_counters(result, wire)
    causes = direction(result, "a")["retransmissions"]
    if kind == "rnr":
        assert causes["after_rnr"] > 0
    if kind in ("drop_before", "drop_behind", "corrupt") and wire.truth.naks:
        assert causes["after_nak"] > 0
        assert causes["after_timeout"] == causes["spurious"] == 0


@pytest.mark.parametrize("seed", seeds())
def test_several_faults(seed: int, tmp_path: Path) -> None:
    """Each fault is found as if it were alone, and nothing else is found."""
    wire = lossy_wire.Wire(schedule.plan(5000 + seed, faults=3, services=SERVICES))
    result = analyze(tmp_path / "faults.pcap", wire.run())
    assert count_findings(result) == wanted(wire)
    check_counters(result, wire)


def test_a_packet_lost_after_a_read_does_not_set_the_path_mtu(tmp_path: Path) -> None:
    """The PSNs after a first READ give the path MTU, unless a packet is missing there."""
    wire = lossy_wire.Wire(schedule.plan(5456, faults=3, services=SERVICES))
    result = analyze(tmp_path / "read.pcap", wire.run())
    assert wire.plan.packets[6].name == "RC_RDMA_READ_REQUEST"
    assert wire.plan.faults[7] == "drop_before"
    assert [row for row in result["findings"] if row["severity"] == "error"] == []
    assert direction(result, "a")["path_mtu"] == wire.plan.mtu


@pytest.mark.parametrize("seed", seeds(step=4))
def test_one_side_only(seed: int, tmp_path: Path) -> None:
    """Without the answers, loss after the tap is ambiguous, never an error."""
    plan = schedule.plan(9000 + seed, faults=1, kinds=("drop_behind",))
    wire = lossy_wire.Wire(plan)
    everything = wire.run()
    result = analyze(tmp_path / "both.pcap", everything)
    qpn = wire.plan.qpn_b
    start = 14 + 4 * len(plan.net.vlans) + {"v1": 40, "v2_ipv4": 28, "v2_ipv6": 48}[plan.net.kind]
    requests = [
        packet for packet in everything
        if int.from_bytes(packet[1][start + 5 : start + 8], "big") == qpn
    ]  # fmt: skip
    assert 0 < len(requests) < len(everything)
    alone = analyze(tmp_path / "one.pcap", requests)
    (connection,) = alone["connections"]
    assert connection["a"]["qpn"] is None
    assert connection["b"]["qpn"] == qpn
    assert all(row["ambiguous"] for row in alone["findings"])
    assert direction(alone, "a")["retransmitted"] == direction(result, "a")["retransmitted"]


def test_many_connections_between_two_hosts(tmp_path: Path) -> None:
    """Interleaved connections are separated and paired by their PSNs, never wrongly."""
    packets: list[Packet] = []
    pairs = set()
    for seed in range(20):
        plan = schedule.plan(seed, faults=0)
        # distinct PSNs: equal ones at equal times cannot be separated
        plan = schedule.shift(plan, seed * 500_000)
        plan.net = schedule.Net()
        pairs.add((plan.qpn_a, plan.qpn_b))
        packets += lossy_wire.Wire(plan).run()
    packets.sort(key=lambda packet: packet[0])
    result = analyze(tmp_path / "many.pcap", packets)
    qpns = {(row["a"]["qpn"], row["b"]["qpn"]) for row in result["connections"]}
    assert qpns == pairs
    assert result["findings"] == []


def test_equal_psns_are_not_paired_wrongly(tmp_path: Path) -> None:
    packets: list[Packet] = []
    pairs = set()
    for seed in range(12):
        plan = schedule.plan(seed, faults=0)
        plan = schedule.shift(plan, -plan.packets[0].psn)
        plan.net = schedule.Net()
        pairs.add((plan.qpn_a, plan.qpn_b))
        packets += lossy_wire.Wire(plan).run()
    packets.sort(key=lambda packet: packet[0])
    result = analyze(tmp_path / "equal.pcap", packets)
    qpns = {(row["a"]["qpn"], row["b"]["qpn"]) for row in result["connections"]}
    # if a response came first, a is the other side
    paired = {pair for pair in qpns if None not in pair}
    assert all(pair in pairs or pair[::-1] in pairs for pair in paired)


@pytest.mark.parametrize("seed", seeds())
def test_a_capture_that_begins_midway(seed: int, tmp_path: Path) -> None:
    packets = lossy_wire.Wire(schedule.plan(seed, faults=0)).run()
    result = analyze(tmp_path / "late.pcap", packets[len(packets) // 3 :])
    assert [row for row in result["findings"] if row["severity"] == "error"] == []
