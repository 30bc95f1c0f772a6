# SPDX-License-Identifier: GPL-2.0-or-later
"""How the driver handles a frame's namespace, encapsulation and fragments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import corpus
from forger import Forger, send
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import add_device, offer_roce_v1, remove_device
from rxe_trace import TRACING, tracing

NAMESPACE, VLAN = "stranger", 9
_EXCLUSIVE_OFF = "until rdma system set netns shared; do sleep 0.1; done"
_ARRIVED = f"until [ $(grep -c $1: {TRACING}/trace) -ge $2 ]; do :; done"


@contextmanager
def devices_of_their_own(node: Node) -> Iterator[None]:
    """Give each RDMA device to one network namespace only; existing ones to the first.

    The kernel allows this change only while there is no other namespace.
    """
    node.run(["rdma", "system", "set", "netns", "exclusive"])
    try:
        yield
    finally:
        # the kernel frees a namespace some time after its name is gone
        node.run(["timeout", "180", "sh", "-c", _EXCLUSIVE_OFF], timeout=210)


@contextmanager
def vlan_elsewhere(node: Node) -> Iterator[None]:
    """A VLAN interface on the device's network interface, in another network namespace."""
    netdev = node.link.netdev
    name = f"{netdev}.{VLAN}"
    node.run(["ip", "netns", "add", NAMESPACE])
    try:
        node.run(["ip", "link", "add", "link", netdev, "name", name, "netns", NAMESPACE,
                  "type", "vlan", "id", str(VLAN)])  # fmt: skip
        node.run(["ip", "-n", NAMESPACE, "link", "set", name, "up"])
        yield
    finally:
        node.run(["ip", "-n", NAMESPACE, "link", "delete", name], check=False)
        node.run(["ip", "netns", "delete", NAMESPACE])


def until_seen(node: Node, event: str, times: int) -> None:
    """Wait until the trace has this many of an event."""
    node.run(["timeout", "180", "sh", "-c", _ARRIVED, "sh", event, str(times)], timeout=210)


def test_other_namespace(n1: Node, n2: Node) -> None:
    """A frame from a namespace that may not use the device is dropped.

    The same frame in the device's namespace reaches its management queue pair.
    """
    forge = Forger(n2, n1)
    good = forge.datagram()
    try:
        offer_roce_v1([n1])
        with (
            devices_of_their_own(n1),
            vlan_elsewhere(n1),
            tracing(n1, "rxe_drop", "rxe_rx_packet") as trace,
        ):
            send(n2, n2.link.netdev, [forge.link(good, vlan=VLAN), forge.link(good)])
            until_seen(n1, "rxe_rx_packet", 1)
    finally:
        remove_device(n1)
        add_device(n1)
    (drop,) = trace.named("rxe_drop")
    assert drop["reason"] == "netns"
    (received,) = trace.named("rxe_rx_packet")
    assert received["dev"] == drop["dev"] != "-1"


# enum rdma_network_type of <rdma/ib_verbs.h>
NETWORK_TYPES = {"v1": 1, "v2_ipv4": 2, "v2_ipv6": 3}
PROBE = "p:rocelab/mad_received ib_core:ib_mad_recv_done type=+{offset}(%si):u8"


def offset_of(node: Node, structure: str, member: str) -> int:
    """Return the offset of a member of a structure of ib_core, from the kernel's BTF."""
    command = ["pahole", "--btf_base", "/sys/kernel/btf/vmlinux", "-C", structure,
               "/sys/kernel/btf/ib_core"]  # fmt: skip
    listing = node.run(command, timeout=120).stdout
    match = re.search(rf"\b{member};\s+/\*\s+(\d+)\s+\d+ \*/", listing)
    assert match, listing
    return int(match[1])


def test_completions_name_the_network(n1: Node, n2: Node) -> None:
    """A UD completion tells consumers in the kernel the encapsulation of the message.

    The handler of management datagrams is such a consumer; the test reads what it gets.
    """
    probes = f"{TRACING}/kprobe_events"
    enable = f"{TRACING}/events/rocelab/mad_received/enable"
    offset = offset_of(n1, "ib_wc", "network_hdr_type")
    forges = [Forger(n2, n1, kind) for kind in NETWORK_TYPES]
    try:
        offer_roce_v1([n1])
        n1.run(["tee", f"{TRACING}/trace"], stdin="\n")
        n1.run(["tee", probes], stdin=PROBE.format(offset=offset) + "\n")
        n1.run(["tee", enable], stdin="1\n")
        for number, forge in enumerate(forges, 1):
            send(n2, n2.link.netdev, [forge.link(forge.datagram())])
            until_seen(n1, "mad_received", number)
        trace = n1.run(["cat", f"{TRACING}/trace"]).stdout
    finally:
        n1.run(["tee", enable], stdin="0\n", check=False)
        n1.run(["tee", probes], stdin="\n")  # opening it to write removes the probes
        remove_device(n1)
        add_device(n1)
    seen = [line.rsplit("type=", 1)[1] for line in trace.splitlines() if "type=" in line]
    assert seen == [str(kind) for kind in NETWORK_TYPES.values()]


def fragments(packet: bytes, size: int) -> list[bytes]:
    """Split an IPv4 packet into fragments of this many bytes, a multiple of 8."""
    header, body = packet[:20], packet[20:]
    pieces = []
    for at in range(0, len(body), size):
        piece = body[at : at + size]
        more = 0x2000 if at + size < len(body) else 0
        offset = int.from_bytes(header[6:8], "big") | more | at // 8
        length = len(header) + len(piece)
        head = header[:2] + length.to_bytes(2, "big") + header[4:6] + offset.to_bytes(2, "big")
        head += header[8:10] + bytes(2) + header[12:]
        checksum = corpus.frames.checksum(head).to_bytes(2, "big")
        pieces.append(head[:10] + checksum + head[12:] + piece)
    return pieces


def test_fragments(n1: Node, n2: Node) -> None:
    """The driver accepts a reassembled packet if it is correct; it ignores a single fragment.

    The driver gets it as a chain of buffers, and ICRC and headers may be in any of them.
    """
    forge = Forger(n2, n1, "v2_ipv4")
    whole = forge.datagram(payload=bytes(200))
    good = fragments(whole, 64)
    wrong = fragments(forge.datagram(payload=bytes(200), crc=bytes(4)), 64)
    # with this identification, the packet never becomes complete
    part = fragments(whole[:4] + b"\xff\xff" + whole[6:], 64)[0]
    pieces = [part, *good, *reversed(good), *wrong]
    with tracing(n1, "rxe_drop", "rxe_rx_packet") as trace:
        send(n2, n2.link.netdev, [forge.link(piece) for piece in pieces])
        until_seen(n1, "rxe_drop", 1)
    assert [drop["reason"] for drop in trace.named("rxe_drop")] == ["icrc"]
    assert [event["payload"] for event in trace.named("rxe_rx_packet")] == ["200", "200"]
