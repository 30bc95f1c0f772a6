# SPDX-License-Identifier: GPL-2.0-or-later
"""Capture by QEMU's filter-dump, outside the guest."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocelab.errors import TestbedError
from rocelab.provider.parts import merge
from rocelab.provider.qemu.qmp import execute

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
