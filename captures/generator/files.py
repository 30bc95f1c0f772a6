# SPDX-License-Identifier: GPL-2.0-or-later
"""pcap and pcapng, written by hand."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

ETHERNET, SLL, SLL2, RAW = 1, 113, 276, 101
Packet = tuple[int, bytes]
"""Time in ns since 1970, and the frame."""


def pcap(packets: Iterable[Packet], *, nano: bool = True, order: str = "<", link: int = ETHERNET,
         snap: int = 262144) -> bytes:  # fmt: skip
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link)]
    for time, data in packets:
        seconds, rest = divmod(time, 10**9)
        stored = data[:snap]
        fraction = rest if nano else rest // 1000
        out.append(struct.pack(order + "IIII", seconds, fraction, len(stored), len(data)) + stored)
    return b"".join(out)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str = "<", options: bytes = b"") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + options, order)


def interface(link: int = ETHERNET, resolution: int | None = 9, order: str = "<",
              snap: int = 0, offset: int | None = None) -> bytes:  # fmt: skip
    options = b"" if resolution is None else option(9, bytes([resolution]), order)
    if offset is not None:
        options += option(14, struct.pack(order + "q", offset), order)
    if options:
        options += option(0, b"", order)
    return block(1, struct.pack(order + "HHI", link, 0, snap) + options, order)


def packet_block(ticks: int, data: bytes, *, number: int = 0, order: str = "<", comment: str = "",
                 size: int | None = None) -> bytes:  # fmt: skip
    """An enhanced packet block; `ticks` in the interface's resolution."""
    head = struct.pack(
        order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), size or len(data)
    )
    body = head + data + bytes(-len(data) % 4)
    if comment:
        body += option(1, comment.encode(), order) + option(0, b"", order)
    return block(6, body, order)


def pcapng(packets: Iterable[Packet], comments: Sequence[str] = ()) -> bytes:
    out = [section(), interface()]
    for index, (time, data) in enumerate(packets):
        comment = comments[index] if index < len(comments) else ""
        out.append(packet_block(time, data, comment=comment))
    return b"".join(out)
