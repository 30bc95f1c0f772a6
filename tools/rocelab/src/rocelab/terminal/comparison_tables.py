# SPDX-License-Identifier: GPL-2.0-or-later
"""Print a comparison in 80 columns, or as JSON (docs/formats/compare.md)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rocelab import units
from rocelab.compare.comparison import Cell, Comparison, Verdict
from rocelab.stats.summary import CONFIDENCE
from rocelab.stats.two_samples import Apart, enough
from rocelab.terminal.printable import printable

SCHEMA = "rocelab.compare/1"
WIDTH = 80
_STYLES = {Verdict.BETTER: "green", Verdict.WORSE: "red", Verdict.NO_EVIDENCE: "dim"}


def render(comparison: Comparison) -> RenderableType:
    """Tables for rich to print."""
    return Group(
        *_lines(f"A  {comparison.first}", f"B  {comparison.second}"),
        *_warnings(comparison),
        *_tables(comparison),
        *_closing(comparison),
    )


def document(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON."""
    return {
        "schema": SCHEMA,
        "a": {"run": comparison.first, "accelerator": comparison.accelerators[0]},
        "b": {"run": comparison.second, "accelerator": comparison.accelerators[1]},
        "confidence": CONFIDENCE,
        "warnings": list(comparison.warnings),
        "verdicts": {str(verdict): comparison.count(verdict) for verdict in Verdict},
        "cells": [_record(cell) for cell in comparison.cells],
    }


def _record(cell: Cell) -> dict[str, Any]:
    first, second = cell.medians
    return {
        **{
            key: getattr(cell, key)
            for key in ("tool", "test", "transport", "size", "node", "metric", "kind", "unit")
        },
        "a": {"repetitions": len(cell.first), "median": first},
        "b": {"repetitions": len(cell.second), "median": second},
        "difference": _apart(cell.difference),
        "ratio": _apart(cell.ratio),
        "verdict": str(cell.verdict),
    }


def _apart(apart: Apart | None) -> dict[str, float | None] | None:
    if apart is None:
        return None
    between = apart.interval
    return {
        "estimate": apart.estimate,
        "low": between.low if between else None,
        "high": between.high if between else None,
        "coverage": between.coverage if between else None,
    }


def _warnings(comparison: Comparison) -> Iterator[RenderableType]:
    if comparison.warnings:
        yield Text(
            "\nThe runs differ in these, which may explain different numbers:", style="yellow"
        )
        for warning in comparison.warnings:
            yield from _lines(f"  {warning}")


def _tables(comparison: Comparison) -> Iterator[RenderableType]:
    emulated = "emulated " if comparison.is_emulated else ""
    keys = ("metric", "kind", "unit", "tool", "test", "transport", "node")
    ordered = sorted(comparison.cells, key=lambda cell: tuple(getattr(cell, key) for key in keys))
    for _, group in groupby(ordered, key=lambda cell: tuple(getattr(cell, key) for key in keys)):
        cells = sorted(group, key=lambda cell: -1 if cell.size is None else cell.size)
        head = cells[0]
        factor, unit = units.scale(head.unit, [value for cell in cells for value in cell.medians])
        of_time = emulated if head.unit in ("ns", "bytes/s", "1/s") else ""
        metric = f"{head.metric} ({head.kind}), {of_time}{unit}".rstrip(", ")
        yield Text.assemble(
            "\n",
            (printable(f"{head.tool} {head.test} over {head.transport}"), "bold"),
            f"  {printable(metric)}",
        )
        grid = Table(box=None, pad_edge=False, header_style="dim")
        for column in ("bytes", "A", "B", "change", "95 % interval"):
            grid.add_column(column, justify="right", no_wrap=True)
        grid.add_column("B is", no_wrap=True)
        for cell in cells:
            first, second = (units.number(value / factor) for value in cell.medians)
            grid.add_row(
                "all" if cell.size is None else str(cell.size),
                *(first, second, *_change(cell, factor)),
                Text(cell.verdict, style=_STYLES[cell.verdict]),
            )
        yield grid


def _change(cell: Cell, factor: float) -> tuple[str, str]:
    """The change and its interval: in percent, or in the unit if a value is not above 0."""
    times = cell.ratio
    apart = times or cell.difference

    def text(value: float) -> str:
        return f"{(value - 1) * 100:+.1f} %" if times else f"{value / factor:+.4g}"

    between = apart.interval
    return text(apart.estimate), f"{text(between.low)} to {text(between.high)}" if between else ""


def _closing(comparison: Comparison) -> Iterator[RenderableType]:
    counts = ", ".join(f"{comparison.count(verdict)} {verdict}" for verdict in Verdict)
    yield Text(f"\nB against A: {counts}", style="bold")
    yield from _lines(
        "The change is the Hodges-Lehmann estimate; its interval belongs to the Mann-Whitney "
        "test (docs/howto/compare.md)."
    )
    if any(cell.difference.interval is None for cell in comparison.cells):
        least = next(count for count in range(1, 100) if enough(count))
        yield from _lines(
            f"Cells without an interval have too few repetitions: both runs need {least}."
        )
    judged = sum(cell.difference.interval is not None for cell in comparison.cells)
    if judged > 1:
        chance = (1 - CONFIDENCE) * judged
        yield from _lines(
            f"Of {judged} cells, about {chance:.1f} would show a difference by chance alone."
        )
    if comparison.is_emulated:
        yield from _lines(
            "The nodes were emulated: no time is real, and waits, latencies and rates change with "
            "the load of the emulating machine. Numbers of instructions (icount) do not."
        )


def _lines(*texts: str) -> Iterator[RenderableType]:
    for text in texts:
        yield Text(
            textwrap.fill(printable(text), WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        )
