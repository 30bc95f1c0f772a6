# SPDX-License-Identifier: GPL-2.0-or-later
"""Seeded random connections with planted faults: found where the capture decides, else ambiguous.

ROCELAB_SEEDS sets how many seeds each kind of fault gets (default 40, thousands in a long run).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from corpus import files, schedule
from rocelab import capture

Packet = tuple[int, bytes]

SEEDS = int(os.environ.get("ROCELAB_SEEDS", "40"))


def analyze(path: Path, packets: list[Packet]) -> dict[str, Any]:
    path.write_bytes(files.pcap(packets))
    return capture.analyze([str(path)]).result


def rules(result: dict[str, Any]) -> set[tuple[str, bool]]:
    return {(row["rule"], row["ambiguous"]) for row in result["findings"]}


def direction(result: dict[str, Any], side: str) -> dict[str, Any]:
    (connection,) = result["connections"]
    return next(row for row in connection["directions"] if row["from"] == side)


def check_counters(result: dict[str, Any], wire: schedule.Wire) -> None:
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


@pytest.mark.parametrize("seed", range(SEEDS))
def test_clean_traffic_has_no_finding(seed: int, tmp_path: Path) -> None:
    wire = schedule.Wire(schedule.plan(seed, faults=0))
    result = analyze(tmp_path / "clean.pcap", wire.run())
    assert result["findings"] == []
    check_counters(result, wire)


def expected(kind: str, wire: schedule.Wire) -> list[set[tuple[str, bool]]]:
    """What may be found after one fault; several sets where its timing makes several cases."""
    naked = bool(wire.truth.naks)
    loss = ("loss", False)
    match kind:
        case "drop_before":
            # without a NAK the lost packet is first seen when it is sent again: like any other
            return [{loss}] if naked else [set()]
        case "drop_behind":
            return [{loss}] if naked else [{("timeout", True)}]
        case "corrupt":
            return [{("icrc-bad", False), loss}] if naked else [{("icrc-bad", False)}]
        case "duplicate":
            return [{("duplicate", False)}]
        case "reorder":
            # nothing, where no packet followed closely enough to overtake it
            return [{("reorder", False)}, {("reorder", True)}] if naked else [set()]
        case "rnr":
            return [{("rnr", False)}]
        case "ack_lost_before":
            return [set(), {("timeout", True)}]
        case _:
            return [set(), {("spurious-retransmission", True)}, {("timeout", True)}]


@pytest.mark.parametrize("kind", schedule.FAULTS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_planted_fault(kind: str, seed: int, tmp_path: Path) -> None:
    wire = schedule.Wire(schedule.plan(1000 + seed, faults=1, kinds=(kind,)))
    result = analyze(tmp_path / "fault.pcap", wire.run())
    assert rules(result) in expected(kind, wire)
    if wire.truth.retransmitted and kind.startswith("ack_lost"):
        assert rules(result), "packets were sent again without a word"
    check_counters(result, wire)
    causes = direction(result, "a")["retransmissions"]
    if kind == "rnr":
        assert causes["after_rnr"] > 0
    if kind in ("drop_before", "drop_behind", "corrupt") and wire.truth.naks:
        assert causes["after_nak"] > 0
        assert causes["after_timeout"] == causes["spurious"] == 0


@pytest.mark.parametrize("seed", range(SEEDS))
def test_several_faults(seed: int, tmp_path: Path) -> None:
    plan = schedule.plan(5000 + seed, faults=3)
    wire = schedule.Wire(plan)
    result = analyze(tmp_path / "faults.pcap", wire.run())
    check_counters(result, wire)
    allowed = {"loss", "timeout", "icrc-bad", "duplicate", "reorder", "rnr",
               "spurious-retransmission"}  # fmt: skip
    assert {rule for rule, _ in rules(result)} <= allowed
    if set(plan.faults.values()) & {"rnr"}:
        assert ("rnr", False) in rules(result)


@pytest.mark.parametrize("seed", range(0, SEEDS, 4))
def test_one_side_only(seed: int, tmp_path: Path) -> None:
    """Without the answers, loss behind the tap is ambiguous, never an error."""
    plan = schedule.plan(9000 + seed, faults=1, kinds=("drop_behind",))
    wire = schedule.Wire(plan)
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
    """Interleaved connections are told apart and paired by their PSNs; never wrongly."""
    packets: list[Packet] = []
    pairs = set()
    for seed in range(20):
        plan = schedule.plan(seed, faults=0)
        # PSNs of their own: equal ones at equal times nobody can tell apart
        plan = schedule.shifted(plan, seed * 500_000)
        plan.net = schedule.Net()
        pairs.add((plan.qpn_a, plan.qpn_b))
        packets += schedule.Wire(plan).run()
    packets.sort(key=lambda packet: packet[0])
    result = analyze(tmp_path / "many.pcap", packets)
    found = {(row["a"]["qpn"], row["b"]["qpn"]) for row in result["connections"]}
    assert found == pairs
    assert result["findings"] == []


def test_equal_psns_are_not_paired_wrongly(tmp_path: Path) -> None:
    packets: list[Packet] = []
    pairs = set()
    for seed in range(12):
        plan = schedule.plan(seed, faults=0)
        plan = schedule.shifted(plan, -plan.packets[0].psn)
        plan.net = schedule.Net()
        pairs.add((plan.qpn_a, plan.qpn_b))
        packets += schedule.Wire(plan).run()
    packets.sort(key=lambda packet: packet[0])
    result = analyze(tmp_path / "equal.pcap", packets)
    found = {(row["a"]["qpn"], row["b"]["qpn"]) for row in result["connections"]}
    # a response may have come first: then a is the other side
    paired = {pair for pair in found if None not in pair}
    assert all(pair in pairs or pair[::-1] in pairs for pair in paired)


def test_capture_that_begins_midway(tmp_path: Path) -> None:
    for seed in range(SEEDS):
        packets = schedule.Wire(schedule.plan(seed, faults=0)).run()
        result = analyze(tmp_path / "late.pcap", packets[len(packets) // 3 :])
        assert [row for row in result["findings"] if row["severity"] == "error"] == [], seed
