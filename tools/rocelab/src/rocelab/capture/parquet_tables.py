# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the tables of an analysis as Parquet, in memory that does not grow with the capture."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

import polars as pl

from rocelab._core import Analysis, Table
from rocelab.conditions import explained
from rocelab.directory import Directory, temporary_folder

_ROWS = 1 << 18
"""Rows to hold before writing them."""
_PARTS = ".parts-"
_IN_PARTS = ("packets", "messages")


class _Found(Protocol):
    """The tables that an analysis has at its end."""

    connections: Table
    findings: Table


_F = TypeVar("_F", bound=_Found)


def write(core: Analysis, into: Path, *, step: Callable[[], bool], finish: Callable[[], _F]) -> _F:
    """Carry out an analysis, `step` by step, and write four tables, each whole or not at all.

    Returns what `finish` gives. Raises UsageError or MissingError when the folder cannot be
    written; then nothing is left in it.
    """
    try:
        with Directory.making(into) as folder:
            return _write(core, folder, step, finish)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise explained(
            error,
            f"cannot write tables to {into}",
            action="Choose another folder with --parquet.",
        ) from error


def _write(
    core: Analysis,
    folder: Directory,
    step: Callable[[], bool],
    finish: Callable[[], _F],
) -> _F:
    _sweep(folder)
    with (
        temporary_folder(prefix=_PARTS, dir=folder.path) as parts,
        Directory.open(Path(parts)) as held,
    ):
        held.lock()
        writer = _Parts(Path(parts), core)
        while step():
            writer.flush(_ROWS)
        found = finish()
        writer.flush(0)
        for name in _IN_PARTS:
            folder.write(f"{name}.parquet", writer.whole(name).sink_parquet)
    for name in ("connections", "findings"):
        table = pl.DataFrame(getattr(found, name))
        folder.write(f"{name}.parquet", table.write_parquet)
    return found


def _sweep(folder: Directory) -> None:
    """Remove the parts of processes that were killed; those of others are locked."""
    for name in folder.names():
        if re.fullmatch(rf"{re.escape(_PARTS)}[a-z0-9_]{{8}}", name) and folder.is_folder(name):
            with folder.folder(name) as left:
                if left.lock():
                    folder.remove(name)


class _Parts:
    """Writes packet and message rows in parts, which together are one table each."""

    def __init__(self, folder: Path, core: Analysis) -> None:
        self._folder = folder
        self._core = core
        self._count = 0

    def flush(self, beyond: int) -> None:
        if self._core.pending_packets >= beyond:
            self._part("packets", self._core.take_packets())
        if self._core.pending_messages >= beyond:
            self._part("messages", self._core.take_messages())

    def _part(self, name: str, table: Table) -> None:
        pl.DataFrame(table).write_parquet(self._folder / f"{name}-{self._count:06}.parquet")
        self._count += 1

    def whole(self, name: str) -> pl.LazyFrame:
        """All parts of a table, not yet in memory."""
        return pl.scan_parquet(self._folder / f"{name}-*.parquet")
