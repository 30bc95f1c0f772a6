# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCE v1: every service and operation next to v2, verified on the wire by independent decoders."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv6Address
from pathlib import Path

import pytest

import traffic
import witness
from forger import Forger, send
from node_program import compile_program
from rocelab.measure.hostile_frames import mac
from rocelab.record import frames
from rocelab.testbed import gid
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import DEVICE, add_device, offer_roce_v1, remove_device
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rxe_trace import PACKETS, TRACING, count, tracing
from rxestat_watch import check_rows, watching
from veth_pair import PROGRAM, ROCE_V1, Pair, veth_pair

V1, V2 = "IB/RoCE v1", "RoCE v2"
V1_FRAMES = "8915"


@pytest.fixture
def pair(n1: Node) -> Iterator[Pair]:
    """Two devices on the first node, with GIDs of both versions."""
    with veth_pair(n1, roce_v1=True) as pair:
        yield pair


@pytest.fixture
def nodes(n1: Node, n2: Node) -> Iterator[tuple[Node, Node]]:
    """Both nodes, with v1 GIDs on their devices."""
    offer_roce_v1([n1, n2])
    yield n1, n2
    for node in (n1, n2):
        remove_device(node)
        add_device(node)


def gids(node: Node) -> tuple[gid.Gid, ...]:
    """Return the GID table of a node's device."""
    port = f"/sys/class/infiniband/{DEVICE}/ports/1"
    # grep fails on entries without a GID; its output is still complete
    listing = node.run(
        ["grep", "-rs", "", f"{port}/gids", f"{port}/gid_attrs/types"], check=False
    ).stdout
    return gid.parse(listing)


def table(node: Node) -> list[tuple[str, str]]:
    """Return address and type of each GID, in the table's order."""
    return [(str(entry.address), entry.type) for entry in gids(node)]


def hears_v1(node: Node) -> bool:
    """Return whether the node has a handler for RoCE v1 frames."""
    types = node.run(["cat", "/proc/net/ptype"]).stdout.splitlines()
    return any(line.split()[0] == V1_FRAMES for line in types)


def test_only_on_request(n1: Node, n2: Node) -> None:
    """Off: only v2 GIDs, and v1 frames are unhandled. On: each address twice. Then off again."""
    before = table(n1)
    assert {kind for _, kind in before} == {V2}
    assert not hears_v1(n1)
    try:
        offer_roce_v1([n1])
        assert hears_v1(n1)
        both = table(n1)
        assert Counter(both) == Counter(
            (address, kind) for address, _ in before for kind in (V1, V2)
        )
        # asking again changes nothing
        offer_roce_v1([n1])
        assert table(n1) == both
        # a device keeps the setting that it was added with; the parameter applies to the next one
        assert n1.run(["cat", "/sys/module/rdma_rxe/parameters/roce_v1"]).stdout.strip() == "N"
    finally:
        remove_device(n1)
        add_device(n1)
    assert table(n1) == before
    assert not hears_v1(n1)


OPERATIONS = [
    # transport, operation, size, an opcode that must be seen
    ("rc", "send", 0, "RC_SEND_ONLY"),
    ("rc", "send_imm", 4096, "RC_SEND_ONLY_WITH_IMMEDIATE"),
    ("rc", "write", 9001, "RC_RDMA_WRITE_MIDDLE"),
    ("rc", "write_imm", 1, "RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE"),
    ("rc", "read", 64, "RC_RDMA_READ_RESPONSE_ONLY"),
    ("rc", "read", 9001, "RC_RDMA_READ_RESPONSE_MIDDLE"),
    ("rc", "cas", 8, "RC_COMPARE_SWAP"),
    ("rc", "fadd", 8, "RC_ATOMIC_ACKNOWLEDGE"),
    ("srq", "send", 65, "RC_SEND_ONLY"),
    ("srq", "write_imm", 5000, "RC_RDMA_WRITE_LAST_WITH_IMMEDIATE"),
    ("uc", "send", 9001, "UC_SEND_MIDDLE"),
    ("uc", "write", 64, "UC_RDMA_WRITE_ONLY"),
    ("ud", "send", 1000, "UD_SEND_ONLY"),
    ("ud", "send_imm", 3, "UD_SEND_ONLY_WITH_IMMEDIATE"),
]


