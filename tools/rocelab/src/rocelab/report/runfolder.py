# SPDX-License-Identifier: GPL-2.0-or-later
"""Read a run folder: run.json, cells/*/cell.json, results.parquet (docs/formats).

Nothing else is read, so raw output may be deleted. Everything in a run folder is hostile input: a
wrong type reads as absent, and no name in it becomes a path.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from rocelab.errors import UsageError
from rocelab.report.fmt import ALL_SIZES
from rocelab.run.stats import Spread, spread

RUN_SCHEMA = "rocelab.run/1"
CELL_SCHEMA = "rocelab.cell/1"

_COLUMNS: dict[str, Any] = {
    "run": pl.String,
    "tool": pl.String,
    "test": pl.String,
    "transport": pl.String,
    "repetition": pl.Int64,
    "size": pl.Int64,
    "node": pl.String,
    "metric": pl.String,
    "kind": pl.String,
    "value": pl.Float64,
    "unit": pl.String,
    "accelerator": pl.String,
    "driver": pl.String,
    "program": pl.String,
}
_SERIES = [
    "accelerator", "tool", "test", "transport", "program", "driver", "size", "node", "metric",
    "kind", "unit",
]  # fmt: skip

_LONGEST, _LONGEST_NAME = 2000, 60
"""Characters of a text, and of a name in results.parquet."""
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def clean(text: str) -> str:
    """Replace what neither XML 1.0 nor an eye can take: controls, surrogates, bidi marks.

    Text longer than anyone reads is cut: a page, and above all a chart, has only so much room.
    """
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}\N{HORIZONTAL ELLIPSIS}"
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _name(text: str) -> str:
    return clean(
        text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}\N{HORIZONTAL ELLIPSIS}"
    )


@dataclass(frozen=True)
class Series:
    """One quantity over the repetitions: `values`, in `unit`, of the repetitions beside them.

    `size` is in bytes, or `ALL_SIZES`.
    """

    accelerator: str
    tool: str
    test: str
    transport: str
    program: str
    driver: str
    size: int
    node: str
    metric: str
    kind: str
    unit: str
    repetitions: tuple[int, ...]
    values: tuple[float, ...]
    spread: Spread

    @property
    def benchmark(self) -> str:
        """Tool and test, as a heading names them."""
        return f"{self.tool} {self.test}"


@dataclass(frozen=True)
class Json:
    """A JSON object of which nothing is known; a value of another type than asked for is absent."""

    data: Mapping[str, Any]

    def text(self, key: str, default: str = "") -> str:
        """Return a string, number or truth value as text."""
        value = self.data.get(key)
        if isinstance(value, bool):
            return "yes" if value else "no"
        return clean(str(value)) if isinstance(value, str | int | float) else default

    def integer(self, key: str) -> int | None:
        """Return a whole number."""
        value = self.data.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return int(value) if math.isfinite(value) else None

    def object(self, key: str) -> Json:
        """Return an object, an empty one if there is none."""
        value = self.data.get(key)
        return Json(value if isinstance(value, dict) else {})

    def objects(self, key: str) -> list[Json]:
        """Return the objects of a list."""
        value = self.data.get(key)
        items = value if isinstance(value, list) else []
        return [Json(item) for item in items if isinstance(item, dict)]

    def items(self) -> Iterator[tuple[str, Json]]:
        """Return the members that are objects themselves."""
        return (
            (clean(key), Json(value)) for key, value in self.data.items() if isinstance(value, dict)
        )

    def texts(self, key: str) -> list[str]:
        """Return the strings and numbers of a list, or of the one value there is, as text."""
        value = self.data.get(key)
        items = value if isinstance(value, list) else [value]
        return [
            clean(str(item))
            for item in items
            if isinstance(item, str | int | float) and not isinstance(item, bool)
        ]


@dataclass(frozen=True)
class Cell:
    """One (benchmark, transport, repetition); `content` is its cell.json, None if unreadable."""

    name: str
    content: Json | None

    @property
    def status(self) -> str:
        """Say `ok`, `error`, or `missing` for a cell that has no readable cell.json."""
        return self.content.text("status", "error") if self.content else "missing"


@dataclass(frozen=True)
class Run:
    """A run folder as a report sees it. `cells` are in the run's order."""

    meta: Json
    cells: tuple[Cell, ...]
    series: tuple[Series, ...]

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.meta.text("run", "run")

    @property
    def plan(self) -> Json:
        """The plan as it ran."""
        return self.meta.object("plan").object("plan")

    def of(self, metric: str) -> list[Series]:
        """Return all series of one metric."""
        return [series for series in self.series if series.metric == metric]

    def by_size(self, metric: str) -> list[Series]:
        """Return those of one metric that have a size of their own."""
        return [series for series in self.of(metric) if series.size != ALL_SIZES]


