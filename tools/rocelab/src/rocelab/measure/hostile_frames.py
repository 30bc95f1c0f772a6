# SPDX-License-Identifier: GPL-2.0-or-later
"""Mutated frames for a node's driver: correct packets for queue pairs that wait for them, spoilt.

`verbs_target` makes the queue pairs, `frame_fuzz` spoils and sends (tools/drivercheck).
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv6Address, ip_address
from pathlib import PurePosixPath

from rocelab import shared_tables
from rocelab.errors import TestbedError
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import device_of
from rocelab.testbed.node.private_folder import private_folder

QKEY = 0x11111111
"""The Q_Key of verbs_target's UD queue pairs."""
GSI_QKEY = 0x80010000
"""The Q_Key of the management queue pair, whose number is 1."""
PLACE = 0x800000
"""Queue pair PLACE + N stands for the one that is at place N when the frame is sent."""
MAX_TEMPLATES = 256
KINDS = {"v1": ("v1",), "v2": ("v2_ipv4", "v2_ipv6")}
"""RoCE versions and their encapsulations."""
TARGETS = 24
"""Queue pairs of a verbs_target."""
_ETHER_TYPES = {"v1": 0x8915, "v2_ipv4": 0x0800, "v2_ipv6": 0x86DD}
_UDP_PORTS = (49152, 4791)
_SECONDS = 600
End = tuple[bytes, str]
"""MAC and IP address."""


def mac(text: str) -> bytes:
    """Return the six bytes of a MAC address."""
    return bytes.fromhex(text.replace(":", ""))


def link_local(address: str) -> str:
    """Return the IPv6 link-local address that follows from a MAC address."""
    octets = mac(address)
    interface = bytes((octets[0] ^ 2,)) + octets[1:3] + b"\xff\xfe" + octets[3:]
    return str(IPv6Address(b"\xfe\x80" + bytes(6) + interface))


def end_of(node: Node, kind: str) -> End:
    """Return a node's end in an encapsulation: MAC and IP address."""
    link = node.link
    return mac(link.mac), link_local(link.mac) if kind == "v2_ipv6" else link.ipv4


@cache
def _opcodes() -> dict[str, int]:
    return {row["name"]: int(row["code"], 16) for row in shared_tables.rows("opcodes")}


def _packet(name: str, qpn: int, psn: int, headers: bytes = b"", payload: bytes = b"") -> bytes:
    """BTH to pad."""
    pad = -len(payload) % 4
    bth = struct.pack(">BBHII", _opcodes()[name], 0x40 | pad << 4, 0xFFFF, qpn, psn)
    return bth + headers + payload + bytes(pad)


def _reth(va: int, rkey: int, length: int) -> bytes:
    return struct.pack(">QII", va, rkey, length)


def _aeth(syndrome: int, msn: int) -> bytes:
    return struct.pack(">I", syndrome << 24 | msn)


def _deth(qkey: int, qpn: int) -> bytes:
    return struct.pack(">II", qkey, qpn)