def test_a_device_that_cannot_be_added(n1: Node) -> None:
    """It leaves no handler for v1 frames: its name was taken, after it had asked for v1."""
    assert not hears_v1(n1)
    add = "rdma link add $0 type rxe netdev spare"
    # every kernel of ours has veth, but not dummy
    n1.run(["ip", "link", "add", "spare", "type", "veth", "peer", "name", "spare_peer"])
    try:
        n1.run(["sh", "-c", f"echo Y >{ROCE_V1}"])
        assert n1.run(["sh", "-c", add, DEVICE], check=False).returncode
        assert not hears_v1(n1)
        # with a free name there is one
        n1.run(["sh", "-c", add, "rxe_spare"])
        assert hears_v1(n1)
    finally:
        n1.run(["sh", "-c", f"echo N >{ROCE_V1}"])
        n1.run(["ip", "link", "delete", "spare"])
    assert not hears_v1(n1)


def test_every_operation(pair: Pair, tmp_path: Path) -> None:
    """The payload arrives, the frames are correct, and each event has every packet once as v1."""
    wire = tmp_path / "veth.pcap"
    before = pair.counters()
    with (
        witness.sniff(pair.node, "veth_a", wire),
        tracing(pair.node, *PACKETS, "rxe_drop", buffer_kb=65536) as trace,
    ):
        for transport, operation, size, _ in OPERATIONS:
            pair.loop(transport, operation, size, batches=1, gid="v1-ipv4")
        # the pair's other kind of address
        for transport in ("rc", "uc", "ud"):
            pair.loop(transport, "send", 64, batches=1, gid="v1-link")
        moved = settled(before, pair.counters)
    check_arrivals(moved)
    assert moved["send_err"] == 0
    seen = witness.check_v1(wire, moved["sent_pkts"])
    assert {opcode for *_, opcode in OPERATIONS} <= seen.keys()
    sources = {frame[8:24] for frame in witness.grhs(wire)}
    assert {source[:2] for source in sources} == {b"\xfe\x80", b"\x00\x00"}
    for name in PACKETS:
        assert set(count(trace.named(name), "net")) == {"v1"}, name
    assert count(trace.named("rxe_tx_packet"), "op") == seen
    received = trace.named("rxe_rx_packet")
    assert len(received) == moved["rcvd_pkts"]
    flushed = count(trace.named("rxe_drop"), "reason")["flushed"]
    assert len(trace.named("rxe_rx_done")) == len(received) - flushed


@pytest.mark.distribution
def test_side_by_side(pair: Pair, tmp_path: Path) -> None:
    """Queue pairs of both versions work at the same time on the same devices."""
    wire = tmp_path / "veth.pcap"
    before = pair.counters()
    with (
        witness.sniff(pair.node, "veth_a", wire),
        watching(pair.node, options=("--device", "rxe_a")) as (watch,),
    ):
        loops = [
            pair.node.start(
                [PROGRAM, "rxe_a", "rxe_b", "rc", operation, "3000", "20", "16", version]
            )
            for operation in ("write", "read")
            for version in ("v1-ipv4", "v2-ipv4")
        ]
        for loop in loops:
            done = loop.wait(timeout=300)
            assert done.returncode == 0, done.stderr
        moved = settled(before, pair.counters)
        document = watch.stop()
    both = [witness.network(frame)[0] for frame in witness.frames(wire)]
    check_arrivals(moved)
    assert moved["sent_pkts"] == len(both)
    assert both.count(0x0800) > 0
    witness.check_v1(wire, both.count(witness.IBOE))
    check_rows(document)
    nets = {row["net"] for row in document["rows"]}
    assert nets == {"v1", "v2-ipv4"}
    # v1 has every stage of v2
    stages = {
        net: {(row["dir"], row["stage"]) for row in document["rows"] if row["net"] == net}
        for net in nets
    }
    assert stages["v1"] == stages["v2-ipv4"]


