# SPDX-License-Identifier: GPL-2.0-or-later
"""Charts of a capture: lines over time, points over time, and a distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import altair as alt
import polars as pl

from rocelab.report import charts, palette
from rocelab.report.charts import Spec

WIDTH = 700
HEIGHT = 220
TALL = 340
_DOT, _LARGE_DOT, _MANY = 12, 34, 600
"""Area of a point where there are many, of one where there are few, and what is many."""


@dataclass(frozen=True)
class Line:
    """A line: its name, its light colour, and a value for each x, or for each interval of them."""

    name: str
    colour: str
    values: Sequence[float]


@dataclass(frozen=True)
class Label:
    """A marked point with what it says."""

    x: float
    y: float
    text: str


def lines(
    xs: Sequence[float],
    series: Sequence[Line],
    *,
    x_title: str,
    y_title: str,
    x_top: float,
    interpolate: str = "step-after",
    x_log: tuple[float, float] | None = None,
) -> Spec:
    """Return lines over time, or over a logarithmic x within `x_log`.

    Where there is one value less than `xs`, values are those of the intervals between them.
    """
    series = [
        replace(line, values=[*line.values, line.values[-1]])
        if len(line.values) < len(xs)
        else line
        for line in series
    ]
    frame = pl.DataFrame(
        {
            "x": [float(x) for _ in series for x in xs],
            "y": [float(value) for line in series for value in line.values],
            "series": [line.name for line in series for _ in xs],
        }
    )
    scale = (
        alt.Scale(type="log", domain=list(x_log), nice=False)
        if x_log
        else alt.Scale(domain=[0, x_top or 1.0], nice=False)
    )
    drawn = (
        alt.Chart(frame)
        .mark_line(strokeWidth=1.6, interpolate=interpolate)  # type: ignore[arg-type]
        .encode(
            x=alt.X("x:Q", title=x_title, scale=scale, axis=alt.Axis(tickCount=6, grid=True)),
            y=alt.Y("y:Q", title=y_title, scale=alt.Scale(domainMin=0), axis=_axis()),
            color=charts.series_colour([(line.name, line.colour) for line in series]),
        )
    )
    return charts.stack_layers(drawn, width=WIDTH, height=HEIGHT)


def points(
    frame: pl.DataFrame,
    labels: Sequence[Label],
    *,
    series: Sequence[tuple[str, str]],
    x_title: str,
    y_title: str,
    x_top: float,
) -> Spec:
    """Return points (`x`, `y`, `series` of `frame`), and labels at some of them.

    `series` are (name, light colour) pairs; each also has its own shape.
    """
    x = alt.X(
        "x:Q",
        title=x_title,
        scale=alt.Scale(domain=[0, x_top or 1.0], nice=False),
        axis=alt.Axis(tickCount=6, grid=True),
    )
    y = alt.Y("y:Q", title=y_title, axis=_axis())
    names = [name for name, _ in series]
    shape = alt.Shape(
        "series:N", title=None, sort=names, scale=alt.Scale(domain=names, range=_SHAPES)
    )
    drawn = (
        alt.Chart(frame)
        .mark_point(size=_DOT if frame.height > _MANY else _LARGE_DOT, filled=True, opacity=0.85)
        .encode(x=x, y=y, color=charts.series_colour(series), shape=shape)
    )
    marks = (
        alt.Chart(
            pl.DataFrame(
                {
                    "x": [float(label.x) for label in labels],
                    "y": [float(label.y) for label in labels],
                    "label": [label.text for label in labels],
                },
                schema={"x": pl.Float64, "y": pl.Float64, "label": pl.String},
            )
        )
        .mark_point(size=120, filled=False, strokeWidth=1.6, color=palette.FINDING.light)
        .encode(x=x, y=y, description=alt.Description("label:N"))
    )
    return charts.stack_layers(drawn, marks, width=WIDTH, height=TALL)


_SHAPES = ["circle", "square", "triangle-up", "triangle-down", "diamond", "cross"]


def _axis() -> alt.Axis:
    return alt.Axis(tickCount=5, format="~s")
