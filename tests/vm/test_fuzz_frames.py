# SPDX-License-Identifier: GPL-2.0-or-later
"""Mutated frames of both RoCE versions: all are counted, bad ones dropped, nothing leaks.

60,000 of each version, 120,000 in all. ROCELAB_FUZZ_SEED and ROCELAB_FUZZ_FRAMES (frames of each
version) in the environment ask for other ones; the same seed sends the same mutations of the same
templates.
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
from forger import link_local, mac, send
from fuzz_templates import messages, templates
from node_program import compiled
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import DEVICE, add_device, offer_roce_v1, remove_device
from rxe_trace import TRACING
from vmlab import PATIENCE, Boot, healthy

HERE = Path(__file__).parent
SEED = int(os.environ.get("ROCELAB_FUZZ_SEED", "20261121"))
FRAMES = int(os.environ.get("ROCELAB_FUZZ_FRAMES", "60000"))
RECORD = Path(__file__).parents[2] / "kernel/src/rxe_record.h"
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
    found = re.findall(r"\{ reason:\s+(\d+) \} hitcount:\s+(\d+)", text)
    return Counter({REASONS[int(number)]: int(count) for number, count in found})


End = tuple[bytes, str]


def ends(kind: str, victim: Node, attacker: Node) -> tuple[End, End]:
    """MAC and IP address of each."""

    def end(node: Node) -> End:
        ipv6 = kind == "v2_ipv6"
        return mac(node.link.mac), link_local(node.link.mac) if ipv6 else node.link.ipv4

    return end(victim), end(attacker)


def udp_errors(node: Node) -> int:
    """Return the number of packets that UDP over IPv6 rejected."""
    text = node.run(["cat", "/proc/net/snmp6"]).stdout
    (row,) = (row for row in text.splitlines() if row.startswith("Udp6InErrors"))
    return int(row.split()[1])


def arrivals(node: Node) -> int:
    """Return the number of frames that the card passed to the network stack."""
    path = f"/sys/class/net/{node.link.netdev}/statistics/rx_packets"
    return int(node.run(["cat", path]).stdout)


def attack(victim: Node, attacker: Node, frames: list[bytes], count: int) -> int:
    """Send this many mutations of the frames."""
    program = compiled(attacker, HERE / "frame_fuzz.c")
    done = attacker.run(
        [program, attacker.link.netdev, str(SEED), str(count)],
        stdin="".join(frame.hex() + "\n" for frame in frames),
        timeout=600,
    )
    return int(done.stdout)


def test_udp_length_zero(nodes: tuple[Node, Node]) -> None:
    """With UDP length 0 over IPv6, the IP length counts, and the driver must use it too.

    From 7.3 on UDP refuses the packet itself, unless it is a jumbogram.
    """
    victim, attacker = nodes
    found = messages({"rc": [], "uc": [], "ud": []}, 0, 0)
    whole = templates("v2_ipv6", *ends("v2_ipv6", victim, attacker), found)[0]
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
    program = compiled(victim, HERE / "verbs_target.c", "-libverbs")
    with healthy(nodes, "mutated frames"):
        resting = slab.skbs(victim)
        target = victim.start(
            ["sh", "-c", "exec $0 $1 $2 >$3", program, DEVICE, attacker.link.ipv4, TARGETS]
        )
        try:
            ready = f"until grep -qs ready {TARGETS}; do :; done"
            victim.run(["timeout", "120", "sh", "-c", ready], timeout=150)
            listing = victim.run(["cat", TARGETS]).stdout.splitlines()
            va, rkey = map(int, listing[0].split())
            qpns: dict[str, dict[str, list[int]]] = {"v1": {}, "v2": {}}
            for line in listing[1:-1]:
                version, service, qpn = line.split()
                qpns[version].setdefault(service, []).append(int(qpn))
            for version, kinds in (("v1", ["v1"]), ("v2", ["v2_ipv4", "v2_ipv6"])):
                found = messages(qpns[version], va, rkey)
                victim.run(["tee", TRIGGER], stdin="hist:keys=reason\n")
                before, arrived = counters(victim), arrivals(victim)
                sent = 0
                for kind in kinds:
                    frames = templates(kind, *ends(kind, victim, attacker), found)
                    assert len(frames) <= 256
                    sent += attack(victim, attacker, frames, FRAMES // len(kinds))
                deadline = time.monotonic() + 120 * PATIENCE
                while arrivals(victim) - arrived < sent:
                    assert time.monotonic() < deadline, "frames were lost on the link"
                moved = counters(victim) - before
                by_reason = drops(victim)
                victim.run(["tee", TRIGGER], stdin="!hist:keys=reason\n")
                attacked = victim.run(["rdma", "resource", "show", "qp"]).stdout
                assert attacked.count("comm verbs_target") == 24, "the target gave up"
                print(f"{version}: {sent} sent, {dict(moved)}, dropped: {dict(by_reason)}")
                check(version, sent, moved, by_reason)
        finally:
            target.kill()
        gone = "while rdma resource show qp | grep -q 'type RC'; do :; done"
        victim.run(["timeout", "120", "sh", "-c", gone], timeout=150)
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


TARGETS = "/tmp/verbs_target.txt"


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
