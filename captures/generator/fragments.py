# SPDX-License-Identifier: GPL-2.0-or-later
"""IP fragments of frames."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from generator.frames import checksum

IDENTIFICATION = 9
_ETHERNET, _IPV4, _IPV6 = 14, 20, 40
_FRAGMENT_HEADER = 44
_DONT_FRAGMENT = 0x4000


def cut(
    frame: bytes,
    ends: Sequence[int],
    *,
    identification: int = IDENTIFICATION,
    rewrite: bool = False,
) -> list[bytes]:
    """Return the Ethernet frame in IP fragments.

    `ends`, multiples of 8, are where all but the last one end, behind the IP header. Of IPv4,
    `rewrite` clears DF and sets `identification`, of which the ICRC knows nothing; else both stay.
    """
    v4 = frame[_ETHERNET] >> 4 == 4
    start = _ETHERNET + (_IPV4 if v4 else _IPV6)
    head, body = frame[:start], frame[start:]
    ends = [end for end in ends if end < len(body)]
    parts = []
    for begin, end in zip((0, *ends), (*ends, len(body)), strict=True):
        part, more = body[begin:end], end < len(body)
        if v4:
            number, flags = struct.unpack_from(">HH", head, 18)
            flags &= _DONT_FRAGMENT
            if rewrite:
                number, flags = identification, 0
            flags |= 0x2000 * more | begin // 8
            size = struct.pack(">HHH", _IPV4 + len(part), number, flags)
            ip = head[14:16] + size + head[22:24] + bytes(2) + head[26:]
            ip = ip[:10] + checksum(ip).to_bytes(2, "big") + ip[12:]
            parts.append(head[:14] + ip + part)
        else:
            extension = struct.pack(">BBHI", head[20], 0, begin | more, identification)
            size = struct.pack(">HB", len(extension) + len(part), _FRAGMENT_HEADER)
            parts.append(head[:18] + size + head[21:] + extension + part)
    return parts
