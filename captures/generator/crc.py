# SPDX-License-Identifier: GPL-2.0-or-later
"""The invariant CRC as the specification words it (IBA 7.8.1, A16, A17.3.3), by zlib's CRC-32."""

from __future__ import annotations

from zlib import crc32


def _ones(data: bytearray, *at: int) -> None:
    for index in at:
        data[index] = 0xFF


def pseudo_packet(net: str, network: bytes, udp: bytes, transport: bytes) -> bytes:
    """What the ICRC runs over: a dummy LRH, then all from the network header up to the ICRC.

    `net` is "v1", "v2_ipv4" or "v2_ipv6"; `udp` is empty for v1; `transport` starts at the BTH.
    """
    header = bytearray(network)
    if net == "v2_ipv4":
        _ones(header, 1, 8, 10, 11)
    else:
        header[0] |= 0x0F
        _ones(header, 1, 2, 3, 7)
    datagram = bytearray(udp)
    if datagram:
        _ones(datagram, 6, 7)
    body = bytearray(transport)
    _ones(body, 4)
    return b"\xff" * 8 + bytes(header) + bytes(datagram) + bytes(body)


def icrc(net: str, network: bytes, udp: bytes, transport: bytes) -> bytes:
    """The four bytes after the pad: the CRC, least significant byte first."""
    return crc32(pseudo_packet(net, network, udp, transport)).to_bytes(4, "little")
