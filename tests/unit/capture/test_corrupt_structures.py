# SPDX-License-Identifier: GPL-2.0-or-later
"""Each structure that no capture can have is named, and what precedes it is read all the same."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from rocelab import capture
from rocelab.capture.annotate import annotate

SECTION, INTERFACE, SIMPLE, ENHANCED = 0x0A0D0D0A, 1, 3, 6
FRAME = bytes(60)


def block(kind: int, body: bytes = b"", *, length: int | None = None) -> bytes:
    total = struct.pack("<I", len(body) + 12 if length is None else length)
    return struct.pack("<I", kind) + total + body + total


def packet(interface: int = 0, *, captured: int = len(FRAME), data: bytes = FRAME) -> bytes:
    return block(ENHANCED, struct.pack("<5I", interface, 0, 0, captured, captured) + data)


def section(magic: int = 0x1A2B3C4D) -> bytes:
    return block(SECTION, struct.pack("<IHHq", magic, 1, 0, -1))


GOOD = section() + block(INTERFACE, struct.pack("<HHI", 1, 0, 0)) + packet()
RECORD = struct.pack("<4I", 0, 0, len(FRAME), len(FRAME)) + FRAME
PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + RECORD

CORRUPT = {
    "no magic": (GOOD + section(0x12345678), "a section without its byte-order magic"),
    "odd length": (GOOD + block(SIMPLE, bytes(4), length=17), "a block length that is no multiple"),
    "no length": (GOOD + block(SIMPLE, bytes(4), length=8), "or below 12"),
    "long block": (GOOD + block(ENHANCED, bytes(20), length=1 << 25), "block over 16 MiB"),
    "no link type": (GOOD + block(INTERFACE), "an interface block without its link type"),
    "short packet": (GOOD + block(ENHANCED, bytes(4)), "a packet block shorter than its header"),
    "short simple": (GOOD + block(SIMPLE), "a packet block shorter than its header"),
    "no interface": (GOOD + packet(7), "a packet of an interface that was not described"),
    "new section": (
        GOOD + section() + block(SIMPLE, struct.pack("<I", 60) + FRAME),
        "a packet of an interface that was not described",
    ),
    "long packet": (GOOD + packet(captured=64), "a packet longer than its block"),
    "long record": (PCAP + struct.pack("<4I", 0, 0, 1 << 25, 1 << 25), "a record over 16 MiB"),
}


@pytest.mark.parametrize("kind", CORRUPT)
def test_it_is_named_by_analyze(kind: str, tmp_path: Path) -> None:
    content, why = CORRUPT[kind]
    path = tmp_path / "capture"
    path.write_bytes(content)
    seen = capture.analyze([str(path)]).result["input"]
    assert seen["packets"] == 1
    (error,) = seen["errors"]
    assert error["error"].startswith("corrupt after packet 1: ")
    assert why in error["error"]


@pytest.mark.parametrize("kind", CORRUPT)
def test_annotate_keeps_what_precedes_it(kind: str, tmp_path: Path) -> None:
    content, why = CORRUPT[kind]
    path, copy = tmp_path / "capture", tmp_path / "copy.pcapng"
    path.write_bytes(content)
    errors = annotate(path, [], copy)["errors"]
    assert any(why in error["error"] for error in errors), errors
    assert capture.analyze([str(copy)]).result["input"]["packets"] == 1
