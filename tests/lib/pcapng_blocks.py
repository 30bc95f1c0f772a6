# SPDX-License-Identifier: GPL-2.0-or-later
"""The blocks of any pcapng file: several sections, either byte order, any content."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

SECTION, OBSOLETE, SIMPLE, ENHANCED = 0x0A0D0D0A, 2, 3, 6
COMMENT = 1


@dataclass(frozen=True)
class Block:
    """A whole block."""

    order: str
    kind: int
    body: bytes

    @property
    def is_packet(self) -> bool:
        return self.kind in {OBSOLETE, SIMPLE, ENHANCED}

    @property
    def _options_at(self) -> int:
        captured: int = struct.unpack_from(self.order + "I", self.body, 12)[0]
        return 20 + (captured + 3 & ~3)

    @property
    def packet(self) -> bytes:
        """Of an enhanced or obsolete packet block: all before its options."""
        return self.body[: self._options_at]

    @property
    def options(self) -> list[tuple[int, bytes]]:
        """Likewise: code and value; AssertionError where they make no sense."""
        every, at = [], self._options_at
        while at < len(self.body):
            code, size = struct.unpack_from(self.order + "HH", self.body, at)
            assert at + 4 + size <= len(self.body), "an option longer than its block"
            if code == 0:
                break
            every.append((code, self.body[at + 4 : at + 4 + size]))
            at += 4 + (size + 3 & ~3)
        return every


def blocks(data: bytes) -> Iterator[Block]:
    """All blocks; AssertionError where the two lengths of one differ, or the last is cut."""
    at, order = 0, "<"
    while at < len(data):
        if data[at : at + 4] == b"\x0a\x0d\x0d\x0a":
            order = "<" if data[at + 8 : at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
        kind, size = struct.unpack_from(order + "II", data, at)
        assert size >= 12
        assert size % 4 == 0
        assert at + size <= len(data), "the last block is cut"
        assert struct.unpack_from(order + "I", data, at + size - 4) == (size,)
        yield Block(order, kind, data[at + 8 : at + size - 4])
        at += size


def packets(data: bytes) -> list[Block]:
    """Packet blocks, in Wireshark's numbering from 1 on."""
    return [block for block in blocks(data) if block.is_packet]