def messages(qpns: dict[str, list[int]], va: int, rkey: int) -> list[bytes]:
    """Return BTH to pad of correct packets for the queue pairs: all kinds of packets."""
    atomic = struct.pack(">QIQQ", va, rkey, 1, 1)
    imm, original = b"\x12\x34\x56\x78", bytes(8)
    packets = []
    for qpn in qpns["rc"]:
        packets += [
            _packet("RC_SEND_ONLY", qpn, 0, payload=bytes(65)),
            _packet("RC_SEND_FIRST", qpn, 0, payload=bytes(1024)),
            _packet("RC_SEND_MIDDLE", qpn, 1, payload=bytes(1024)),
            _packet("RC_SEND_LAST_WITH_IMMEDIATE", qpn, 2, imm, bytes(7)),
            _packet("RC_SEND_ONLY_WITH_INVALIDATE", qpn, 0, rkey.to_bytes(4, "big"), bytes(4)),
            _packet("RC_RDMA_WRITE_ONLY", qpn, 0, _reth(va, rkey, 64), bytes(64)),
            _packet("RC_RDMA_WRITE_FIRST", qpn, 0, _reth(va, rkey, 3000), bytes(1024)),
            _packet(
                "RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", qpn, 0, _reth(va, rkey, 4) + imm, bytes(4)
            ),
            _packet("RC_RDMA_READ_REQUEST", qpn, 0, _reth(va, rkey, 5000)),
            _packet("RC_COMPARE_SWAP", qpn, 0, atomic),
            _packet("RC_FETCH_ADD", qpn, 0, atomic),
            _packet("RC_FLUSH", qpn, 0, bytes(4) + _reth(va, rkey, 64)),
            _packet("RC_ATOMIC_WRITE", qpn, 0, _reth(va, rkey, 8), bytes(8)),
            _packet("RC_ACKNOWLEDGE", qpn, 0, _aeth(0x1F, 1)),
            _packet("RC_ACKNOWLEDGE", qpn, 0, _aeth(0x60, 1)),
            _packet("RC_ACKNOWLEDGE", qpn, 0, _aeth(0x21, 1)),
            _packet("RC_RDMA_READ_RESPONSE_ONLY", qpn, 0, _aeth(0x1F, 1), bytes(1024)),
            _packet("RC_RDMA_READ_RESPONSE_FIRST", qpn, 0, _aeth(0x1F, 1), bytes(1024)),
            _packet("RC_RDMA_READ_RESPONSE_MIDDLE", qpn, 1, payload=bytes(1024)),
            _packet("RC_ATOMIC_ACKNOWLEDGE", qpn, 5, _aeth(0x1F, 1) + original),
        ]
    for qpn in qpns["uc"]:
        packets += [
            _packet("UC_SEND_FIRST", qpn, 0, payload=bytes(1024)),
            _packet("UC_SEND_LAST", qpn, 1, payload=bytes(9)),
            _packet("UC_RDMA_WRITE_ONLY", qpn, 0, _reth(va, rkey, 64), bytes(64)),
        ]
    for qpn, qkey in [*((qpn, QKEY) for qpn in qpns["ud"]), (1, GSI_QKEY)]:
        packets += [
            _packet("UD_SEND_ONLY", qpn, 0, _deth(qkey, 17), bytes(256)),
            _packet("UD_SEND_ONLY_WITH_IMMEDIATE", qpn, 0, _deth(qkey, 17) + imm, bytes(3)),
        ]
    return packets


def templates(kind: str, target: End, attacker: End, packets: Sequence[bytes]) -> list[bytes]:
    """Return frames with these packets, and one to a multicast group without members.

    frame_fuzz computes their ICRC and checksums.
    """
    v4 = kind == "v2_ipv4"
    group = (
        bytes.fromhex("01005e010203" if v4 else "333300004791"),
        ("239.1.2.3" if v4 else "ff1e::4791"),
    )
    lost = _packet("UD_SEND_ONLY", 0xFFFFFF, 0, _deth(QKEY, 17), bytes(64))
    return [
        *(_frame(kind, target, attacker, packet) for packet in packets),
        _frame(kind, group, attacker, lost),
    ]


def _frame(kind: str, target: End, attacker: End, packet: bytes) -> bytes:
    length = len(packet) + 4
    udp = b""
    if kind != "v1":
        udp = struct.pack(">HHHH", *_UDP_PORTS, 8 + length, 0)
        length += len(udp)
    ends = [ip_address(address).packed for _, address in (attacker, target)]
    if kind == "v2_ipv4":
        network = struct.pack(
            ">BBHHHBBH4s4s", 0x45, 0, 20 + length, 0x1234, 0x4000, 64, 17, 0, *ends
        )
    else:
        wide = (one if len(one) == 16 else bytes(10) + b"\xff\xff" + one for one in ends)
        following = 0x1B if kind == "v1" else 17
        network = struct.pack(">IHBB16s16s", 6 << 28 | 0x12345, length, following, 64, *wide)
    link = target[0] + attacker[0] + _ETHER_TYPES[kind].to_bytes(2, "big")
    return link + network + udp + packet + bytes(4)