def test_loopback(pair: Pair, tmp_path: Path) -> None:
    """Loopback within one device sends no frame, on any service."""
    wire = tmp_path / "veth.pcap"
    before = pair.counters()
    with (
        witness.sniff(pair.node, "veth_a", wire),
        tracing(pair.node, *PACKETS) as trace,
    ):
        for transport, operation in (
            ("rc", "write"),
            ("rc", "read"),
            ("uc", "send"),
            ("ud", "send"),
        ):
            pair.loop(transport, operation, 100, batches=2, gid="v1-ipv4", peer="rxe_a")
        moved = settled(before, pair.counters)
    check_arrivals(moved)
    assert moved["sent_pkts"] == len(trace.named("rxe_tx_packet"))
    assert witness.frames(wire) == []
    for name in PACKETS:
        assert set(count(trace.named(name), "net")) == {"v1"}
        assert all("loopback" in event["flags"] for event in trace.named(name))


def chosen(node: Node, kind: str, address: str) -> str:
    """Return the index of a node's GID; the table follows addresses with some delay."""
    deadline = time.monotonic() + 60
    while True:
        for entry in gids(node):
            if entry.type == kind and entry.address == IPv6Address(address):
                return str(entry.index)
        assert time.monotonic() < deadline, (kind, address, gids(node))


def perftest(
    program: str, ends: tuple[Node, Node], indexes: tuple[str, str], *options: str
) -> None:
    """Run a perftest program between two nodes, over GIDs by index; ACK timeouts as in traffic."""
    server, client = ends
    argv = [program, "-d", DEVICE, "-F", "-u", "21", *options]
    with traffic.server(server, [*argv, "-x", indexes[0]]) as process:
        client.run([*argv, "-x", indexes[1], server.link.ipv4], timeout=180)
        assert process.wait(timeout=60).returncode == 0


def settled(before: Mapping[str, int], read: Callable[[], Mapping[str, int]]) -> Counter[str]:
    """Return the counters' increments once all that was sent has arrived.

    After a minute, return them as they are; the test then reports what is missing.
    """
    deadline = time.monotonic() + 60
    while True:
        moved = Counter({name: value - before[name] for name, value in read().items()})
        arrived = moved["rcvd_pkts"] + moved["rcvd_drops"]
        if moved["sent_pkts"] == arrived or time.monotonic() > deadline:
            return moved


def check_arrivals(moved: Mapping[str, int]) -> None:
    """Assert that all that was sent arrived at its queue pair.

    If an ACK timer expired on a slow node, a copy may arrive when the queue pair is gone.
    """
    assert moved["rcvd_pkts"] + moved["rcvd_drops"] == moved["sent_pkts"] > 0
    if not moved["completer_retry_err"]:
        assert moved["rcvd_drops"] == 0


def counted(node: Node, *names: str) -> Counter[str]:
    """Return the driver's counters of a node's device."""
    base = f"/sys/class/infiniband/{DEVICE}/ports/1/hw_counters"
    values = node.run(["cat", *(f"{base}/{name}" for name in names)]).stdout.split()
    return Counter(dict(zip(names, map(int, values), strict=True)))


class Wire:
    """Capture the link between two nodes, with the increments of their counters."""

    def __init__(self, testbed: QemuTestbed, path: Path) -> None:
        self.nodes = testbed.nodes
        self.path = path
        self.capture = testbed.capture(path)

    def counters(self) -> Counter[str]:
        """Return the sum over both nodes."""
        names = ("sent_pkts", "rcvd_pkts", "rcvd_drops", "completer_retry_err")
        by_node = [counted(node, *names) for node in self.nodes]
        return Counter({name: sum(one[name] for one in by_node) for name in names})

    def __enter__(self) -> Wire:
        self.capture.__enter__()
        self.before = self.counters()
        return self

    def __exit__(self, *error: object) -> None:
        self.moved = settled(self.before, self.counters)
        self.capture.__exit__(None, None, None)

    def check(self) -> dict[str, int]:
        """Assert that all that was sent was on the wire as correct v1 frames and arrived."""
        check_arrivals(self.moved)
        assert frames.count(self.path).roce_v2 == 0
        return witness.check_v1(self.path, self.moved["sent_pkts"])


