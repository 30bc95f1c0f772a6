# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare two runs' results: how much each cell differs, and whether that is evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import polars as pl

from rocelab.accelerators import is_emulated
from rocelab.compare import environment_differences
from rocelab.errors import UsageError
from rocelab.metrics import COMPARED, MESSAGE_COST, RESIDUAL
from rocelab.record import read
from rocelab.record.folder import RunFolder
from rocelab.stats import two_samples
from rocelab.stats.summary import median
from rocelab.stats.two_samples import Apart

_KEY = ("tool", "test", "transport", "metric", "kind", "unit", "node", "size")
_RATES = frozenset({"bytes/s", "1/s"})


class Verdict(StrEnum):
    """What a cell's repetitions say about the second run, compared with the first."""

    BETTER = "better"
    WORSE = "worse"
    NO_EVIDENCE = "no evidence"


@dataclass(frozen=True)
class Cell:
    """One metric of one benchmark over one transport at one size, in both runs."""

    tool: str
    test: str
    transport: str
    metric: str
    kind: str
    unit: str
    node: str
    size: int | None
    first: tuple[float, ...]
    second: tuple[float, ...]

    @property
    def medians(self) -> tuple[float, float]:
        """The median of each run."""
        return median(self.first), median(self.second)

    @property
    def difference(self) -> Apart:
        """The second run minus the first, in the metric's unit."""
        return two_samples.difference(self.first, self.second)

    @property
    def ratio(self) -> Apart | None:
        """The second run divided by the first; None if any value is not above 0."""
        if min(*self.first, *self.second) <= 0:
            return None
        return two_samples.ratio(self.first, self.second)

    @property
    def verdict(self) -> Verdict:
        """A higher rate is better; of anything else, less is better."""
        interval = self.difference.interval
        if interval is None or interval.low <= 0 <= interval.high:
            return Verdict.NO_EVIDENCE
        more = interval.low > 0
        return Verdict.BETTER if more == (self.unit in _RATES) else Verdict.WORSE


@dataclass(frozen=True)
class Comparison:
    """Two runs and their common cells."""

    first: str
    second: str
    accelerators: tuple[str, str]
    cells: tuple[Cell, ...]
    warnings: tuple[str, ...]
    """Other differences between the runs, which may explain different numbers."""

    def count(self, verdict: Verdict) -> int:
        """Number of cells with a verdict."""
        return sum(cell.verdict is verdict for cell in self.cells)

    @property
    def is_emulated(self) -> bool:
        """Whether the numbers come from emulated nodes."""
        return any(map(is_emulated, self.accelerators))


def compare(first: Path, second: Path, metrics: Sequence[str] = COMPARED) -> Comparison:
    """Compare two run folders; `metrics` are names or patterns such as `cpu.*`.

    Raises UsageError if one is not a run, if they have no cell in common, or if only one of them
    was measured in real time.
    """
    folders = (RunFolder(first), RunFolder(second))
    metas = tuple(folder.meta() for folder in folders)
    loaded = tuple(read.results(path) for path in (first, second))
    tables = tuple(_group(table, metrics) for table in loaded)
    names = tuple(
        _accelerator(path, table, meta)
        for path, table, meta in zip((first, second), loaded, metas, strict=True)
    )
    _refuse(names[0], names[1])
    both = tables[0].join(tables[1], on=_KEY, nulls_equal=True, suffix="_2").sort(_KEY)
    if both.is_empty():
        raise UsageError(
            f"{first} and {second} have no cell in common",
            cause="they share no benchmark, transport and size, or lack the metrics "
            f"{', '.join(metrics)}",
            action="Compare runs of the same plan, or choose metrics with --metric.",
        )
    return Comparison(
        folders[0].name,
        folders[1].name,
        (names[0], names[1]),
        tuple(_cell(row) for row in both.iter_rows(named=True)),
        tuple(environment_differences.differences(metas[0], metas[1])),
    )


def _group(table: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    names = [
        name
        for name in table["metric"].unique()
        if any(fnmatchcase(name, pattern) for pattern in metrics)
    ]
    rows = _of_all_machines(table.filter(pl.col("metric").is_in(names))).sort("repetition")
    return rows.group_by(_KEY, maintain_order=True).agg("value")


def _of_all_machines(rows: pl.DataFrame) -> pl.DataFrame:
    """What a message costs all machines together, and not how far it is from a line."""
    is_cost = pl.col("metric") == MESSAGE_COST
    costs = rows.filter(is_cost, pl.col("kind") != RESIDUAL)
    keys = [name for name in rows.columns if name not in ("node", "value")]
    node = pl.col("node").sort().str.join("+")
    sums = costs.group_by(keys, maintain_order=True).agg(node, pl.col("value").sum())
    return pl.concat([rows.filter(~is_cost), sums.select(rows.columns)])


def _cell(row: dict[str, Any]) -> Cell:
    return Cell(
        **{key: row[key] for key in _KEY},
        first=tuple(row["value"]),
        second=tuple(row["value_2"]),
    )


def _accelerator(path: Path, table: pl.DataFrame, meta: dict[str, Any]) -> str:
    named = table["accelerator"].unique().to_list() or [meta.get("accelerator")]
    if len(named) != 1:
        raise UsageError(
            f"{path} has numbers from several accelerators: {', '.join(map(str, sorted(named)))}",
            cause="its cells were not all measured on the same testbed",
            action="Run the plan again on one testbed.",
        )
    return str(named[0])


def _refuse(first: str, second: str) -> None:
    if first != second and (is_emulated(first) or is_emulated(second)):
        raise UsageError(
            f"the first run was measured under {first!a:.20}, the second under {second!a:.20}",
            cause="emulated nodes have no real time, and only icount counts instructions",
            action="Compare runs under the same accelerator.",
        )
