# SPDX-License-Identifier: GPL-2.0-or-later
"""Print what changed between two captures: figures, then causes and their cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

from rocelab import units
from rocelab.capture.changes import Amount, Changes, Figure, Row
from rocelab.capture.verdict.line import time
from rocelab.capture.verdict.words import times
from rocelab.terminal import grid
from rocelab.terminal.printable import printable


def show(
    changes: Changes,
    results: tuple[dict[str, Any], dict[str, Any]],
    failed: Sequence[str],
    console: Console,
) -> None:
    """Print a comparison; `results` are the analyses, the one before first."""
    for part in _parts(changes, results, failed, console.width):
        console.print(part)


def _parts(
    changes: Changes,
    results: tuple[dict[str, Any], dict[str, Any]],
    failed: Sequence[str],
    columns: int,
) -> Iterator[RenderableType]:
    for name, result in zip(("A", "B"), results, strict=True):
        files = ", ".join(printable(file) for file in result["input"]["files"])
        yield grid.paragraph(f"{name}  {files}", columns)
    for text in changes.warnings:
        yield grid.paragraph(f"{text[:1].upper()}{text[1:]}.", columns, "yellow")
    if changes.rows:
        yield grid.heading("Causes", "time lost, of all connections' time", columns)
        cells = [_cells(row) for row in changes.rows]
        bold = [at for at, row in enumerate(changes.rows) if row.cause in failed]
        yield from grid.fit(("", "A", "B", "B has it"), cells, columns, bold=bold)
    else:
        yield grid.paragraph("Nothing is wrong in either.", columns)
    yield grid.heading("Figures", "of all connections", columns)
    rows = [(one.name, *_values(one)) for one in changes.figures]
    yield from grid.fit(("", "A", "B"), rows, columns)
    if failed:
        names = ", ".join(name.replace("_", " ") for name in failed)
        yield Text()
        yield grid.paragraph(f"Costs more in B: {names}.", columns, "bold red")


def _cells(row: Row) -> Sequence[str]:
    where = f", {printable(row.where)}" if row.where else ""
    name = row.cause.replace("_", " ") + where
    return name, _amount(row.before), _amount(row.after), str(row.change)


def _amount(amount: Amount) -> str:
    if not amount.count:
        return units.ABSENT
    if not amount.lost_ns:
        return times(amount.count)
    return f"{time(amount.lost_ns)} ({100 * amount.share:.1f} %), {times(amount.count)}"


def _values(one: Figure) -> tuple[str, str]:
    before, after = (
        units.ABSENT if value is None else units.quantity(value, one.unit)
        for value in (one.before, one.after)
    )
    return before, after