def load(run_dir: Path) -> Run:
    """Read a run folder.

    Raises UsageError when there is no run there, or its files are of another version or broken.
    A run without results or cells is a run: the report says what is missing.
    """
    meta = _read_json(run_dir / "run.json")
    if meta is None:
        raise UsageError(
            f"{run_dir} is not a run folder",
            cause="it holds no readable run.json",
            action="give the folder that `rocelab run` printed, such as runs/20261121T031500Z-demo",
        )
    if meta.text("schema") != RUN_SCHEMA:
        found = meta.text("schema", "none")
        raise UsageError(
            f"{run_dir / 'run.json'} has schema {found!r}, not {RUN_SCHEMA!r}",
            cause="another version of rocelab wrote it",
            action="use that version, or run the plan again",
        )
    planned = [
        f"{item.text('tool')} {'-'.join(filter(None, (item.text('test'), item.text('label'))))}"
        for item in meta.object("plan").objects("benchmark")
    ]
    rank = {benchmark: position for position, benchmark in enumerate(dict.fromkeys(planned))}
    series = sorted(  # a stable sort: benchmarks as in the plan, the rest as it is
        _series(run_dir / "results.parquet"), key=lambda s: rank.get(s.benchmark, len(rank))
    )
    return Run(meta, tuple(_cells(run_dir, meta)), tuple(series))


def _cells(run_dir: Path, meta: Json) -> Iterator[Cell]:
    found = {
        path.parent.name: _read_json(path)
        for path in sorted((run_dir / "cells").glob("*/cell.json"))
        if not path.parent.name.startswith(".")
    }
    planned = list(dict.fromkeys(meta.texts("cells")))
    for name in [*planned, *(name for name in found if name not in set(planned))]:
        content = found.get(name)
        if content is not None and content.text("schema") != CELL_SCHEMA:
            content = None
        yield Cell(name, content)


def _series(path: Path) -> Iterator[Series]:
    if not path.exists():
        return
    try:
        frame = pl.read_parquet(path)
        frame = frame.select(pl.col(name).cast(kind) for name, kind in _COLUMNS.items())
    except (pl.exceptions.PolarsError, OSError) as error:
        raise UsageError(
            f"{path} cannot be read as a table of results",
            cause=f"it is damaged or of another version: {str(error).splitlines()[0]}",
            action="make it again from the run folder with `rocelab run --resume`",
        ) from error
    known = pl.col("value").is_finite() & (pl.col("size").is_null() | (pl.col("size") >= 0))
    frame = frame.filter(known).with_columns(pl.col("size").fill_null(ALL_SIZES)).drop_nulls()
    grouped = (
        frame.sort("repetition", "value")
        .group_by(_SERIES, maintain_order=True)
        .agg("repetition", "value")
        .sort(_SERIES)
    )
    for row in grouped.iter_rows(named=True):
        values, repetitions = tuple(row.pop("value")), tuple(row.pop("repetition"))
        names: dict[str, Any] = {
            key: _name(item) if isinstance(item, str) else item for key, item in row.items()
        }
        yield Series(**names, repetitions=repetitions, values=values, spread=spread(values))


def _read_json(path: Path) -> Json | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return Json(data) if isinstance(data, dict) else None
