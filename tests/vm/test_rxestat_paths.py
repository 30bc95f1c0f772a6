# SPDX-License-Identifier: GPL-2.0-or-later
"""rxestat on every kind of packet, and `xmit` behind a queueing discipline."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import traffic
from node_program import compile_program
from rocelab.testbed.node import Node
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rxestat_watch import (
    Document,
    check_rows,
    count_switched,
    packets,
    slept,
    stage_counts,
    watching,
)
from veth_pair import Pair, veth_pair
from vmlab import LINE, PATIENCE

ODP_SLEEP = Path(__file__).with_name("verbs_odp_sleep.c")
DISK = "/dev/vda"
"""The node's only one, with its files."""
MESSAGES = 3 * 16
MILLISECOND = 1_000_000


@pytest.fixture(scope="module")
def pair(shared_testbed: QemuTestbed) -> Iterator[Pair]:
    """Two devices on the first node, one clock."""
    with veth_pair(shared_testbed.nodes[0]) as pair:
        yield pair


def kinds(document: Document, event: str) -> Counter[tuple[str, str, str]]:
    """Return the packets of an event by device, service and opcode class."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for row in document["packets"]:
        if row["event"] == event:
            counts[row["dev"], row["service"], row["opcode_class"]] += row["count"]
    return counts


@pytest.mark.parametrize(
    ("transport", "operation", "request_class", "answer_class"),
    [
        ("rc", "write", "RDMA_WRITE", "ACKNOWLEDGE"),
        ("rc", "send_imm", "SEND", "ACKNOWLEDGE"),
        ("rc", "read", "RDMA_READ_REQUEST", "RDMA_READ_RESPONSE"),
        ("rc", "cas", "ATOMIC", "ATOMIC_ACKNOWLEDGE"),
        ("uc", "write", "RDMA_WRITE", None),
        ("ud", "send", "SEND", None),
    ],
)
def test_every_kind(
    n1: Node, pair: Pair, transport: str, operation: str, request_class: str, answer_class: str
) -> None:
    """Each service and operation is reported by name, on the device that sent it."""
    with watching(n1) as (watch,):
        pair.loop(transport, operation, 8, 2)
        document = watch.stop()
    check_rows(document)
    service = transport.upper()
    there = {("rxe_a", service, request_class): MESSAGES}
    back = {("rxe_b", service, answer_class): MESSAGES} if answer_class else {}
    assert kinds(document, "tx") == there | back
    arrived = {("rxe_b", service, request_class): MESSAGES}
    if answer_class:
        arrived["rxe_a", service, answer_class] = MESSAGES
    assert kinds(document, "rx") == kinds(document, "done") == arrived
    sizes = {row["opcode_class"]: row["size_class"] for row in document["packets"]}
    payload = {"RDMA_WRITE", "SEND", "RDMA_READ_RESPONSE"}
    assert sizes == {name: "1-64" if name in payload else "0" for name in sizes}
    left_out = count_switched(document, "tx")
    assert stage_counts(document, "tx")["xmit"] == packets(document, "tx").total() - left_out


@pytest.mark.skipif(LINE in ("6.1", "6.12"), reason="the driver has no on-demand paging")
def test_on_demand_paging_is_counted_apart(n1: Node, pair: Pair) -> None:
    """A READ whose page is on the disk lets the responder sleep, and nobody else."""
    assert pair
    reads = 16
    program = compile_program(n1, ODP_SLEEP, "-libverbs")
    table = n1.start(["rxestat"])
    try:
        table.wait_for_line("rxestat: ready", timeout=120 * PATIENCE)
        with watching(n1) as (watch,):
            words = [program, "rxe_a", "rxe_b", DISK, str(reads)]
            assert n1.run(words, timeout=60 * PATIENCE).stdout == "done\n"
            document = watch.stop()
        table.interrupt()
        text = table.wait(timeout=60 * PATIENCE).stdout
    finally:
        table.kill()
    check_rows(document, sleeps=True)
    asleep = slept(document)
    # the request whose answer waits for the page, and the answer
    assert set(asleep) == {("done", "RDMA_READ_REQUEST"), ("tx", "RDMA_READ_RESPONSE")}
    assert set(asleep.values()) == {reads}
    printed = re.findall(r"(\w+): \d+ packets.*, (\d+) left out \(on-demand paging\)", text)
    assert sorted(printed) == [("finished", str(reads)), ("sent", str(reads))]


@contextmanager
def netem(node: Node, netdev: str, *words: str) -> Iterator[None]:
    """A queueing discipline that delays or loses."""
    node.run(["tc", "qdisc", "add", "dev", netdev, "root", "netem", *words])
    try:
        yield
    finally:
        node.run(["tc", "qdisc", "del", "dev", netdev, "root"])


def test_xmit_contains_the_queue(testbed: QemuTestbed) -> None:
    """A delay in the queueing discipline is completely in xmit and in no other stage.

    netem takes the driver's destructor off a packet: these are known by their headers.
    """
    n1, n2 = testbed.nodes
    delay = netem(n1, n1.link.netdev, "delay", "20ms")
    with delay, watching(n1, options=("--direction", "tx")) as (watch,):
        traffic.perftest("ib_send_lat", n1, n2, size=64, iterations=20)
        document = watch.stop()
    check_rows(document)
    sent = packets(document, "tx").total() - count_switched(document, "tx")
    assert stage_counts(document, "tx")["xmit"] == sent
    for row in document["rows"]:
        if row["stage"] == "xmit":
            assert row["min_ns"] >= 20 * MILLISECOND
        else:
            assert row["p50_ns"] < MILLISECOND, row["stage"]


# a VLAN on each end, whose address becomes the only one, and so a GID that verbs_loop chooses
_VLANS = """
set -e
vlan() {
	ip link add link "veth_$1" name "vlan_$1" type vlan id 7
	ip addr add "10.46.0.$2/24" dev "vlan_$1"
	sysctl -qw "net.ipv4.conf.vlan_$1.rp_filter=0" "net.ipv4.conf.vlan_$1.accept_local=1"
	ip link set "vlan_$1" up
	ip neigh replace "10.46.0.$3" lladdr "02:00:00:45:00:0$4" dev "vlan_$1" nud permanent
	ip addr delete "10.45.0.$2/24" dev "veth_$1"
	gids=/sys/class/infiniband/rxe_$1/ports/1/gids
	until grep -qs ":0a2e:" $gids/* && ! grep -qs ":0a2d:" $gids/*; do sleep 0.1; done
}
vlan a 1 2 b
vlan b 2 1 a
"""
# with its last address a device loses its neighbours, too
_NO_VLANS = """
pair() {
	ip link delete "vlan_$1"
	ip addr add "10.45.0.$2/24" dev "veth_$1"
	ip neigh replace "10.45.0.$3" lladdr "02:00:00:45:00:0$4" dev "veth_$1" nud permanent
}
pair a 1 2 b
pair b 2 1 a
"""


def test_xmit_ends_below_a_vlan(n1: Node, pair: Pair) -> None:
    """A packet over a VLAN passes two devices: the queue of the lower one is in xmit, too."""
    try:
        n1.run(["timeout", "60", "sh", "-c", _VLANS])
        there, back = (netem(n1, f"veth_{end}", "delay", "20ms") for end in "ab")
        with there, back, watching(n1, options=("--direction", "tx")) as (watch,):
            pair.loop("rc", "write", 8, 1, chain=4)
            document = watch.stop()
        over = int(n1.run(["cat", "/sys/class/net/vlan_a/statistics/tx_packets"]).stdout)
    finally:
        n1.run(["sh", "-c", _NO_VLANS])
    check_rows(document)
    sent = packets(document, "tx").total()
    assert over >= sent / 2 > 0
    assert stage_counts(document, "tx")["xmit"] == sent - count_switched(document, "tx")
    for row in document["rows"]:
        if row["stage"] == "xmit":
            assert row["min_ns"] >= 20 * MILLISECOND


def test_lost_packets_have_no_xmit(testbed: QemuTestbed) -> None:
    """Packets dropped by a queueing discipline have no xmit; the others do."""
    n1, n2 = testbed.nodes
    loss = netem(n1, n1.link.netdev, "loss", "20%")
    with loss, watching(n1, options=("--direction", "tx")) as (watch,):
        traffic.perftest("ib_send_lat", n1, n2, size=64, iterations=100, ack_timeout=16)
        listed = n1.run(["tc", "-s", "-j", "qdisc", "show", "dev", n1.link.netdev, "root"]).stdout
        document = watch.stop()
    check_rows(document)
    sent = packets(document, "tx").total() - count_switched(document, "tx")
    passed = stage_counts(document, "tx")["xmit"]
    (statistics,) = json.loads(listed)
    assert 0 < sent - passed <= statistics["drops"]


def test_a_stranger_in_recycled_memory(testbed: QemuTestbed, pair: Pair) -> None:
    """A stale address of a packet that never reached the device gives no other packet an xmit."""
    n1, n2 = testbed.nodes
    loss = netem(n1, "veth_a", "loss", "100%")
    with loss, watching(n1, options=("--direction", "tx")) as (watch,):
        # an unreliable write completes when it is sent; its far end then misses the payload
        done = pair.loop("uc", "write", 8, 2, check=False)
        assert "the payload is not what was sent" in done.stderr
        n1.run(["ping", "-q", "-c", "500", "-i", "0.002", n2.link.ipv4])
        document = watch.stop()
    check_rows(document)
    assert packets(document, "tx").total() == MESSAGES
    assert "xmit" not in stage_counts(document, "tx")