def test_path_mtus(testbed: QemuTestbed, nodes: tuple[Node, Node], tmp_path: Path) -> None:
    """Messages with every path MTU; the largest needs jumbo frames."""
    indexes = (
        chosen(nodes[0], V1, f"::ffff:{nodes[0].link.ipv4}"),
        chosen(nodes[1], V1, f"::ffff:{nodes[1].link.ipv4}"),
    )
    for mtu in (256, 512, 1024, 2048, 4096):
        with Wire(testbed, tmp_path / f"{mtu}.pcap") as wire:
            perftest("ib_write_bw", nodes, indexes, "-s", "10000", "-n", "20", "-m", str(mtu))
        wire.check()
        # GRH, BTH, RETH of the first packet, ICRC
        assert max(map(len, witness.frames(wire.path))) == 14 + 40 + 12 + 16 + mtu + 4


def test_addresses_and_services(
    testbed: QemuTestbed, nodes: tuple[Node, Node], tmp_path: Path
) -> None:
    """Link-local, IPv6 and VLAN GIDs with every service, between two machines."""
    links = [node.link.netdev for node in nodes]
    for number, (node, netdev) in enumerate(zip(nodes, links, strict=True), 1):
        node.run(["ip", "addr", "add", f"fd00:44::{number}/64", "dev", netdev, "nodad"])
        node.run(["ip", "link", "add", "link", netdev, "name", f"{netdev}.7", "type", "vlan",
                  "id", "7"])  # fmt: skip
        node.run(["ip", "link", "set", f"{netdev}.7", "up"])
        node.run(["ip", "addr", "add", f"10.46.0.{number}/24", "dev", f"{netdev}.7"])
    try:
        local = [next(address for address, kind in table(node) if address.startswith("fe80"))
                 for node in nodes]  # fmt: skip
        for name, addresses, vlan, runs in (
            ("link", local, False, [("send", "RC"), ("send", "UD")]),
            ("ipv6", ["fd00:44::1", "fd00:44::2"], False, [("send", "UC"), ("read", "RC")]),
            ("vlan", ["::ffff:10.46.0.1", "::ffff:10.46.0.2"], True,
             [("send", "RC"), ("send", "UD"), ("atomic", "RC")]),
        ):  # fmt: skip
            indexes = (chosen(nodes[0], V1, addresses[0]), chosen(nodes[1], V1, addresses[1]))
            with Wire(testbed, tmp_path / f"{name}.pcap") as wire:
                for operation, service in runs:
                    size = [] if operation == "atomic" else ["-s", "3000"]
                    argv = [*size, "-n", "10", "-c", service]
                    perftest(f"ib_{operation}_lat", nodes, indexes, *argv)
            seen = wire.check()
            for operation, service in runs:
                words = {"send": "SEND", "read": "READ_RESPONSE", "atomic": "ATOMIC_ACK"}
                assert any(
                    opcode.startswith(service) and words[operation] in opcode for opcode in seen
                ), (name, operation, service, seen)
            v1 = [f for f in witness.frames(wire.path) if witness.network(f)[0] == witness.IBOE]
            assert {f[12:14] == b"\x81\x00" for f in v1} == {vlan}, name
    finally:
        for node, netdev in zip(nodes, links, strict=True):
            node.run(["ip", "link", "delete", f"{netdev}.7"])
            node.run(
                ["ip", "addr", "flush", "dev", netdev, "scope", "global", "to", "fd00:44::/64"]
            )


CONFIG = f"/sys/kernel/config/rdma_cm/{DEVICE}"
MODE = f"{CONFIG}/ports/1/default_roce_mode"


