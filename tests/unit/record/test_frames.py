# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames of a capture are counted by the table of opcodes that all languages share."""

from __future__ import annotations

import pytest

from frames_counted import count_frames
from rocelab import shared_tables
from rocelab.record.frames import Frames

_OPCODES = [row for row in shared_tables.rows("opcodes") if row["name"][:2] in {"RC", "UC", "UD"}]


def count(opcode: int) -> Frames:
    """Count a RoCE v1 frame with this opcode; 60 bytes after its BTH are headers and message."""
    ethernet = bytes(12) + b"\x89\x15"
    grh = b"\x60\0\0\0" + (12 + 60 + 4).to_bytes(2) + bytes(34)
    return count_frames(ethernet + grh + bytes([opcode]) + bytes(11 + 64))


@pytest.mark.parametrize("row", _OPCODES, ids=lambda row: row["name"])
def test_every_opcode_of_the_table_is_decoded(row: dict[str, str]) -> None:
    frames = count(int(row["code"], 16))
    assert (frames.roce_v1, frames.undecoded) == (1, 0)
    quiet = {"read_request", "acknowledge", "atomic_acknowledge", "flush"}
    assert frames.roce_data == (row["class"] not in quiet)


@pytest.mark.parametrize(
    ("opcode", "headers"),
    [(0x0B, 16 + 4), (0x13, 28), (0x1D, 16), (0x2A, 16), (0x65, 8 + 4), (0x0D, 4)],
)
def test_headers_are_no_message(opcode: int, headers: int) -> None:
    assert count(opcode).roce_payload_bytes == 60 - headers


@pytest.mark.parametrize("opcode", [0x15, 0x2C, 0x60, 0xA4, 0xFF])
def test_what_rxe_does_not_know_is_not_decoded(opcode: int) -> None:
    """Reserved ones, a READ over UC, SEND first over UD, XRC."""
    assert count(opcode).undecoded == 1
