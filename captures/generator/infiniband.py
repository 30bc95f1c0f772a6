# SPDX-License-Identifier: GPL-2.0-or-later
"""Native InfiniBand packets, and the ERF records in which ibdump and Endace's cards capture."""

from __future__ import annotations

import struct
from zlib import crc32

from generator.frames import Net

LINK, ERF = 247, 197
LIDS = {"a": 17, "b": 18}
ETHERNET, INFINIBAND, MORE = 2, 21, 0x80
_LOCAL, _GLOBAL = 2, 3
_LRH, _GRH, _ICRC, _VCRC = 8, 40, 4, 2


def packet(sender: str, transport: bytes, *, grh: Net | None = None, crc: bytes = b"") -> bytes:
    """LRH, GRH (with the addresses of `grh`), `transport` (BTH to pad), ICRC, and a VCRC of zeros.

    The ICRC (IBA 7.8.1) takes the virtual lane as ones, or the whole LRH if there is a GRH.
    """
    other = "b" if sender == "a" else "a"
    length = (_LRH + (_GRH if grh else 0) + len(transport) + _ICRC) // 4
    header = struct.pack(">BBHHH", 0x30, 0x10 | (_GLOBAL if grh else _LOCAL), LIDS[other], length,
                         LIDS[sender])  # fmt: skip
    if grh is None:
        body, masked = header, bytes([0xF0 | header[0]]) + header[1:]
    else:
        first = 6 << 28 | grh.tclass << 20 | 0x12345
        route = struct.pack(
            ">IHBB16s16s", first, len(transport) + _ICRC, 0x1B, grh.ttl, grh.address(sender),
            grh.address(other),
        )  # fmt: skip
        body = header + route
        masked = b"\xff" * _LRH + b"\x6f\xff\xff\xff" + route[4:7] + b"\xff" + route[8:]
    covered = masked + transport[:4] + b"\xff" + transport[5:]
    icrc = crc or crc32(covered).to_bytes(4, "little")
    return body + transport + icrc + bytes(_VCRC)


def record(kind: int, time_ns: int, frame: bytes, *, extensions: int = 0) -> bytes:
    """An ERF record: time (little-endian, 32.32 bits of seconds), type, flags, lengths, frame."""
    seconds, rest = divmod(time_ns, 10**9)
    stamp = seconds << 32 | (rest << 32) // 10**9
    chain = b"".join(
        bytes([MORE if index + 1 < extensions else 0]) + bytes(7) for index in range(extensions)
    )
    if kind == ETHERNET:
        chain += bytes(2)
    size = 16 + len(chain) + len(frame)
    fields = (kind | (MORE if extensions else 0), 4, size, 0, len(frame))
    return struct.pack("<Q", stamp) + struct.pack(">BBHHH", *fields) + chain + frame
