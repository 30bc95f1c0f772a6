# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the tables of an analysis as Parquet, in memory that does not grow with the capture."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol, Self, TypeVar

import polars as pl
from polars.io.plugins import register_io_source

from rocelab._core import Analysis, Table
from rocelab.capture.analysis import Withdrawn
from rocelab.capture.renumbering import renumber
from rocelab.conditions import system_error
from rocelab.directory import Directory

_ROWS = 1 << 18
"""Rows to hold before writing them."""


class _Found(Protocol):
    """The tables that an analysis has at its end."""

    connections: Table
    findings: Table

    @property
    def chosen(self) -> set[int] | None: ...


_F = TypeVar("_F", bound=_Found)


def write(core: Analysis, into: Path, *, step: Callable[[], bool], result: Callable[[], _F]) -> _F:
    """Carry out an analysis, `step` by step, and write four tables, each whole or not at all.

    Returns what `result` gives at its end. Raises UsageError or MissingError when the folder cannot
    be written. Only these tables are ever in it, however this ends.
    """
    try:
        with Directory.making(into) as folder:
            return _write(core, folder, step, result)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise system_error(
            error,
            f"cannot write tables to {into}",
            action="Choose another folder with --parquet.",
        ) from error


def _write(
    core: Analysis,
    folder: Directory,
    step: Callable[[], bool],
    result: Callable[[], _F],
) -> _F:
    with (
        _Parts(folder, core.take_packets) as packets,
        _Parts(folder, core.take_messages) as messages,
    ):
        while step():
            if core.pending_packets >= _ROWS:
                packets.take()
            if core.pending_messages >= _ROWS:
                messages.take()
        withdrawn = core.finish()["withdrawn"]
        analysis = result()
        packets.take()
        messages.take()
        renumbered = core.renumbered
        whole = {
            "packets": packets.whole(renumbered),
            "messages": messages.whole(renumbered, _ends(withdrawn), analysis.chosen),
        }
        for name, rows in whole.items():
            folder.write(f"{name}.parquet", rows.sink_parquet)
    for name in ("connections", "findings"):
        table = pl.DataFrame(getattr(analysis, name))
        folder.write(f"{name}.parquet", table.write_parquet)
    return analysis


def _ends(messages: Sequence[Withdrawn]) -> pl.DataFrame:
    """Where messages end that came to nothing after all."""
    files, packets = ([one[at] for one in messages] for at in (1, 2))
    ends = pl.DataFrame({"file": files, "last_packet": packets})
    return ends.cast({"file": pl.UInt16, "last_packet": pl.UInt64})


class _Parts:
    """The rows of a table, in a file without a name: nothing is left of it, however this ends."""

    def __init__(self, folder: Directory, rows: Callable[[], Table]) -> None:
        self._file = tempfile.TemporaryFile(dir=folder.path)  # noqa: SIM115 -- see __exit__
        self._rows = rows
        self._ends = [0]
        self._schema = pl.Schema()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def take(self) -> None:
        """Write the rows that came since the last call."""
        rows = pl.DataFrame(self._rows())
        rows.write_parquet(self._file, compression="lz4")
        self._file.flush()
        self._schema = rows.schema
        self._ends.append(self._file.tell())

    def whole(
        self,
        renumbered: Mapping[int, int],
        without: pl.DataFrame | None = None,
        chosen: Collection[int] | None = None,
    ) -> pl.LazyFrame:
        """All rows, not yet in memory, but those that have the values of `without`.

        Of the `chosen` connections only, unless it is None.
        """

        def parts(*_: object) -> Iterator[pl.DataFrame]:
            for start, end in pairwise(self._ends):
                part = io.BytesIO(os.pread(self._file.fileno(), end - start, start))
                rows = renumber(pl.read_parquet(part), renumbered)
                if without is not None and not without.is_empty():
                    rows = rows.join(without, on=without.columns, how="anti")
                if chosen is not None:
                    rows = rows.filter(pl.col("connection").is_in(list(chosen)))
                yield rows

        return register_io_source(parts, schema=self._schema)
