# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets to the RoCE port that a driver must reject, each for a different reason."""

from __future__ import annotations

import json

from rocelab.testbed.node import Node

SENDER = """
import json, socket, sys
for options, target, body in json.load(sys.stdin):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        if options:
            s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, bytes.fromhex(options))
        s.sendto(bytes.fromhex(body), (target, 4791))
"""
ROUTER_ALERT = "94040000"
GSI_QPN = 1
"""The one queue pair that every device has."""


def bth(
    opcode: int, *, flags: int = 0, pkey: int = 0xFFFF, qpn: int = GSI_QPN, rest: bytes = b""
) -> bytes:
    """A BTH and what follows it."""
    head = bytes((opcode, flags)) + pkey.to_bytes(2, "big") + qpn.to_bytes(4, "big") + bytes(4)
    return head + rest


def deth(qkey: int) -> bytes:
    """A DETH from queue pair 1, 64 bytes of payload, and a wrong ICRC."""
    return qkey.to_bytes(4, "big") + (1).to_bytes(4, "big") + bytes(64) + b"\xde\xad\xbe\xef"


GSI_QKEY = 0x80010000
UD_SEND_ONLY = 0x64
HOSTILE = {
    # the packet that crashes the stock driver: patch 1 of the series
    "short": (ROUTER_ALERT, b"x"),
    "opcode": ("", bth(0xFF, rest=bytes(64))),
    "length": ("", bth(0x11)),
    "version": ("", bth(UD_SEND_ONLY, flags=1, rest=deth(GSI_QKEY))),
    "qpn": ("", bth(UD_SEND_ONLY, qpn=0x123456, rest=deth(GSI_QKEY))),
    "qp_type": ("", bth(0x04, rest=bytes(64))),
    "pkey": ("", bth(UD_SEND_ONLY, pkey=1, rest=deth(GSI_QKEY))),
    "qkey": ("", bth(UD_SEND_ONLY, rest=deth(7))),
    "icrc": ("", bth(UD_SEND_ONLY, rest=deth(GSI_QKEY))),
}


def send(node: Node, *packets: tuple[str, str, bytes]) -> None:
    """Send UDP packets to the RoCE port: IP options (hexadecimal), address, body."""
    listed = [(options, target, body.hex()) for options, target, body in packets]
    node.run(["python3", "-c", SENDER], stdin=json.dumps(listed))
