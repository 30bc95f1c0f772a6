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
from forger import GSI_QKEY, link_local, mac, send
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
QKEY = 0x11111111

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


def messages(qpns: dict[str, list[int]], va: int, rkey: int) -> list[bytes]:
    """Return BTH to pad of correct packets for the queue pairs: all kinds of packets."""
    make, reth, aeth = corpus.frames.transport, corpus.frames.reth, corpus.frames.aeth
    atomic, deth = corpus.frames.atomic(va, rkey, 1, 1), corpus.frames.deth
    imm, original = b"\x12\x34\x56\x78", bytes(8)
    found = []
    for qpn in qpns["rc"]:
        found += [
            make("RC_SEND_ONLY", qpn, 0, payload=bytes(65)),
            make("RC_SEND_FIRST", qpn, 0, payload=bytes(1024)),
            make("RC_SEND_MIDDLE", qpn, 1, payload=bytes(1024)),
            make("RC_SEND_LAST_WITH_IMMEDIATE", qpn, 2, imm, bytes(7)),
            make("RC_SEND_ONLY_WITH_INVALIDATE", qpn, 0, rkey.to_bytes(4, "big"), bytes(4)),
            make("RC_RDMA_WRITE_ONLY", qpn, 0, reth(va, rkey, 64), bytes(64)),
            make("RC_RDMA_WRITE_FIRST", qpn, 0, reth(va, rkey, 3000), bytes(1024)),
            make("RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", qpn, 0, reth(va, rkey, 4) + imm, bytes(4)),
            make("RC_RDMA_READ_REQUEST", qpn, 0, reth(va, rkey, 5000)),
            make("RC_COMPARE_SWAP", qpn, 0, atomic),
            make("RC_FETCH_ADD", qpn, 0, atomic),
            make("RC_FLUSH", qpn, 0, bytes(4) + reth(va, rkey, 64)),
            make("RC_ATOMIC_WRITE", qpn, 0, reth(va, rkey, 8), bytes(8)),
            make("RC_ACKNOWLEDGE", qpn, 0, aeth(0x1F, 1)),
            make("RC_ACKNOWLEDGE", qpn, 0, aeth(0x60, 1)),
            make("RC_ACKNOWLEDGE", qpn, 0, aeth(0x21, 1)),
            make("RC_RDMA_READ_RESPONSE_ONLY", qpn, 0, aeth(0x1F, 1), bytes(1024)),
            make("RC_RDMA_READ_RESPONSE_FIRST", qpn, 0, aeth(0x1F, 1), bytes(1024)),
            make("RC_RDMA_READ_RESPONSE_MIDDLE", qpn, 1, payload=bytes(1024)),
            make("RC_ATOMIC_ACKNOWLEDGE", qpn, 5, aeth(0x1F, 1) + original),
        ]
    for qpn in qpns["uc"]:
        found += [
            make("UC_SEND_FIRST", qpn, 0, payload=bytes(1024)),
            make("UC_SEND_LAST", qpn, 1, payload=bytes(9)),
            make("UC_RDMA_WRITE_ONLY", qpn, 0, reth(va, rkey, 64), bytes(64)),
        ]
    for qpn, qkey in [*((qpn, QKEY) for qpn in qpns["ud"]), (1, GSI_QKEY)]:
        found += [
            make("UD_SEND_ONLY", qpn, 0, deth(qkey, 17), bytes(256)),
            make("UD_SEND_ONLY_WITH_IMMEDIATE", qpn, 0, deth(qkey, 17) + imm, bytes(3)),
        ]
    return found


def templates(victim: Node, attacker: Node, kind: str, found: list[bytes]) -> list[bytes]:
    """Return frames with these packets, and some to a multicast group without members."""
    macs = mac(victim.link.mac) + mac(attacker.link.mac)
    net = corpus.frames.Net(kind=kind, a=attacker.link.ipv4, b=victim.link.ipv4)
    if kind == "v2_ipv6":
        net.a, net.b = (link_local(node.link.mac) for node in (attacker, victim))
    frames = [macs + corpus.frames.frame(net, "a", transport)[12:] for transport in found]
    net.b = "239.1.2.3" if kind == "v2_ipv4" else "ff1e::4791"
    group = bytes.fromhex("01005e010203" if kind == "v2_ipv4" else "333300004791")
    lost = corpus.frames.transport(
        "UD_SEND_ONLY", 0xFFFFFF, 0, corpus.frames.deth(QKEY, 17), bytes(64)
    )
    frames.append(group + macs[6:] + corpus.frames.frame(net, "a", lost)[12:])
    return frames


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
    whole = templates(victim, attacker, "v2_ipv6", found)[0]
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
                    frames = templates(victim, attacker, kind, found)
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
