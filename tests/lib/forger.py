# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames that one node forges to another, correct except for what a test spoils."""

from __future__ import annotations

import json
from collections.abc import Sequence

import corpus
from rocelab.measure.hostile_frames import GSI_QKEY, link_local, mac
from rocelab.testbed.node import Node

ETHER_TYPES = {"v1": 0x8915, "v2_ipv4": 0x0800, "v2_ipv6": 0x86DD}
_SEND = """
import json, socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
for frame in json.load(sys.stdin):
    s.send(bytes.fromhex(frame))
"""


def send(node: Node, netdev: str, frames: Sequence[bytes]) -> None:
    """Put whole frames on an interface."""
    listing = json.dumps([frame.hex() for frame in frames])
    node.run(["python3", "-c", _SEND, netdev], stdin=listing)


class Forger:
    """Datagrams from a node to another's management queue pair, in one encapsulation."""

    def __init__(self, sender: Node, receiver: Node, kind: str = "v1") -> None:
        macs = sender.link.mac, receiver.link.mac
        ends = (
            [link_local(address) for address in macs]
            if kind == "v2_ipv6"
            else [sender.link.ipv4, receiver.link.ipv4]
        )
        self.net = corpus.frames.Net(kind=kind, a=ends[0], b=ends[1])
        self.source, self.target = map(mac, macs)

    def link(self, body: bytes, *, to: bytes | None = None, vlan: int | None = None) -> bytes:
        """The Ethernet frame around a network header and what follows."""
        tag = b"" if vlan is None else b"\x81\x00" + vlan.to_bytes(2, "big")
        kind = ETHER_TYPES[self.net.kind].to_bytes(2, "big")
        return (to or self.target) + self.source + tag + kind + body

    def datagram(
        self, opcode: int = 0x64, *, flags: int = 0, pkey: int = 0xFFFF, qpn: int = 1,
        qkey: int = GSI_QKEY, payload: bytes = bytes(64), crc: bytes | None = None,
    ) -> bytes:  # fmt: skip
        """Return a UD SEND from the network header on, with a correct ICRC."""
        bth = bytes((opcode, flags)) + pkey.to_bytes(2, "big") + qpn.to_bytes(4, "big") + bytes(4)
        deth = qkey.to_bytes(4, "big") + (1).to_bytes(4, "big")
        frame: bytes = corpus.frames.frame(self.net, "a", bth + deth + payload, crc=crc, link=False)
        return frame
