# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCE v2 over IPv4 in Ethernet frames: read the BTH, change a bit, make an answer.

InfiniBand Architecture Specification, volume 1, chapter 9 (BTH, AETH), annex A17 (RoCE v2, ICRC,
CNP). Frames are of our own virtual machines, without VLAN tags.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

_ETHERNET = 14
_IPV4 = b"\x08\x00"
_UDP = 17
_UDP_BYTES, _BTH_BYTES, _ICRC_BYTES = 8, 12, 4
ROCE_PORT = 4791
_CE = 3
_ACKNOWLEDGE, _CNP = 0x11, 0x81
_ATOMIC_ACKNOWLEDGE = 0x12
_RNR_NAK = 0x20
_BECN = 0x40
_RESPONSES = frozenset(range(0x0D, 0x13))
_FIRST = frozenset((0x00, 0x06))
"""SEND first, RDMA WRITE first."""
_WHOLE = frozenset((0x04, 0x05, 0x0A, 0x0B, 0x0C, 0x13, 0x14, 0x17))
"""Messages whose request is one packet, RDMA READ and ATOMIC among them."""
_ENDS = _WHOLE | {0x02, 0x03, 0x08, 0x09, 0x16, 0x0F, 0x10, 0x11, 0x12}
_READ_REQUEST = 0x0C


@dataclass(frozen=True)
class Packet:
    """A RoCE packet's BTH, and where it is in its frame."""

    opcode: int
    dqpn: int
    psn: int
    offset: int
    """Of the BTH in the frame."""

    @property
    def is_response(self) -> bool:
        """Whether a responder sent it."""
        return self.opcode in _RESPONSES

    @property
    def begins(self) -> bool:
        """Whether it begins a message."""
        return self.opcode in _FIRST or self.opcode in _WHOLE

    @property
    def ends(self) -> bool:
        """Whether it ends a message, or an answer."""
        return self.opcode in _ENDS

    @property
    def is_read_request(self) -> bool:
        """Whether it is an RDMA READ request, whose answer uses more PSNs than itself."""
        return self.opcode == _READ_REQUEST


def parse(frame: bytes) -> Packet | None:
    """Return the packet of a reliable connection in a frame; None if there is none."""
    if frame[12:14] != _IPV4 or len(frame) < _ETHERNET + 20 or frame[23] != _UDP:
        return None
    udp = _ETHERNET + (frame[14] & 15) * 4
    offset = udp + _UDP_BYTES
    if len(frame) < offset + _BTH_BYTES + _ICRC_BYTES:
        return None
    if int.from_bytes(frame[udp + 2 : udp + 4]) != ROCE_PORT or frame[offset] >= 0x20:
        return None
    return Packet(
        frame[offset],
        int.from_bytes(frame[offset + 5 : offset + 8]),
        int.from_bytes(frame[offset + 9 : offset + 12]),
        offset,
    )


def flip(frame: bytes, packet: Packet, bit: int) -> bytes:
    """Change one bit, counted from the BTH on, and remove the UDP checksum.

    Raises ValueError for a bit after the frame's end.
    """
    at = packet.offset + bit // 8
    if at >= _end(frame):
        raise ValueError(f"the packet has no bit {bit}")
    changed = bytearray(frame)
    changed[at] ^= 0x80 >> bit % 8
    changed[packet.offset - 2 : packet.offset] = b"\0\0"
    return bytes(changed)


def mark_ce(frame: bytes) -> bytes:
    """Return the frame with ECN's code point CE; the ICRC does not cover it."""
    changed = bytearray(frame)
    changed[15] |= _CE
    header = _ETHERNET + (frame[14] & 15) * 4
    changed[24:26] = b"\0\0"
    changed[24:26] = _checksum(changed[_ETHERNET:header]).to_bytes(2)
    return bytes(changed)


def rnr_nak(request: bytes, packet: Packet, dqpn: int, timer: int, msn: int) -> bytes:
    """Return the RNR NAK that answers a request to the queue pair `dqpn`."""
    bth = struct.pack("!BBHII", _ACKNOWLEDGE, 0x40, 0xFFFF, dqpn, packet.psn)
    return _answer(request, packet, bth + struct.pack("!I", (_RNR_NAK | timer) << 24 | msn))


def cnp(request: bytes, packet: Packet, dqpn: int) -> bytes:
    """Return the congestion notification packet for the sender of a request."""
    bth = struct.pack("!BBHII", _CNP, 0x40, 0xFFFF, _BECN << 24 | dqpn, 0)
    return _answer(request, packet, bth + bytes(16))


def _answer(request: bytes, packet: Packet, body: bytes) -> bytes:
    """Return a frame back to the request's sender, with a right ICRC."""
    udp = struct.pack("!HHHH", *_port(request, packet), ROCE_PORT, 12 + len(body), 0)
    ip = bytearray(
        struct.pack("!BBHHHBBH", 0x45, 0, 32 + len(body), 0, 0x4000, 64, _UDP, 0)
        + request[30:34]
        + request[26:30]
    )
    ip[10:12] = _checksum(ip).to_bytes(2)
    datagram = bytes(ip) + udp + body
    ethernet = request[6:12] + request[0:6] + _IPV4
    return ethernet + datagram + icrc(datagram)


def _port(request: bytes, packet: Packet) -> tuple[int]:
    """Return the request's source port: any is right."""
    return (int.from_bytes(request[packet.offset - 8 : packet.offset - 6]),)


def icrc(datagram: bytes) -> bytes:
    """Return the ICRC of an IPv4 datagram without options that ends before it (annex A17.3.3)."""
    masked = bytearray(datagram)
    masked[1] = masked[8] = 0xFF  # type of service, time to live
    masked[10:12] = masked[26:28] = b"\xff\xff"  # checksums of IP and UDP
    masked[32] = 0xFF  # FECN, BECN and reserved bits of the BTH
    return zlib.crc32(b"\xff" * 8 + bytes(masked)).to_bytes(4, "little")


def _end(frame: bytes) -> int:
    return _ETHERNET + int.from_bytes(frame[16:18])


def _checksum(header: bytes | bytearray) -> int:
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def msn_of(frame: bytes, packet: Packet) -> int | None:
    """Return the message sequence number of an answer that has one."""
    if packet.opcode in (_ACKNOWLEDGE, _ATOMIC_ACKNOWLEDGE):
        at = packet.offset + _BTH_BYTES
        return int.from_bytes(frame[at + 1 : at + 4])
    return None
