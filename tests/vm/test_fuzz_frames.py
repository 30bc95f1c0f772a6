# SPDX-License-Identifier: GPL-2.0-or-later
"""Mutated frames of both RoCE versions: all are counted, bad ones dropped, nothing leaks.

60,000 of each version, 120,000 in all; fewer on a debug kernel, where each frame takes longer, too.
ROCELAB_FUZZ_SEED and ROCELAB_FUZZ_FRAMES (frames of each version) in the environment ask for other
ones; the same seed sends the same mutations of the same templates.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import corpus
import slab
import traffic
from forger import send
from rocelab.measure import hostile_frames
from rocelab.measure.hostile_frames import end_of, messages, templates
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import DEVICE, add_device, offer_roce_v1, remove_device
from rxe_trace import TRACING
from vmlab import LINE, PATIENCE, Boot, healthy

SEED = int(os.environ.get("ROCELAB_FUZZ_SEED", "20261121"))
FRAMES = int(os.environ.get("ROCELAB_FUZZ_FRAMES", 60_000 // PATIENCE**2))
RECORD = Path(__file__).parents[2] / "kernel/src/rxe_values.h"
REASONS = re.findall(r"EML?\(RXE_DROP_\w+,\s+\"(\w+)\"\)", RECORD.read_text())
"""Drop reasons by their numbers."""
TRIGGER = f"{TRACING}/events/rxe/rxe_drop/trigger"
HISTOGRAM = f"{TRACING}/events/rxe/rxe_drop/hist"
COUNTERS = f"/sys/class/infiniband/{DEVICE}/ports/1/hw_counters"

ARRIVAL = {"length", "opcode", "version", "qpn", "qp_type", "address", "icrc"}
"""Reasons that mutations of either version must trigger."""
GRH_ONLY = {"grh", "otherhost"}
"""Reasons that only v1 has; for v2, IP and the card check these."""


@pytest.fixture(scope="module")
def nodes(boot: Boot) -> Iterator[tuple[Node, Node]]:
    """Two nodes: the first is attacked, the second has no device that could answer."""
    with boot(name="fuzz", prepared=True) as testbed:
        victim, attacker = testbed.nodes
        offer_roce_v1([victim])
        remove_device(attacker)
        victim.run(["ip", "link", "set", victim.link.netdev, "promisc", "on"])
        yield victim, attacker


def counters(node: Node) -> Counter[str]:
    """Return the driver's counters of arrivals."""
    names = ("rcvd_pkts", "rcvd_drops")
    values = node.run(["cat", *(f"{COUNTERS}/{name}" for name in names)]).stdout.split()
    return Counter(dict(zip(names, map(int, values), strict=True)))


def drops(node: Node) -> Counter[str]:
    """Return drops by reason, from the kernel's histogram of the event."""
    text = node.run(["cat", HISTOGRAM]).stdout
    counts = re.findall(r"\{ reason:\s+(\d+) \} hitcount:\s+(\d+)", text)
    return Counter({REASONS[int(number)]: int(count) for number, count in counts})


def udp_errors(node: Node) -> int:
    """Return the number of packets that UDP over IPv6 rejected."""
    text = node.run(["cat", "/proc/net/snmp6"]).stdout
    (row,) = (row for row in text.splitlines() if row.startswith("Udp6InErrors"))
    return int(row.split()[1])


