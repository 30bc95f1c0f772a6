# SPDX-License-Identifier: GPL-2.0-or-later
"""Read a run folder: run.json, cells/*/cell.json, results.parquet (docs/formats).

Nothing else is read but stacks, if there are some, so raw output may be deleted. Everything in a
run folder is hostile input: a wrong type reads as absent, and no name in it becomes a path
(`rocelab.directory`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from rocelab.plans.plan import cell_name, title
from rocelab.record import folded_stacks, results_table
from rocelab.record.folded_stacks import Stacks
from rocelab.record.folder import RunFolder
from rocelab.record.text import one_line
from rocelab.stats.summary import Spread, spread
from rocelab.units import ALL_SIZES

_SERIES = [
    "accelerator", "tool", "test", "transport", "program", "driver", "size", "node", "metric",
    "kind", "unit",
]  # fmt: skip


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
        """Return a string, number or truth value as one line of text."""
        value = self.data.get(key)
        if isinstance(value, bool):
            return "yes" if value else "no"
        return one_line(str(value)) if isinstance(value, str | int | float) else default

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
            (one_line(key), Json(value))
            for key, value in self.data.items()
            if isinstance(value, dict)
        )

    def texts(self, key: str) -> list[str]:
        """Return the strings and numbers of a list, or of the one value there is, as text."""
        value = self.data.get(key)
        items = value if isinstance(value, list) else [value]
        return [
            one_line(str(item))
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

    @property
    def is_usable(self) -> bool:
        """Whether the steps in its cell.json count, each of which is proven.

        Where one size did not end in time, those do that were measured before it.
        """
        if self.content is None:
            return False
        return self.status == "ok" or self.content.object("error").text("kind") == "stall"


@dataclass(frozen=True)
class Run:
    """A run folder as a report sees it. `cells` are in the run's order."""

    meta: Json
    cells: tuple[Cell, ...]
    table: pl.DataFrame
    """results.parquet, cleaned (`results_table.load`)."""
    series: tuple[Series, ...]
    stacks: tuple[Stacks, ...] = ()
    """What rxecpu recorded, if the plan asked for it and the raw files are there."""

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
    A run without cells, or without a good one, is a run: the report says what is missing.
    """
    folder = RunFolder(run_dir)
    meta = Json(folder.meta())
    cells = tuple(_cells(folder, meta))
    table = _table(folder, cells)
    planned = (
        f"{item.text('tool')} {title(item.text('test'), item.text('label'))}"
        for item in meta.object("plan").objects("benchmark")
    )
    rank = {benchmark: position for position, benchmark in enumerate(dict.fromkeys(planned))}
    series = sorted(  # a stable sort: benchmarks as in the plan, the rest as it is
        _series(table), key=lambda s: rank.get(s.benchmark, len(rank))
    )
    asked = meta.object("plan").object("plan").text("stacks") == "yes"
    stacks = (
        folded_stacks.load(folder, [c.name for c in cells if c.status == "ok"]) if asked else ()
    )
    return Run(meta, cells, table, tuple(series), stacks)


def results(run_dir: Path) -> pl.DataFrame:
    """Read a run's results alone: the one way to them, for all that shows or compares numbers.

    Raises UsageError as `load`.
    """
    folder = RunFolder(run_dir)
    return _table(folder, tuple(_cells(folder, Json(folder.meta()))))


def _table(folder: RunFolder, cells: Sequence[Cell]) -> pl.DataFrame:
    """The results of usable cells; a run without one may have none.

    The table may still have those of a cell whose cell.json, and with it its proof, was damaged.
    """
    bad = [cell.name for cell in cells if not cell.is_usable]
    if len(bad) == len(cells) and not results_table.exists(folder.path):
        return results_table.empty()
    table = results_table.load(folder.path)
    if not bad:
        return table
    cells_of = table.select("tool", "test", "transport", "repetition").iter_rows()
    return table.filter([cell_name(*row) not in bad for row in cells_of])


def _cells(folder: RunFolder, meta: Json) -> Iterator[Cell]:
    names = folder.cell_names()
    planned = list(dict.fromkeys(meta.texts("cells")))
    known = set(names)
    for name in dict.fromkeys([*planned, *names]):
        content = folder.record(name) if name in known else None
        yield Cell(one_line(name), None if content is None else Json(content))


def _series(table: pl.DataFrame) -> Iterator[Series]:
    grouped = (
        table.with_columns(pl.col("size").fill_null(ALL_SIZES))
        .sort("repetition", "value")
        .group_by(_SERIES, maintain_order=True)
        .agg("repetition", "value")
        .sort(_SERIES)
    )
    for row in grouped.iter_rows(named=True):
        values, repetitions = tuple(row.pop("value")), tuple(row.pop("repetition"))
        yield Series(**row, repetitions=repetitions, values=values, spread=spread(values))
