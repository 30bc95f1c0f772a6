# SPDX-License-Identifier: GPL-2.0-or-later
"""A strict pcapng reader for tests, independent of rocelab's: incomplete files are errors."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

SECTION, INTERFACE, STATISTICS, PACKET = 0x0A0D0D0A, 1, 5, 6
COMMENT = 1
INBOUND, OUTBOUND = 1, 2
_PCAP_NS, _PCAP_US = 0xA1B23C4D, 0xA1B2C3D4


@dataclass(frozen=True)
class Packet:
    """An Enhanced Packet Block."""

    interface: str
    ns: int
    frame: bytes
    length: int
    """Of the frame before it was cut."""
    direction: int
    comment: str

    @property
    def fields(self) -> dict[str, str]:
        """The comment's keys and unescaped values."""
        return parse_comment(self.comment)

    @property
    def stages(self) -> dict[str, int]:
        """Nanoseconds of each stage that the comment has, in its order."""
        return {
            key.removesuffix("_ns"): int(value)
            for key, value in self.fields.items()
            if key.endswith("_ns") and key != "gap_ns"
        }


@dataclass
class Capture:
    """All blocks of a file."""

    section: dict[int, bytes] = field(default_factory=dict)
    interfaces: list[dict[int, bytes]] = field(default_factory=list)
    packets: list[Packet] = field(default_factory=list)
    count: int = 0
    """Packets in the file."""
    statistics: dict[int, dict[int, bytes]] = field(default_factory=dict)
    """By number of the interface; of several blocks the last."""

    @property
    def session(self) -> dict[str, str]:
        """The section's comment."""
        return parse_comment(self.section[COMMENT].decode())

    def counters(self, interface: int = 0) -> dict[str, int]:
        """An interface's statistics: the options, and its comment's."""
        options = self.statistics[interface]
        codes = {"received": 4, "lost": 7, "delivered": 8}
        numbers = {key: int.from_bytes(options[code], "little") for key, code in codes.items()}
        comment = parse_comment(options[COMMENT].decode())
        return numbers | {key: int(value) for key, value in comment.items() if value.isdecimal()}

    def names(self) -> list[str]:
        """Of the interfaces."""
        return [options[2].decode() for options in self.interfaces]

    def sent(self) -> list[Packet]:
        """Outbound packets."""
        return [packet for packet in self.packets if packet.direction == OUTBOUND]

    def received(self) -> list[Packet]:
        """Inbound packets."""
        return [packet for packet in self.packets if packet.direction == INBOUND]


def parse_comment(text: str) -> dict[str, str]:
    """Keys and values; the first word, the version, has the key `schema`."""
    version, *words = text.split(" ")
    pairs = {"schema": version}
    for word in words:
        key, value = word.split("=", 1)
        assert key not in pairs, f"{key} stands twice: {text}"
        pairs[key] = unquote(value)
    return pairs


def _blocks(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        assert length % 4 == 0
        assert length >= 12
        assert at + length <= len(data), "the last block is cut"
        assert struct.unpack_from("<I", data, at + length - 4) == (length,)
        yield kind, data[at + 8 : at + length - 4]
        at += length


def _options(data: bytes) -> dict[int, bytes]:
    options: dict[int, bytes] = {}
    at = 0
    while at < len(data):
        code, length = struct.unpack_from("<HH", data, at)
        at += 4
        if code == 0:
            assert at == len(data), "options after their end"
            return options
        options[code] = data[at : at + length]
        at += (length + 3) & ~3
    raise AssertionError("options without an end")


def _packet(body: bytes, interfaces: list[dict[int, bytes]]) -> Packet:
    number, high, low, captured, length = struct.unpack_from("<IIIII", body)
    assert captured <= length
    padded = (captured + 3) & ~3
    options = _options(body[20 + padded :])
    return Packet(
        interfaces[number][2].decode(),
        high << 32 | low,
        body[20 : 20 + captured],
        length,
        struct.unpack("<I", options[2])[0] & 3,
        options[COMMENT].decode("ascii"),
    )


def read_pcapng(path: Path, *, every: int = 1) -> Capture:
    """One section, little-endian; of its packets, all or one in `every`."""
    capture = Capture()
    for kind, body in _blocks(path.read_bytes()):
        if kind == SECTION:
            assert not capture.section, "a second section"
            assert body[:16] == bytes.fromhex("4d3c2b1a01000000ffffffffffffffff")
            capture.section = _options(body[16:])
        elif kind == INTERFACE:
            assert struct.unpack_from("<HH", body) == (1, 0)
            options = _options(body[8:])
            assert options[9] == b"\x09"
            capture.interfaces.append({**options, 0: body[4:8]})
        elif kind == PACKET:
            if capture.count % every == 0:
                capture.packets.append(_packet(body, capture.interfaces))
            capture.count += 1
        elif kind == STATISTICS:
            capture.statistics[struct.unpack_from("<I", body)[0]] = _options(body[12:])
        else:
            raise AssertionError(f"block type {kind:#x}")
    assert capture.section, "no section header"
    return capture


def read_pcap(path: Path) -> list[bytes]:
    """Frames of a classic pcap file."""
    data = path.read_bytes()
    assert struct.unpack_from("<I", data)[0] in (_PCAP_NS, _PCAP_US)
    frames, at = [], 24
    while at < len(data):
        captured, length = struct.unpack_from("<II", data, at + 8)
        assert captured == length
        frames.append(data[at + 16 : at + 16 + captured])
        at += 16 + captured
    return frames
