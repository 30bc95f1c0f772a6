# SPDX-License-Identifier: GPL-2.0-or-later
"""Join a capture to its traces, choose its typical message, and write its tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
from rich.console import Console

from rocelab import limits
from rocelab.conditions import system_error
from rocelab.correlate.joined import join
from rocelab.correlate.median_message import median_message
from rocelab.correlate.messages import messages
from rocelab.correlate.variation import variations
from rocelab.directory import Directory
from rocelab.plans.benchmarks import perftest
from rocelab.plans.benchmarks.mpi import mpibench
from rocelab.plans.catalog import TESTS
from rocelab.record import layout, results_table
from rocelab.record.captures import Place
from rocelab.terminal.join_tables import Shown

_CELL = re.compile(r"(perftest|mpibench)-([a-z_]+)[.-]", re.ASCII)
"""A cell's folder is named by its benchmark, a label and the transport."""
_PROGRAM = {"perftest": "client", "mpibench": "mpirun"}
"""Whose output has the times of messages."""


def examine(
    place: Place, parquet: Path | None = None, *, ports: Sequence[int] = (), window: int = 0
) -> Shown:
    """Join one place; with `parquet`, write `packets.parquet` and `messages.parquet` there.

    In a run or cell, each place gets a folder named after it. The rows are not kept in memory.
    """
    joined = join(place.wire, place.traces, ports=ports, window=window)
    rows = messages(joined.packets, one_clock=place.one_clock)
    if parquet is not None:
        parts = () if place.name == place.wire.name else tuple(place.name.split("/"))
        try:
            with Directory.making(parquet) as folder:
                _write(folder, parts, {"packets": joined.packets, "messages": rows})
        except (OSError, pl.exceptions.PolarsError) as error:
            raise system_error(
                error,
                f"cannot write tables to {parquet}",
                action="Choose another folder with --parquet.",
            ) from error
    varied = variations(rows, *_message_times(place))
    return Shown(place, replace(joined, packets=pl.DataFrame()), median_message(rows), varied)


def _message_times(place: Place) -> tuple[list[list[float]], str]:
    """The times of a step's messages by its benchmark, for each size, and the benchmark's name."""
    named = _CELL.match(place.wire.resolve().parent.parent.name)
    test = TESTS.get((named[1], named[2])) if named else None
    if test is None:
        return [], ""
    try:
        with Directory.open(place.wire.parent) as step:
            name = layout.output(_PROGRAM[test.tool])
            text = step.read(name, limit=limits.MAX_RAW_BYTES).decode("utf-8")
    except (OSError, UnicodeError):
        return [], ""
    if test.tool == "mpibench":
        return mpibench.round_trips(text), test.tool
    return [perftest.round_trips(test, text)], test.tool


def _write(folder: Directory, parts: Sequence[str], tables: Mapping[str, pl.DataFrame]) -> None:
    """Write tables into the folder that `parts` lead to from `folder`. Raises OSError."""
    if parts:
        with folder.folder(parts[0], make=True) as inner:
            _write(inner, parts[1:], tables)
        return
    for name, table in tables.items():
        folder.write(f"{name}.parquet", table.write_parquet)


def show_fits(where: Path, console: Console) -> None:
    """If `where` is a run, print how well stage times explain what was measured."""
    from rocelab.terminal import fit_tables

    if results_table.exists(where):
        fit_tables.show(where, console)
