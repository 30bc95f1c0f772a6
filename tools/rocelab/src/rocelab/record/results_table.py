# SPDX-License-Identifier: GPL-2.0-or-later
"""results.parquet: one row for each value of a run (docs/formats/results.md)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from rocelab import accelerators, limits, metrics
from rocelab.conditions import lack
from rocelab.directory import Directory
from rocelab.errors import UsageError
from rocelab.record import layout
from rocelab.record.text import one_line

SCHEMA = {
    "run": pl.String,
    "tool": pl.String,
    "test": pl.String,
    "transport": pl.String,
    "repetition": pl.UInt32,
    "size": pl.UInt64,
    "node": pl.String,
    "metric": pl.String,
    "kind": pl.String,
    "value": pl.Float64,
    "unit": pl.String,
    "accelerator": pl.String,
    "driver": pl.String,
    "program": pl.String,
}
WIRE = "wire"
"""The value of the column `node` for the capture outside the nodes."""
_READ = SCHEMA | dict.fromkeys(("repetition", "size"), pl.Int64)
_LONGEST_NAME = 60
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet compute a text that begins with it."""
_FORMULA = rf"^[{re.escape(''.join(FORMULA))}]"
_HEAD = re.compile(r"[^\n]{0,120}")


def unit(metric: str, unit: str, accelerator: str) -> str:
    """Return the unit of a metric that was measured in `unit`, on that accelerator's clock."""
    counts = unit == "ns" and accelerators.of(accelerator).counts_instructions
    return accelerators.INSTRUCTIONS if counts and metrics.is_work(metric) else unit


class UnreadableError(UsageError):
    """A run has no results, or they are damaged. They can be made again from its cells."""


def write(run_dir: Path, rows: Sequence[tuple[Any, ...]]) -> Path:
    """Write the table of a run at once, in place of an earlier one; return its path.

    Raises OSError.
    """
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    with Directory.open(run_dir) as root:
        root.write(layout.RESULTS, frame.write_parquet)
    return run_dir / layout.RESULTS


def load(run_dir: Path) -> pl.DataFrame:
    """Return the table of a run, in the order of the file.

    Raises UnreadableError, and MissingError if this machine lacks what it takes to read it.

    Names are cleaned, and rows without a finite value are left out. `size` is null for figures of
    all sizes together.
    """
    try:
        with (
            Directory.open(run_dir) as root,
            root.open_file(layout.RESULTS, limit=limits.MAX_RESULTS_BYTES) as file,
        ):
            frame = _read_bounded(file)
        return _clean(frame.select(pl.col(name).cast(kind) for name, kind in _READ.items()))
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        path = run_dir / layout.RESULTS
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise lack(error, f"cannot read {path}") or UnreadableError(
            f"{path} cannot be read as a table of results",
            cause=f"it is damaged, missing or of another version: {_HEAD.match(one_line(why))[0]}",  # type: ignore[index]  # it matches nothing, too
            action=f"Make it again from the run's cells: `rocelab report {run_dir}`.",
        ) from error


def _read_bounded(file: BinaryIO) -> pl.DataFrame:
    """Read the columns, each in memory that its rows justify. Raises ValueError, PolarsError."""
    scan = pl.scan_parquet(file)
    schema = scan.collect_schema()
    for name in _READ:
        # a category's text, which is once in the file, would be there for each row
        if name in schema and not (schema[name] == pl.String or schema[name].is_numeric()):
            raise ValueError(f"its column {name} is of type {schema[name]}")
    rows = scan.select(pl.len()).collect().item()
    if rows > limits.MAX_ROWS:
        raise ValueError(f"it has {rows} rows; at most {limits.MAX_ROWS} are read")
    file.seek(0)
    frame = pl.read_parquet(file, columns=list(_READ))
    for lengths in frame.select(pl.col(pl.String).str.len_bytes().max()).iter_rows(named=True):
        for name, longest in lengths.items():
            if longest is not None and longest > limits.MAX_NAME_BYTES:
                raise ValueError(f"a {name} has {longest} bytes; at most {limits.MAX_NAME_BYTES}")
    return frame


def write_csv(frame: pl.DataFrame, file: BinaryIO) -> None:
    """Write a table as CSV, with a quote before each text that a spreadsheet would compute."""
    texts = pl.col(pl.String)
    frame.with_columns(
        pl.when(texts.str.contains(_FORMULA)).then("'" + texts).otherwise(texts).name.keep()
    ).write_csv(file)


def raw(run_dir: Path) -> bytes:
    """Return the file as it is, for a copy of it. Raises OSError."""
    with Directory.open(run_dir) as root:
        return root.read(layout.RESULTS, limit=limits.MAX_RESULTS_BYTES)


def exists(run_dir: Path) -> bool:
    """Say whether the folder has such a file, readable or not."""
    try:
        with Directory.open(run_dir) as root:
            return root.exists(layout.RESULTS)
    except OSError:
        return False


def empty() -> pl.DataFrame:
    """Return the table of a run without results."""
    return pl.DataFrame(schema=_READ)


def _clean(frame: pl.DataFrame) -> pl.DataFrame:
    known = pl.col("value").is_finite() & (pl.col("size").is_null() | (pl.col("size") >= 0))
    frame = frame.filter(known).drop_nulls([name for name in _READ if name != "size"])
    frame = _with_instructions(frame)
    names = frame.select(pl.col(pl.String).unique().implode())
    columns = []
    for column in names.get_columns():
        dirty = {text: clean for text in column.item() if text != (clean := _name(text))}
        if dirty:
            columns.append(pl.col(column.name).replace(dirty))
    return frame.with_columns(columns) if columns else frame


def _with_instructions(frame: pl.DataFrame) -> pl.DataFrame:
    """Older versions wrote ns for what such a clock counted in instructions."""
    keys = ["metric", "unit", "accelerator"]
    for metric, old, accelerator in frame.select(keys).unique().iter_rows():
        new = unit(metric, old, accelerator)
        if new != old:
            same = (pl.col("metric") == metric) & (pl.col("accelerator") == accelerator)
            frame = frame.with_columns(
                pl.when(same & (pl.col("unit") == old))
                .then(pl.lit(new))
                .otherwise(pl.col("unit"))
                .alias("unit")
            )
    return frame


def _name(text: str) -> str:
    return one_line(text, longest=_LONGEST_NAME)
