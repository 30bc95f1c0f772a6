# SPDX-License-Identifier: GPL-2.0-or-later
"""Tunnels around an Ethernet frame, from their specifications' fields."""

from __future__ import annotations

import ipaddress
import struct

from generator.frames import checksum

_MACS = b"\x02\xff\0\0\0\x02" + b"\x02\xff\0\0\0\x01"
_LINK = 14
VXLAN, GENEVE, MPLS_UDP = 4789, 6081, 6635
GRE, IPV4, IPV6 = 47, 4, 41


def _outer(protocol: int, payload: bytes, ends: tuple[str, str]) -> bytes:
    """Ethernet and IPv4 around a payload."""
    src, dst = (ipaddress.ip_address(end).packed for end in ends)
    head = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 7, 0x4000, 64, protocol, 0, src, dst
    )
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    return _MACS + b"\x08\x00" + head + payload


def _udp(port: int, payload: bytes) -> bytes:
    return struct.pack(">HHHH", 50000, port, 8 + len(payload), 0) + payload


def wrap(  # noqa: PLR0911 (one for each kind)
    kind: str, frame: bytes, number: int, *, reverse: bool = False
) -> bytes:
    """The tunnel packet that carries `frame`, an untagged Ethernet frame.

    `number` is its VNI, VSID, session, label or key.
    """
    ends = ("192.0.2.1", "192.0.2.2")
    ends = ends[::-1] if reverse else ends
    packet, ethertype = frame[_LINK:], frame[12:14]

    def gre(protocol: int, body: bytes, flags: int = 0, fields: bytes = b"") -> bytes:
        return _outer(GRE, struct.pack(">HH", flags, protocol) + fields + body, ends)

    match kind:
        case "vxlan":
            head = struct.pack(">BBHI", 8, 0, 0, number << 8)
            return _outer(17, _udp(VXLAN, head + frame), ends)
        case "geneve":
            head = struct.pack(">BBHI4s", 1, 0, 0x6558, number << 8, b"\0\1\1\0")
            return _outer(17, _udp(GENEVE, head + frame), ends)
        case "gre":
            return gre(int.from_bytes(ethertype, "big"), packet, 0x2000, struct.pack(">I", number))
        case "nvgre":
            return gre(0x6558, frame, 0x2000, struct.pack(">I", number << 8))
        case "erspan1":
            return gre(0x88BE, frame)
        case "erspan2":
            head = struct.pack(">HHI", 1 << 12 | 5, number, 0)
            return gre(0x88BE, head + frame, 0x1000, struct.pack(">I", 1))
        case "erspan3":
            head = struct.pack(">HHIHH", 2 << 12 | 5, number, 0, 0, 0)
            return gre(0x22EB, head + frame, 0x1000, struct.pack(">I", 1))
        case "mpls":
            labels = struct.pack(">II", 100 << 12 | 64, number << 12 | 0x100 | 64)
            return _MACS + b"\x88\x47" + labels + packet
        case "ip_in_ip":
            return _outer(IPV4 if ethertype == b"\x08\x00" else IPV6, packet, ends)
        case "pppoe":
            protocol = 0x0021 if ethertype == b"\x08\x00" else 0x0057
            head = struct.pack(">BBHHH", 0x11, 0, number, 2 + len(packet), protocol)
            return _MACS + b"\x88\x64" + head + packet
        case _:
            raise ValueError(kind)


KINDS = (
    "vxlan", "geneve", "gre", "nvgre", "erspan1", "erspan2", "erspan3", "mpls", "ip_in_ip", "pppoe",
)  # fmt: skip
