# SPDX-License-Identifier: GPL-2.0-or-later
"""How sure the cost of a message and the start are, as a table: intervals over the repetitions.

Each repetition has a slope and an intercept of its own. Where the clock tells real time, other
work of the machine disturbs some of them, so the estimate is not the mean (`rocelab.stats.paired`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl
from rich.console import RenderableType

from rocelab import metrics
from rocelab.stats import paired
from rocelab.stats.summary import CONFIDENCE
from rocelab.terminal import grid

_HEADS = ("benchmark", "transport", "total", "start")


def render(
    steps: Iterable[tuple[str, str, pl.DataFrame]], columns: int, *, counts: bool
) -> Iterator[RenderableType]:
    """Yield the table of these steps: a benchmark's name, a transport, the step's rows.

    Nothing if none has enough repetitions. `counts`: instructions are counted, not ns.
    """
    rows: list[tuple[str, ...]] = []
    last = ""
    for name, transport, step in steps:
        cells = (
            _text(step, metrics.MARGINAL, 1.0, 0),
            _text(step, metrics.START, 1e6, 1),
        )
        if all(cells):
            rows.append(("" if name == last else name, transport, *cells))
            last = name
    if not rows:
        return
    unit = "instructions; start in millions" if counts else "ns; start in ms"
    yield grid.heading("Intervals of total and start", f"{CONFIDENCE * 100:g} %, {unit}", columns)
    yield from grid.fit(_HEADS, rows, columns, keys=2)


def _text(step: pl.DataFrame, kind: str, scale: float, digits: int) -> str:
    """The estimate of all machines together, with its interval; empty without one."""
    rows = step.filter(metric=metrics.MESSAGE_COST, kind=kind)
    sums = rows.group_by("repetition").agg(pl.col("value").sum())
    if sums.is_empty():
        return ""
    shift = paired.shift(paired.averages(sums["value"].to_list()))
    if shift.interval is None:
        return ""
    numbers = (shift.estimate, shift.interval.low, shift.interval.high)
    middle, low, high = (f"{number / scale:,.{digits}f}" for number in numbers)
    return f"{middle} ({low} to {high})"