@dataclass(frozen=True)
class Targets:
    """What a verbs_target offers: memory, its key, and queue pairs by RoCE version and service."""

    va: int
    rkey: int
    qpns: dict[str, dict[str, list[int]]]


@contextmanager
def targets(victim: Node, program: str, peer_ipv4: str) -> Iterator[Targets]:
    """Run verbs_target on a node for as long as the context lasts; it writes next to itself."""
    path = f"{program}.txt"
    process = victim.start(
        ["sh", "-c", "exec $0 $1 $2 >$3", program, device_of(victim), peer_ipv4, path]
    )
    try:
        ready = "until grep -qs ready $0; do sleep 0.05; done"
        victim.run(["timeout", "120", "sh", "-c", ready, path], timeout=150)
        listing = victim.run(["cat", path]).stdout.splitlines()
        va, rkey = map(int, listing[0].split())
        qpns: dict[str, dict[str, list[int]]] = {version: {} for version in KINDS}
        for line in listing[1:-1]:
            version, service, qpn = line.split()
            qpns[version].setdefault(service, []).append(int(qpn))
        yield Targets(va, rkey, qpns)
        have = victim.run(["rdma", "resource", "show", "qp"]).stdout
        if have.count("comm verbs_target") != TARGETS:
            raise TestbedError(
                f"verbs_target on {victim.name} gave up",
                cause="the driver refused to connect a queue pair again",
                action="Look at the driver's change: what it does in the error state.",
            )
    finally:
        process.kill()
    gone = "while rdma resource show qp | grep -q 'comm verbs_target'; do sleep 0.05; done"
    victim.run(["timeout", "120", "sh", "-c", gone], timeout=150)


def send(node: Node, program: str, frames: Sequence[bytes], count: int, seed: int) -> int:
    """Send this many mutations of the frames with frame_fuzz; returns how many it sent."""
    assert len(frames) <= MAX_TEMPLATES
    done = node.run(
        [program, node.link.netdev, str(seed), str(count)],
        stdin="".join(f"{frame.hex()}\n" for frame in frames),
        timeout=_SECONDS,
    )
    return int(done.stdout)


def arrivals(node: Node) -> int:
    """Return the number of frames that the card passed to the network stack."""
    path = f"/sys/class/net/{node.link.netdev}/statistics/rx_packets"
    return int(node.run(["cat", path]).stdout)


def attack(
    version: str,
    victim: Node,
    attacker: Node,
    on: Targets,
    *,
    program: str,
    count: int,
    seed: int,
    patience: float = 1,
) -> int:
    """Send mutations of one RoCE version, and wait until they have arrived; returns how many."""
    arrived, sent = arrivals(victim), 0
    packets = messages(on.qpns[version], on.va, on.rkey)
    for kind in KINDS[version]:
        frames = templates(kind, end_of(victim, kind), end_of(attacker, kind), packets)
        sent += send(attacker, program, frames, count // len(KINDS[version]), seed)
    deadline = time.monotonic() + 120 * patience
    while arrivals(victim) - arrived < sent:
        if time.monotonic() > deadline:
            raise TestbedError(
                f"{sent} frames were sent to {victim.name}, not all arrived",
                cause="the node does not receive any more, or this machine is too busy",
                action="Try again when the machine is idle.",
            )
    return sent


@contextmanager
def install(node: Node, line: str) -> Iterator[tuple[str, str]]:
    """Have verbs_target and frame_fuzz on a node; yields their paths there."""
    with private_folder(node, "check") as folder:
        paths = f"{folder}/verbs_target", f"{folder}/frame_fuzz"
        for path in paths:
            node.put(artifacts.check_program(PurePosixPath(path).name, line), path, mode=0o755)
        yield paths
