# SPDX-License-Identifier: GPL-2.0-or-later
"""Capture with QEMU's filter-dump, outside the guest."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocelab.directory import temporary_folder
from rocelab.errors import TestbedError
from rocelab.testbed.capture_parts import merge
from rocelab.testbed.qemu.qmp import execute

_TRIES = 20


@contextmanager
def both_directions(qmp: Path, path: Path, snaplen: int) -> Iterator[None]:
    """Capture both directions of a machine's card on the data link."""
    _add(qmp, "wire", {"netdev": "data", "file": str(path.resolve()), "maxlen": snaplen})
    try:
        yield
    finally:
        execute(qmp, "object-del", {"id": "wire"})


@contextmanager
def arrivals(qmp: Path, netdevs: Sequence[str], path: Path, snaplen: int) -> Iterator[None]:
    """Capture what arrives at a machine on all of these links, merged into one file."""
    with temporary_folder(dir=path.parent, prefix=".ports-") as folder:
        parts = [Path(folder) / f"{netdev}.pcap" for netdev in netdevs]
        ids = [f"wire-{netdev}" for netdev in netdevs]
        add_in_one_second(qmp, ids, netdevs, parts, snaplen)
        try:
            yield
        finally:
            for dump_id in ids:
                execute(qmp, "object-del", {"id": dump_id})
        merge(parts, path)


def add_in_one_second(
    qmp: Path, ids: Sequence[str], netdevs: Sequence[str], parts: Sequence[Path], snaplen: int
) -> None:
    """Start all dumps within the same second, so that their times can be compared.

    filter-dump counts time from the whole second in which it was created.
    """
    for _ in range(_TRIES):
        second = int(time.time())
        for dump_id, netdev, part in zip(ids, netdevs, parts, strict=True):
            # `tx`: what the link delivers to the card
            options = {"netdev": netdev, "file": str(part.resolve()), "maxlen": snaplen}
            _add(qmp, dump_id, {**options, "queue": "tx"})
        if int(time.time()) == second:
            return
        for dump_id in ids:
            execute(qmp, "object-del", {"id": dump_id})
    raise TestbedError(
        f"could not start the captures of all ports within one second, in {_TRIES} tries",
        cause="this machine is too busy",
        action="Stop other work on this machine, and try again.",
    )


def remove_all(qmp: Path) -> None:
    """Remove the captures that a killed run left on a machine. Raises TestbedError."""
    listed = execute(qmp, "qom-list", {"path": "/objects"})
    for each in listed if isinstance(listed, list) else []:
        if each.get("type") == "child<filter-dump>":
            execute(qmp, "object-del", {"id": each["name"]})


def _add(qmp: Path, name: str, options: dict[str, object]) -> None:
    execute(qmp, "object-add", {"qom-type": "filter-dump", "id": name, **options})
