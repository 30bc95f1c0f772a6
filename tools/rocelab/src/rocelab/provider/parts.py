# SPDX-License-Identifier: GPL-2.0-or-later
"""Captures of the parts of a link, each frame in one of them, become one."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from rocelab.errors import TestbedError

_FILE_HEAD = 24
_RECORD = struct.Struct("=IIII")
"""Seconds, their fraction, captured bytes, length; in the byte order of the machine that reads."""


def merge(parts: Sequence[Path], path: Path) -> None:
    """Captures by one program (so that their heads are alike), in the order of their times.

    Raises TestbedError when one is cut off.
    """
    contents = [part.read_bytes() for part in parts]
    with path.open("wb") as file:
        file.write(contents[0][:_FILE_HEAD])
        for _, frame in heapq.merge(*map(_records, contents), key=lambda record: record[0]):
            file.write(frame)


def _records(content: bytes) -> Iterator[tuple[tuple[int, int], bytes]]:
    offset, length = _FILE_HEAD, len(content)
    while offset < length:
        body = offset + _RECORD.size
        seconds, fraction, captured, _ = _RECORD.unpack(content[offset:body].ljust(_RECORD.size))
        if body > length or captured > length - body:
            raise TestbedError(
                "a part of the capture is not complete",
                cause="the disk is full, or the machine that captured it ended",
            )
        yield (seconds, fraction), content[offset : body + captured]
        offset = body + captured