def test_udp_length_zero(nodes: tuple[Node, Node]) -> None:
    """With UDP length 0 over IPv6, the IP length counts, and the driver must use it too.

    From 7.3 on UDP refuses the packet itself, unless it is a jumbogram.
    """
    victim, attacker = nodes
    filled = messages({"rc": [], "uc": [], "ud": []}, 0, 0)
    ends = [end_of(node, "v2_ipv6") for node in (victim, attacker)]
    whole = templates("v2_ipv6", ends[0], ends[1], filled)[0]
    network, udp, transport = whole[14:54], whole[54:62], whole[62:-4]
    udp = udp[:4] + bytes(4)
    body = transport + corpus.crc.icrc("v2_ipv6", network, udp, transport)
    pseudo = network[8:40] + (8 + len(body)).to_bytes(4, "big") + bytes(3) + b"\x11"
    checksum = corpus.frames.checksum(pseudo + udp + body)
    frame = whole[:54] + udp[:6] + checksum.to_bytes(2, "big") + body
    before, refused = counters(victim), udp_errors(victim)
    send(attacker, attacker.link.netdev, [frame])
    deadline = time.monotonic() + 180 * PATIENCE
    while counters(victim) == before and udp_errors(victim) == refused:
        assert time.monotonic() < deadline, "the frame was lost on the link"
    by_udp = udp_errors(victim) - refused
    assert by_udp in (0, 1)
    assert counters(victim) - before == ({} if by_udp else {"rcvd_pkts": 1})


def test_mutated_frames(nodes: tuple[Node, Node], capsys: pytest.CaptureFixture[str]) -> None:
    """Each frame is received or dropped for a reason. Then all can be removed and works again."""
    victim, attacker = nodes
    with capsys.disabled():
        print(f"\nseed {SEED}, {FRAMES} mutated frames of each RoCE version")
    with (
        healthy(nodes, "mutated frames"),
        hostile_frames.install(victim, LINE) as (program, _),
        hostile_frames.install(attacker, LINE) as (_, fuzz),
    ):
        resting = slab.skbs(victim)
        with hostile_frames.targets(victim, program, attacker.link.ipv4) as places:
            for version in hostile_frames.KINDS:
                victim.run(["tee", TRIGGER], stdin="hist:keys=reason\n")
                before = counters(victim)
                sent = hostile_frames.attack(
                    *(version, victim, attacker, places),
                    program=fuzz,
                    count=FRAMES,
                    seed=SEED,
                    patience=PATIENCE,
                )
                moved = counters(victim) - before
                by_reason = drops(victim)
                victim.run(["tee", TRIGGER], stdin="!hist:keys=reason\n")
                print(f"{version}: {sent} sent, {dict(moved)}, dropped: {dict(by_reason)}")
                check(version, sent, moved, by_reason)
        # deleting the device waits for its last reference, so a leaked one would hang it
        remove_device(victim)
        victim.run(["rmmod", "rdma_rxe"], timeout=120)
        # IP keeps incomplete fragments for half a minute
        deadline = time.monotonic() + 180 * PATIENCE
        while (left := slab.skbs(victim) - resting) > FRAMES // 50:
            assert time.monotonic() < deadline, f"{left} skbs were not freed"
        log = victim.run(["dmesg"]).stdout
        assert "timed out" not in log.lower()
        works_again(victim, attacker)


def check(version: str, sent: int, moved: Counter[str], by_reason: Counter[str]) -> None:
    """Check invariants of the counts."""
    # multicast is counted as received and then as dropped
    twice = by_reason["mcast_group"] + by_reason["mcast_qp"]
    if version == "v1":
        assert moved["rcvd_pkts"] + moved["rcvd_drops"] - twice == sent
        expected = ARRIVAL | GRH_ONLY | {"short", "dgid", "mcast_group"}
        assert by_reason.keys() >= expected, expected - by_reason.keys()
    else:
        # IP and UDP check packets first
        assert sent // 4 < moved["rcvd_pkts"] + moved["rcvd_drops"] - twice <= sent
        assert by_reason.keys() >= ARRIVAL, ARRIVAL - by_reason.keys()
        assert not by_reason.keys() & GRH_ONLY
    # mutations that were not caught on arrival
    assert moved["rcvd_pkts"] > sent // 20
    assert by_reason["sequence"] > 0


def works_again(victim: Node, attacker: Node) -> None:
    """Both versions still carry data between the nodes."""
    for node in (victim, attacker):
        remove_device(node)
        add_device(node, roce_v1=True)
    for kind in ("IB/RoCE v1", "RoCE v2"):
        traffic.perftest("ib_write_bw", attacker, victim, size=9000, iterations=20, gid_type=kind)
