# SPDX-License-Identifier: GPL-2.0-or-later
"""The figure of an A/B comparison: a bar for each figure that moved, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from rocelab import metrics, units
from rocelab.compare.difference import Difference
from rocelab.compare.driver_change import Answer
from rocelab.report import charts, palette, render
from rocelab.report.figure import Figure, Panel

_STEP = 22
_WIDTH = 380
_MAX_BARS = 40
"""Of stages, and of kernel cycles."""


@dataclass(frozen=True)
class Moved:
    """A figure that moved: its name, and the difference with its interval, in `unit`."""

    label: str
    difference: float
    low: float
    high: float
    unit: str
    per: str = "packet"


def of(answer: Answer, sentence: str) -> str:
    """Return the figure of an answer as SVG, the empty text if nothing moved."""
    bars = [
        _bar(
            f"{stage.direction} {stage.stage}, {stage.opcode} {units.size(stage.size)} "
            f"{stage.transport} {stage.node}",
            stage,
            "packet",
        )
        for stage in answer.moved[:_MAX_BARS]
    ]
    bars += [
        _bar(
            f"kernel, {each.test} {units.size(each.size)} {each.transport} {each.node}",
            each,
            each.per,
        )
        for each in answer.moved_cycles[:_MAX_BARS]
    ]
    return draw(bars, sentence=sentence, accelerator=answer.accelerator)


def _bar(label: str, moved: Difference, per: str) -> Moved:
    between = moved.interval
    low, high = (between.low, between.high) if between else (moved.difference,) * 2
    return Moved(label, moved.difference, low, high, moved.unit, per)


def draw(moved: Sequence[Moved], *, sentence: str, accelerator: str) -> str:
    """Return the figure as SVG, the empty text if nothing moved."""
    if not moved:
        return ""
    panels: dict[tuple[str, str], list[Moved]] = {}
    for bar in moved:
        panels.setdefault((bar.unit, bar.per), []).append(bar)
    figure = Figure(
        "ab",
        "What the change does",
        (f"{sentence}.",),
        tuple(_panel(bars) for bars in panels.values()),
        *((), (), accelerator),
        columns=1,
    )
    return render.figure_file(figure)


def _panel(moved: Sequence[Moved]) -> Panel:
    """Bars of one unit."""
    frame = pl.DataFrame(
        {
            "label": [bar.label for bar in moved],
            "difference": [float(bar.difference) for bar in moved],
            "low": [float(bar.low) for bar in moved],
            "high": [float(bar.high) for bar in moved],
            "costlier": ["costlier" if bar.difference > 0 else "cheaper" for bar in moved],
        }
    )
    names = [bar.label for bar in moved]
    y = alt.Y("label:N", title=None, sort=names, axis=alt.Axis(labelLimit=400, ticks=False))
    bars = (
        alt.Chart(frame)
        .mark_bar(height=_STEP - 8)
        .encode(
            x=alt.X("difference:Q", title=f"change, {moved[0].unit} for each {moved[0].per}"),
            y=y,
            color=alt.Color(
                "costlier:N",
                title=None,
                scale=alt.Scale(
                    domain=["costlier", "cheaper"],
                    range=[palette.FINDING.light, palette.HEADERS.light],
                ),
            ),
            description=alt.Description("label:N"),
        )
    )
    intervals = alt.Chart(frame).mark_rule(strokeWidth=1.5).encode(x="low:Q", x2="high:Q", y=y)
    chart = charts.stack_layers(bars, intervals, width=_WIDTH, height=_STEP * len(moved))
    noun = "count" if moved[0].unit == metrics.CYCLES else "stage"
    return Panel("", chart, f"Bars of {units.plural(len(moved), noun)}.")
