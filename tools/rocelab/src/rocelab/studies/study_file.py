# SPDX-License-Identifier: GPL-2.0-or-later
"""Read studies from `study.toml` and `published.csv`, as strictly as plans."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from typing import Any, Literal, cast

from rocelab.errors import UsageError
from rocelab.limits import MAX_SWITCHES
from rocelab.plans.catalog import TOOLS
from rocelab.strict import Table
from rocelab.studies.claims import (
    DEFAULT_TOLERANCE,
    Adds,
    Average,
    Bounds,
    Check,
    Claim,
    Compare,
    Dips,
    Falls,
    Figure,
    MoreNodes,
    Operand,
    Over,
    Sizes,
    Stalls,
    Study,
    Tolerance,
    Untestable,
)

_HOW = ("ratio", "difference")
_MORE_NODES = ("", "same ranks", "more ranks")
_MAX_RANKS = 4096
_MAX_BYTES = 1 << 62
_AVERAGING = ("median", "mean")
_OVER = ("every size", "some size", "best", "mean")
_STATISTICS = ("best", "at", "relation")
_COLUMNS = (
    *("system", "transport", "tool", "test", "metric", "statistic", "size", "low", "high"),
    *("unit", "says", "source"),
)


def read(name: str, values: Mapping[str, Any], published: str) -> Study:
    """Build a study from its TOML tables and its CSV. Raises UsageError."""
    top = Table(values, f"{name}/study.toml")
    head = top.table("study")
    study = Study(
        name=name,
        title=head.text("title"),
        authors=head.text("authors"),
        year=head.integer("year", low=1990, high=2100),
        publication=head.text("publication"),
        asked=head.texts("asked"),
        measured_on=head.texts("measured_on"),
        method=head.texts("method"),
        silent=head.texts("silent"),
        here=head.texts("here"),
        averaging=cast(
            "Literal['median', 'mean']", head.choice("averaging", _AVERAGING, default="median")
        ),
        more_nodes=cast("MoreNodes", head.choice("more_nodes", _MORE_NODES, default="")),
        figures=_figures(f"{name}/published.csv", published),
        claims=tuple(_claim(table) for table in top.tables("claim")),
    )
    head.done()
    top.done()
    return study


def _claim(table: Table) -> Claim:
    claim = Claim(
        name=table.matching("name", r"[a-z0-9][a-z0-9-]{2,59}", "a name of a-z, 0-9 and -"),
        text=table.text("text"),
        about=table.text("about", default=""),
        source=table.text("source"),
        reading=table.text("reading", default=""),
        needs=table.text("needs", default=""),
        analogue=table.text("analogue", default=""),
        check=_CHECKS[table.choice("check", tuple(_CHECKS))](table),
    )
    table.done()
    return claim


def _compare(table: Table) -> Check:
    return Compare(
        first=_operand(table.table("first")),
        second=_operand(table.table("second")),
        how=cast("Literal['ratio', 'difference']", table.choice("how", _HOW, default="ratio")),
        bounds=_bounds(table),
        sizes=_sizes(table),
        over=cast("Over", table.choice("over", _OVER, default="every size")),
        switches=(
            table.integer("switches", low=0, high=MAX_SWITCHES) if table.has("switches") else None
        ),
    )


def _average(table: Table) -> Check:
    return Average(
        table.texts("tests"),
        _operand(table.table("first")),
        _operand(table.table("second")),
        _bounds(table),
    )


def _falls(table: Table) -> Check:
    return Falls(_operand(table.table("of")), _sizes(table))


def _dips(table: Table) -> Check:
    return Dips(
        _operand(table.table("of")),
        _sizes(table),
        present=table.flag("present", default=True),
    )


def _adds(table: Table) -> Check:
    return Adds(
        _operand(table.table("of")),
        _operand(table.table("beyond")) if table.has("beyond") else None,
        _bounds(table),
        _sizes(table),
    )


def _stalls(table: Table) -> Check:
    return Stalls(table.choice("tool", TOOLS), table.texts("tests"), table.text("transport"))


def _untestable(table: Table) -> Check:
    return Untestable(table.text("because"))


_CHECKS = {
    "compare": _compare,
    "average": _average,
    "falls": _falls,
    "dips": _dips,
    "adds": _adds,
    "stalls": _stalls,
    "untestable": _untestable,
}


def _operand(table: Table) -> Operand:
    operand = Operand(
        tool=table.choice("tool", TOOLS),
        test=table.text("test"),
        metric=table.text("metric"),
        kind=table.text("kind", default=""),
        transport=table.text("transport"),
        ranks=_ranks(table, "ranks"),
        ranks_per_node=_ranks(table, "ranks_per_node"),
    )
    table.done()
    return operand


def _ranks(table: Table, key: str) -> int | None:
    return table.integer(key, low=1, high=_MAX_RANKS) if table.has(key) else None


def _bounds(table: Table) -> Bounds:
    bounds = table.table("bounds")
    tolerance = Tolerance(DEFAULT_TOLERANCE, "")
    if bounds.has("tolerance"):
        tolerance = Tolerance(bounds.number("tolerance", default=0.0), bounds.text("from"))
    limits = Bounds(
        bounds.number("low", default=0.0), bounds.number("high", default=math.inf), tolerance
    )
    bounds.done()
    return limits


def _sizes(table: Table) -> Sizes:
    sizes = table.table("sizes")
    high = sizes.integer("high", low=0, high=_MAX_BYTES) if sizes.has("high") else None
    chosen = Sizes(sizes.integer("low", default=0, low=0, high=_MAX_BYTES), high)
    sizes.done()
    return chosen


def _figures(source: str, text: str) -> tuple[Figure, ...]:
    reader = csv.DictReader(
        io.StringIO("".join(line for line in text.splitlines(keepends=True) if line[:1] != "#"))
    )
    if tuple(reader.fieldnames or ()) != _COLUMNS:
        raise UsageError(f"{source}: the columns must be {', '.join(_COLUMNS)}")
    return tuple(_figure(source, number, row) for number, row in enumerate(reader, start=1))


def _figure(source: str, number: int, row: Mapping[str, str]) -> Figure:
    try:
        low = float(row["low"])
        figure = Figure(
            **{key: row[key] for key in _COLUMNS if key not in ("size", "low", "high")},
            size=int(row["size"]) if row["size"] else None,
            low=low,
            high=float(row["high"]) if row["high"] else low,
        )
    except (TypeError, ValueError) as error:
        raise UsageError(f"{source}: figure {number}: {error!a:.80}") from error
    fine = figure.statistic in _STATISTICS and math.isfinite(low) and low <= figure.high
    fine &= bool(figure.tool) == bool(figure.test)
    if not fine or (figure.statistic == "at") != (figure.size is not None and figure.is_drawable):
        raise UsageError(f"{source}: figure {number} contradicts itself")
    return figure
