# SPDX-License-Identifier: GPL-2.0-or-later
"""Two more kinds of chart: spans on a line of time, and points with a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from rocelab.report import charts
from rocelab.report.charts import Spec

_LANE = 34


@dataclass(frozen=True)
class Span:
    """A stretch of time in a lane, in display units."""

    lane: str
    series: str
    begin: float
    end: float
    label: str


@dataclass(frozen=True)
class Dot:
    """A point, in display units."""

    x: float
    y: float
    label: str


def timeline(
    spans: Sequence[Span],
    *,
    lanes: Sequence[str],
    series: Sequence[tuple[str, str]],
    x_title: str,
    x_top: float,
) -> Spec:
    """Return spans as bars, one lane below the other; `series` are (name, light colour) pairs."""
    frame = pl.DataFrame(
        {
            "lane": [span.lane for span in spans],
            "series": [span.series for span in spans],
            "begin": [float(span.begin) for span in spans],
            "end": [float(span.end) for span in spans],
            "label": [span.label for span in spans],
        }
    )
    bars = (
        alt.Chart(frame)
        .mark_bar(height=18)
        .encode(
            x=alt.X(
                "begin:Q",
                title=x_title,
                scale=alt.Scale(domain=[0, x_top or 1.0], nice=False),
                axis=alt.Axis(tickCount=5, grid=True),
            ),
            x2=alt.X2("end:Q"),
            y=alt.Y(
                "lane:N",
                title=None,
                sort=list(lanes),
                scale=alt.Scale(domain=list(lanes)),
                axis=alt.Axis(domain=False, ticks=False),
            ),
            color=charts.series_colour(series),
            description=alt.Description("label:N"),
        )
    )
    return charts.stack_layers(bars, width=charts.PANEL_WIDTH, height=_LANE * len(lanes))


@dataclass(frozen=True)
class Line:
    """A straight line between two message sizes."""

    base: float
    factor: float
    begin: int
    end: int


def scatter(
    dots: Sequence[Dot],
    *,
    lines: Sequence[Line],
    colour: str,
    x_title: str,
    y_title: str,
) -> Spec:
    """Return points over message size, and lines, which bend where the axis of sizes does."""
    sizes = sorted({int(dot.x) for dot in dots})
    bends = [
        (number, size, line.base + line.factor * size)
        for number, line in enumerate(lines)
        for size in sizes
        if line.begin <= size <= line.end
    ]
    heights = [dot.y for dot in dots] + [height for _, _, height in bends]
    low, high = min([*heights, 0.0]) * 1.08, max([*heights, 0.0]) * 1.08 or 1.0
    x = alt.X("x:Q", title=x_title, scale=charts.size_scale(sizes), axis=charts.size_axis(sizes))
    y = alt.Y("y:Q", title=y_title, scale=alt.Scale(domain=[low, high], nice=False))
    points = (
        alt.Chart(
            pl.DataFrame(
                {
                    "x": [int(dot.x) for dot in dots],
                    "y": [float(dot.y) for dot in dots],
                    "label": [dot.label for dot in dots],
                }
            )
        )
        .mark_point(size=46, filled=True, opacity=0.8, color=colour)
        .encode(x=x, y=y, description=alt.Description("label:N"))
    )
    layers = []
    if bends:
        frame = pl.DataFrame(bends, schema=["line", "x", "y"], orient="row")
        layers.append(
            alt.Chart(frame)
            .mark_line(strokeWidth=2, color=colour)
            .encode(x=x, y=y, detail="line:N")
        )
    return charts.stack_layers(*layers, points, width=charts.PANEL_WIDTH, height=charts.LINE_HEIGHT)