@pytest.fixture
def cm_over_v1(nodes: tuple[Node, Node]) -> Iterator[tuple[Node, Node]]:
    """Both nodes with v1 as rdma_cm's default for their devices."""
    for node in nodes:
        node.run(["modprobe", "rdma_cm"])
        node.run(["mkdir", "-p", CONFIG])
        assert node.run(["cat", MODE]).stdout.strip() == V2
        node.run(["tee", MODE], stdin=f"{V1}\n")
    yield nodes
    for node in nodes:
        node.run(["tee", MODE], stdin=f"{V2}\n")
        node.run(["rmdir", CONFIG])


def test_rdma_cm(testbed: QemuTestbed, cm_over_v1: tuple[Node, Node], tmp_path: Path) -> None:
    """Connections by rdma_cm, whose kernel part learns the version from the work completion."""
    server, client = cm_over_v1
    with Wire(testbed, tmp_path / "cm.pcap") as wire:
        argv = ["rping", "-C", "5", "-S", "1000", "-V", "-a", server.link.ipv4]
        process = server.start([*argv, "-s"])
        try:
            # no socket shows that rping listens, so the client retries
            again = "until timeout 60 rping -c -C 5 -S 1000 -V -a $1; do sleep 0.2; done"
            client.run(["timeout", "120", "sh", "-c", again, "sh", server.link.ipv4], timeout=150)
            assert process.wait(timeout=60).returncode == 0
        finally:
            process.kill()
    seen = wire.check()
    # connecting uses UD datagrams; data are READs and WRITEs
    assert {"UD_SEND_ONLY", "RC_RDMA_READ_RESPONSE_ONLY", "RC_RDMA_WRITE_ONLY"} <= seen.keys()


MULTICAST = Path(__file__).with_name("verbs_mcast.c")


def test_multicast(testbed: QemuTestbed, nodes: tuple[Node, Node], tmp_path: Path) -> None:
    """Members of a group receive its messages, on the sender's device too; others do not.

    A card accepts only registered addresses, so the group's Ethernet address must be correct.
    The other group has the same Ethernet address and differs only in its GID. A packet is dropped
    if no member takes it, wherever in the group those are that do not.
    """
    for node in nodes:
        program = compile_program(node, MULTICAST, "-libverbs")
    for group, stranger, refused in (
        ("ff1e::4791", "ff1d::4791", "ff1e::4792"),
        ("::ffff:239.1.2.3", "::ffff:238.1.2.3", "::ffff:239.1.2.4"),
    ):
        path = tmp_path / f"{len(group)}.pcap"
        refuse = [program, "refuse", DEVICE, group]
        members = [nodes[0].start([*refuse, refused])]
        before = counted(nodes[0], "rcvd_pkts", "rcvd_drops")
        try:
            members[0].wait_for_line("attached", timeout=60)
            members += [node.start([program, "recv", DEVICE, group]) for node in nodes]
            for member in members[1:]:
                member.wait_for_line("attached", timeout=60)
            members.insert(0, nodes[0].start(refuse))
            members[0].wait_for_line("attached", timeout=60)
            with testbed.capture(path), tracing(nodes[0], "rxe_drop") as trace:
                nodes[1].run([program, "send", DEVICE, stranger, "3"])
                nodes[1].run([program, "send", DEVICE, refused, "2"])
                nodes[1].run([program, "send", DEVICE, group, "3"])
                for member in members[2:]:
                    member.wait_for_line(f"{group} 2", timeout=60)
        finally:
            for member in members:
                member.kill()
        assert witness.check_v1(path, 8) == {"UD_SEND_ONLY": 8}
        drops = count(trace.named("rxe_drop"), "reason")
        assert drops == {"mcast_group": 3, "mcast_qp": 2}
        assert counted(nodes[0], "rcvd_pkts", "rcvd_drops") - before == {
            "rcvd_pkts": 8, "rcvd_drops": 5
        }  # fmt: skip


# another socket for the type makes the network stack pass shared skbs; it reads all frames
LISTENER = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x8915))
print("listening", flush=True)
while s.recv(65536):
    pass
