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
            return _wrap_in_fabric(kind, frame, number, ends)


def _wrap_in_fabric(  # noqa: PLR0911, PLR0912 (one for each kind)
    kind: str, frame: bytes, number: int, ends: tuple[str, str]
) -> bytes:
    packet, tagged = frame[_LINK:], frame[12:]
    v4 = frame[12:14] == b"\x08\x00"
    match kind:
        case "pbb":
            return _MACS + b"\x88\xe7" + struct.pack(">I", number) + frame
        case "vntag":
            return frame[:12] + b"\x89\x26\x00\x01\x00\x02" + tagged
        case "cisco_metadata":
            return frame[:12] + b"\x89\x09\x01\x01\x00\x01\x00\x05" + tagged
        case "r_tag":
            return frame[:12] + b"\xf1\xc1\0\0" + struct.pack(">H", number) + tagged
        case "macsec":
            return frame[:12] + b"\x88\xe5\x20\0" + bytes(12) + tagged + bytes(16)
        case "snap":
            head = b"\xaa\xaa\x03\0\0\0"
            return frame[:12] + struct.pack(">H", len(head) + len(tagged)) + head + tagged
        case "trill":
            return _MACS + b"\x22\xf3\x00\x5f\x00\x01\x00\x02" + bytes(4) + frame
        case "fabricpath":
            return _MACS + b"\x89\x03\x00\x40" + frame
        case "nsh":
            return _MACS + b"\x89\x4f\x0f\xc2\x02\x03\0\0\x05\xff" + frame
        case "nsh_in_vxlan_gpe":
            head = struct.pack(">BBHI", 0x0C, 0, 4, number << 8)
            nsh = struct.pack(">BBBBI", 0x0F, 0xC2, 2, 1 if v4 else 2, 0x5FF)
            return _outer(17, _udp(4790, head + nsh + packet), ends)
        case "gtp_u":
            head = struct.pack(">BBHI", 0x34, 0xFF, len(packet) + 8, number)
            return _outer(17, _udp(2152, head + b"\0\0\0\x85\x01\0\0\0" + packet), ends)
        case "l2tp":
            return _outer(115, struct.pack(">I", number) + bytes(4) + frame, ends)
        case "etherip":
            return _outer(97, b"\x30\0" + frame, ends)
        case "srv6":
            route = struct.pack(">BBBBI", 143, 2, 4, 0, 0) + bytes(16)
            head = struct.pack(">IHBB", 6 << 28, len(route) + len(frame), 43, 64) + bytes(32)
            return _MACS + b"\x86\xdd" + head + route + frame
        case "tzsp":
            return _outer(17, _udp(37008, b"\x01\0\0\x01\x0a\x01\xc4\0\x01" + frame), ends)
        case "sflow":
            return _outer(17, _udp(6343, _sflow(frame, number)), ends)
        case _:
            raise ValueError(kind)


def _sflow(frame: bytes, number: int) -> bytes:
    """A datagram with counters, a sample of ARP, and one of `frame`, without the FCS."""

    def sample(data: bytes) -> bytes:
        body = data + bytes(-len(data) % 4)
        header = struct.pack(">IIII", 1, len(data) + 4, 4, len(data)) + body
        record = struct.pack(">II", 1, len(header)) + header
        flow = struct.pack(">8I", number, 3, 1000, 1000, 0, 3, 4, 1) + record
        return struct.pack(">II", 1, len(flow)) + flow

    arp = _MACS + b"\x08\x06" + bytes(46)
    counters = struct.pack(">II", 2, 12) + bytes(12)
    head = struct.pack(">IIIIIII", 5, 1, 0x0A010101, 0, number, 1000, 3)
    return head + counters + sample(arp) + sample(frame)


KINDS = (
    "vxlan", "geneve", "gre", "nvgre", "erspan1", "erspan2", "erspan3", "mpls", "ip_in_ip", "pppoe",
)  # fmt: skip

IN_FABRICS = (
    "pbb", "vntag", "cisco_metadata", "r_tag", "macsec", "snap", "trill", "fabricpath", "nsh",
    "nsh_in_vxlan_gpe", "gtp_u", "l2tp", "etherip", "srv6", "tzsp", "sflow",
)  # fmt: skip
"""Further kinds: of fabrics, carriers and samplers."""
