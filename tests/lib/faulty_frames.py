# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCE v2 frames of a client (10.0.0.1) and a server (10.0.0.2), as rxe sends them."""

from __future__ import annotations

import struct

from rocelab.testbed.faults.roce_frame import icrc

CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
CLIENT_QPN, SERVER_QPN = 17, 18
FIRST, MIDDLE, LAST_OF, ONLY = 0x00, 0x01, 0x02, 0x04
READ, READ_FIRST, READ_MIDDLE, READ_LAST, ACK = 0x0C, 0x0D, 0x0E, 0x0F, 0x11


def frame(
    opcode: int, psn: int, *, to_client: bool = False, body: bytes = b"", syndrome: int = 0x1F
) -> bytes:
    """Make a frame."""
    dqpn = CLIENT_QPN if to_client else SERVER_QPN
    bth = struct.pack("!BBHII", opcode, 0x40, 0xFFFF, dqpn, psn)
    extended = bytes((syndrome, 0, 0, 9)) if opcode in (READ_FIRST, READ_LAST, ACK) else b""
    payload = bth + extended + body
    ends = (b"\x0a\0\0\2", b"\x0a\0\0\1") if to_client else (b"\x0a\0\0\1", b"\x0a\0\0\2")
    ip = struct.pack("!BBHHHBBH", 0x45, 2, 32 + len(payload), 0, 0x4000, 64, 17, 0)
    udp = struct.pack("!HHHH", 50000, 4791, 12 + len(payload), 0)
    datagram = ip + ends[0] + ends[1] + udp + payload
    return b"\2" * 6 + b"\4" * 6 + b"\x08\0" + datagram + icrc(datagram)


def message(start: int, packets: int = 4) -> list[bytes]:
    """Make a SEND of several packets."""
    opcodes = [FIRST, *[MIDDLE] * (packets - 2), LAST_OF]
    return [
        frame(opcode, (start + i) & 0xFFFFFF, body=bytes(64)) for i, opcode in enumerate(opcodes)
    ]