"""


def patched(body: bytes, at: int, value: bytes) -> bytes:
    """Return the frame with other bytes in one place."""
    return body[:at] + value + body[at + len(value) :]


def paylen(value: int) -> bytes:
    """Return the address as in the GRH."""
    return value.to_bytes(2, "big")


def test_hostile_frames(n1: Node, n2: Node) -> None:
    """Each frame is dropped for the expected reason and counted; a padded one is accepted."""
    forge = Forger(n2, n1)
    good = forge.datagram()
    strange = Forger(n2, n1)
    strange.net.b = "10.44.0.99"
    group = Forger(n2, n1)
    group.net.b = "ff1e::1234"
    multicast = bytes.fromhex("333300001234")
    frames_by_reason = [
        ("short", forge.link(good[:55])),
        ("grh", forge.link(patched(good, 0, b"\x50"))),
        ("grh", forge.link(patched(good, 6, b"\x11"))),
        ("length", forge.link(patched(good, 4, paylen(len(good))))),
        ("length", forge.link(patched(good, 4, paylen(15)))),
        ("length", forge.link(patched(good, 4, paylen(0)))),
        ("length", forge.link(patched(good, 4, paylen(20)))),
        ("otherhost", forge.link(good, to=mac("02:00:00:00:00:99"))),
        ("dgid", forge.link(strange.datagram())),
        ("mcast_group", forge.link(group.datagram(qpn=0xFFFFFF), to=multicast)),
        ("opcode", forge.link(forge.datagram(0xFF))),
        ("version", forge.link(forge.datagram(flags=1))),
        ("qpn", forge.link(forge.datagram(qpn=0x123456))),
        ("qp_type", forge.link(forge.datagram(0x04))),
        ("pkey", forge.link(forge.datagram(pkey=1))),
        ("qkey", forge.link(forge.datagram(qkey=7))),
        ("icrc", forge.link(forge.datagram(crc=b"\xde\xad\xbe\xef"))),
        # longer than a page: the receiver gets it in several fragments
        ("icrc", forge.link(forge.datagram(payload=bytes(4000), crc=bytes(4)))),
    ]
    expected = [reason for reason, _ in frames_by_reason]
    listener = n1.start(["python3", "-c", LISTENER])
    arrived = f"until [ $(grep -c rxe_drop: {TRACING}/trace) -ge $1 ]; do :; done"
    names = ("rcvd_pkts", "rcvd_drops")
    try:
        listener.wait_for_line("listening", timeout=60)
        offer_roce_v1([n1])
        n1.run(["ip", "link", "set", n1.link.netdev, "promisc", "on"])
        n1.run(["ip", "link", "add", "nobody0", "type", "veth", "peer", "name", "nobody1"])
        for end in ("nobody0", "nobody1"):
            n1.run(["ip", "link", "set", end, "up"])
        before = counted(n1, *names)
        with tracing(n1, "rxe_drop", "rxe_rx_packet") as trace:
            padded = forge.link(good + bytes(30))
            sent = [padded, *(frame for _, frame in frames_by_reason)]
            send(n2, n2.link.netdev, sent)
            seen = ["timeout", "180", "sh", "-c", arrived, "sh"]
            n1.run([*seen, str(len(expected))], timeout=210)
            # an interface without a device
            send(n1, "nobody0", [forge.link(good, to=b"\xff" * 6)])
            n1.run([*seen, str(len(expected) + 1)], timeout=210)
        after = counted(n1, *names)
    finally:
        listener.kill()
        n1.run(["ip", "link", "delete", "nobody0"], check=False)
        n1.run(["ip", "link", "set", n1.link.netdev, "promisc", "off"])
        remove_device(n1)
        add_device(n1)
    drops = trace.named("rxe_drop")
    assert [drop["reason"] for drop in drops] == [*expected, "no_device"]
    assert drops[-1]["dev"] == "-1"
    received = trace.named("rxe_rx_packet")
    # multicast is checked after it was received
    assert [event["qpn"] for event in received] == ["1", str(0xFFFFFF)]
    assert after - before == {"rcvd_pkts": 2, "rcvd_drops": len(expected)}
