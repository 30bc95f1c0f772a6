# SPDX-License-Identifier: GPL-2.0-or-later
"""Merge captures that were taken at several points of a link into one."""

from __future__ import annotations

import heapq
import mmap
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from rocelab.errors import TestbedError

_FILE_HEAD = 24
_RECORD = struct.Struct("=IIII")
"""Seconds, fraction of a second, captured bytes, original length; in this machine's byte order."""


def merge(parts: Sequence[Path], path: Path) -> None:
    """Merge captures into `path`, ordered by time.

    One program must have written them all, so that they share one file header. Raises
    TestbedError when one is cut off.
    """
    with ExitStack() as stack:
        contents = [stack.enter_context(_map(part)) for part in parts]
        file = stack.enter_context(path.open("wb"))
        file.write(contents[0][:_FILE_HEAD])
        for _, frame in heapq.merge(*map(_records, contents), key=lambda record: record[0]):
            file.write(frame)


@contextmanager
def _map(path: Path) -> Iterator[mmap.mmap]:
    """The content of a file that may be larger than the memory."""
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            yield content
        finally:
            # views of it that a traceback still refers to keep it open: it goes with them
            with suppress(BufferError):
                content.close()


def _records(content: mmap.mmap) -> Iterator[tuple[tuple[int, int], bytes]]:
    offset, length = _FILE_HEAD, len(content)
    while offset < length:
        body = offset + _RECORD.size
        seconds, fraction, captured, _ = _RECORD.unpack(content[offset:body].ljust(_RECORD.size))
        if body > length or captured > length - body:
            raise TestbedError(
                "one of the captures to be merged is not complete",
                cause="the disk is full, or the machine that captured it stopped",
                action="Check the free disk space and whether all nodes are up, and try again.",
            )
        yield (seconds, fraction), content[offset : body + captured]
        offset = body + captured
