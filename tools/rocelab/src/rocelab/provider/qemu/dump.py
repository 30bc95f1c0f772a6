# SPDX-License-Identifier: GPL-2.0-or-later
"""Capture by QEMU's filter-dump, outside the guest."""

from __future__ import annotations

import heapq
import struct
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocelab.errors import TestbedError
from rocelab.provider.qemu.qmp import execute

_FILE_HEAD = 24
_RECORD = struct.Struct("=IIII")
"""Seconds, microseconds, captured bytes, length; the machine that reads is the one that wrote."""
_TRIES = 20


@contextmanager
def whole_card(qmp: Path, path: Path, snaplen: int) -> Iterator[None]:
    """Both directions of a machine's card on the data link."""
    _add(qmp, "wire", {"netdev": "data", "file": str(path.resolve()), "maxlen": snaplen})
    try:
        yield
    finally:
        execute(qmp, "object-del", {"id": "wire"})


@contextmanager
def arrivals(qmp: Path, netdevs: Sequence[str], path: Path, snaplen: int) -> Iterator[None]:
    """What the other sides of a machine's links send to it, of all of them in one file."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".ports-") as folder:
        parts = [Path(folder) / f"{netdev}.pcap" for netdev in netdevs]
        ids = [f"wire-{netdev}" for netdev in netdevs]
        add_in_one_second(qmp, ids, netdevs, parts, snaplen)
        try:
            yield
        finally:
            for each in ids:
                execute(qmp, "object-del", {"id": each})
        merge(parts, path)


def add_in_one_second(
    qmp: Path, ids: Sequence[str], netdevs: Sequence[str], parts: Sequence[Path], snaplen: int
) -> None:
    """A dump's clock is the machine's, exactly, from the whole second on in which it was made."""
    for _ in range(_TRIES):
        second = int(time.time())
        for each, netdev, part in zip(ids, netdevs, parts, strict=True):
            # `tx`: what the link gives to the card
            words = {"netdev": netdev, "file": str(part.resolve()), "maxlen": snaplen}
            _add(qmp, each, {**words, "queue": "tx"})
        if int(time.time()) == second:
            return
        for each in ids:
            execute(qmp, "object-del", {"id": each})
    raise TestbedError(
        "the captures of the switch's ports could not be begun in one second",
        cause="this machine is too busy",
    )


def _add(qmp: Path, name: str, words: dict[str, object]) -> None:
    execute(qmp, "object-add", {"qom-type": "filter-dump", "id": name, **words})


def merge(parts: Sequence[Path], path: Path) -> None:
    """Captures of one clock in the order of their times.

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
        seconds, micros, captured, _ = _RECORD.unpack(content[offset:body].ljust(_RECORD.size))
        if body > length or captured > length - body:
            raise TestbedError(
                "the capture of a switch's port is not complete",
                cause="the disk is full, or the switch's QEMU ended",
            )
        yield (seconds, micros), content[offset : body + captured]
        offset = body + captured
