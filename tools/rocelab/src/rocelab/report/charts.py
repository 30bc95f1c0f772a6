# SPDX-License-Identifier: GPL-2.0-or-later
"""The two kinds of chart of a report: lines over message size, and stacks of parts.

Charts take finished numbers in display units and know nothing of runs. No text from a run reaches a
Vega expression: names are data values only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl

from rocelab import units
from rocelab.report import palette

PANEL_WIDTH = 330
LINE_HEIGHT = 210
BAR_STEP = 26
BAR_WIDTH = 190
COLUMN_WIDTH = 53
DIGIT_WIDTH = 7
"""Of a column of numbers next to bars: at least this, or this for each character."""
Spec = dict[str, Any]
"""A Vega-Lite specification without configuration."""
FONT = "Arial, Helvetica, 'Liberation Sans', sans-serif"
"""Three fonts of the same metrics, by which `vegalite` lays out."""
MAX_SIZES = 8
"""As many message sizes are named on an axis; the others keep their ticks."""
LOG_FROM_RATIO = 20.0
"""A quantity that spans more than this factor is drawn on a logarithmic axis."""


@dataclass(frozen=True)
class LinePoint:
    """One point of a line, in display units: a median, its whisker, and the single repetitions."""

    size: int
    series: str
    value: float
    low: float
    high: float
    repetitions: tuple[float, ...]
    label: str


@dataclass(frozen=True)
class Mark:
    """A number from elsewhere, in display units: at a size, or of no size of its own."""

    series: str
    size: int | None
    value: float
    label: str


@dataclass(frozen=True)
class Part:
    """One part of a stack, in display units; a row's parts stand in the order they are given."""

    row: str
    series: str
    value: float
    label: str


def spans_decades(values: Sequence[float]) -> bool:
    """Say whether `values`, all positive, span so much that only a logarithmic axis shows them."""
    return bool(values) and min(values) > 0 and max(values) / min(values) > LOG_FROM_RATIO


def lines(
    points: Sequence[LinePoint],
    *,
    series: Sequence[str],
    y_title: str,
    y_values: Sequence[float],
    marks: Sequence[Mark] = (),
) -> Spec:
    """Return medians as lines over message size, whiskers, and one dot per repetition.

    `series` are the transports in legend order; `y_values` are all values of the figure, so that
    its panels share one scale. `marks` are crosses, and dotted lines where they have no size.
    """
    sizes = sorted({point.size for point in points} | {m.size for m in marks if m.size is not None})
    styles = [palette.transport_style(name) for name in series]
    x = alt.X("size:Q", title="message size", scale=size_scale(sizes), axis=size_axis(sizes))
    y = alt.Y("value:Q", title=y_title, scale=_value_scale(y_values), axis=_value_axis(y_values))
    colour = alt.Color(
        "series:N",
        title=None,
        sort=list(series),
        scale=alt.Scale(domain=list(series), range=[style.colour.light for style in styles]),
    )
    shape = alt.Shape(
        "series:N",
        title=None,
        scale=alt.Scale(domain=list(series), range=[style.shape for style in styles]),
    )
    dash = alt.StrokeDash(
        "series:N",
        title=None,
        scale=alt.Scale(domain=list(series), range=[list(style.dash) for style in styles]),
    )
    medians = alt.Chart(
        pl.DataFrame(
            {
                "size": [point.size for point in points],
                "series": [point.series for point in points],
                "value": [float(point.value) for point in points],
                "low": [float(point.low) for point in points],
                "high": [float(point.high) for point in points],
                "label": [point.label for point in points],
            }
        )
    )
    dots = [(point, value) for point in points for value in point.repetitions]
    repetitions = alt.Chart(
        pl.DataFrame(
            {
                "size": [point.size for point, _ in dots],
                "series": [point.series for point, _ in dots],
                "value": [float(value) for _, value in dots],
            },
            schema={"size": pl.Int64, "series": pl.String, "value": pl.Float64},
        )
    )
    return stack_layers(
        *_marks(marks, x, y, colour),
        repetitions.mark_circle(size=14, opacity=0.35).encode(x=x, y=y, color=colour),
        medians.mark_rule(strokeWidth=1.5).encode(
            x=x,
            y=alt.Y("low:Q", title=y_title),
            y2=alt.Y2("high:Q"),
            color=colour,
            description=alt.Description("label:N"),
        ),
        medians.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, strokeDash=dash),
        medians.mark_point(size=52, filled=True, opacity=1).encode(
            x=x, y=y, color=colour, shape=shape, description=alt.Description("label:N")
        ),
        width=PANEL_WIDTH,
        height=LINE_HEIGHT,
    )


def _marks(marks: Sequence[Mark], x: alt.X, y: alt.Y, colour: alt.Color) -> Iterator[alt.Chart]:
    for sized in (True, False):
        some = [mark for mark in marks if (mark.size is not None) is sized]
        if not some:
            continue
        chart = alt.Chart(
            pl.DataFrame(
                {
                    "size": [mark.size or 0 for mark in some],
                    "series": [mark.series for mark in some],
                    "value": [float(mark.value) for mark in some],
                    "label": [mark.label for mark in some],
                }
            )
        )
        label = alt.Description("label:N")
        if sized:
            yield chart.mark_point(size=110, shape="cross", filled=False, strokeWidth=2).encode(
                x=x, y=y, color=colour, description=label
            )
        else:
            yield chart.mark_rule(strokeWidth=1.5, strokeDash=[2, 4]).encode(
                y=y, color=colour, description=label
            )


def stacks(
    parts: Sequence[Part],
    *,
    rows: Sequence[str],
    series: Sequence[tuple[str, str]],
    x_title: str,
    x_top: float,
    columns: Sequence[tuple[str, Sequence[str]]] = (),
    width: int = BAR_WIDTH,
) -> Spec:
    """Return one horizontal bar per row, its parts side by side from left to right.

    `series` are the figure's (name, light colour) pairs in legend order; `x_top` is its largest
    bar, so that its panels share one scale; `columns` are numbers that stand right of the bars,
    a heading and one text per row each, as in a forest plot.
    """
    frame = pl.DataFrame(
        {
            "row": [part.row for part in parts],
            "series": [part.series for part in parts],
            "order": list(range(len(parts))),
            "value": [float(part.value) for part in parts],
            "label": [part.label for part in parts],
        }
    )
    y = alt.Y(
        "row:N",
        title=None,
        sort=list(rows),
        scale=alt.Scale(domain=list(rows), paddingInner=0.28),
        axis=alt.Axis(domain=False, ticks=False),
    )
    bars = (
        alt.Chart(frame)
        .mark_bar(stroke=palette.GROUND.light, strokeWidth=1)
        .encode(
            x=alt.X(
                "value:Q",
                title=x_title,
                stack="zero",
                scale=alt.Scale(domain=[0, x_top or 1.0], nice=False),
                axis=alt.Axis(tickCount=4, grid=True),
            ),
            y=y,
            color=series_colour(series),
            order=alt.Order("order:Q"),
            description=alt.Description("label:N"),
        )
    )
    return stack_layers(
        bars, *_columns(columns, rows, y, width), width=width, height=BAR_STEP * len(rows)
    )


def series_colour(series: Sequence[tuple[str, str]]) -> alt.Color:
    """The colours of series, each with its name, in their order."""
    names, colours = zip(*series, strict=True) if series else ((), ())
    scale = alt.Scale(domain=list(names), range=list(colours))
    return alt.Color("series:N", title=None, sort=list(names), scale=scale)


def concat(specs: Sequence[Spec], *, titles: Sequence[str], columns: int) -> Spec:
    """Return several charts as one, each with its title."""
    datasets: dict[str, Any] = {}
    parts = []
    for spec, title in zip(specs, titles, strict=True):
        part = {key: value for key, value in spec.items() if key != "datasets"}
        parts.append({**part, "title": title})
        datasets.update(spec.get("datasets", {}))  # named by a hash of their content
    return {"concat": parts, "columns": columns, "datasets": datasets}


def _columns(
    columns: Sequence[tuple[str, Sequence[str]]], rows: Sequence[str], y: alt.Y, width: int
) -> Iterator[alt.Chart]:
    if not columns:
        return
    widths = [
        max(COLUMN_WIDTH, DIGIT_WIDTH * max(map(len, (heading, *texts))))
        for heading, texts in columns
    ]
    ends = [width + sum(widths[: position + 1]) for position in range(len(columns))]
    x = alt.X("end:Q", scale=None)
    numbers = alt.Chart(
        pl.DataFrame(
            {
                "row": list(rows) * len(columns),
                "end": [end for end in ends for _ in rows],
                "text": [text for _, texts in columns for text in texts],
                "label": list(rows) * len(columns),
            }
        )
    )
    headings = alt.Chart(pl.DataFrame({"end": ends, "text": [heading for heading, _ in columns]}))
    yield numbers.mark_text(align="right", fontSize=11, color=palette.INK.light).encode(
        x=x, y=y, text=alt.Text("text:N"), description=alt.Description("label:N")
    )
    yield headings.mark_text(align="right", fontSize=11, color=palette.MUTED.light).encode(
        x=x,
        y=alt.YValue(-8),  # type: ignore[no-untyped-call]
        text=alt.Text("text:N"),
    )


def stack_layers(*layers: alt.Chart, width: int, height: int) -> Spec:
    """Return layers of one chart as a specification."""
    # our own charts: a test validates them once, a report need not
    parts = [layer.to_dict(validate=False) for layer in layers]
    datasets: dict[str, Any] = {}
    for part in parts:
        datasets.update(part.pop("datasets", {}))
        del part["$schema"], part["config"]
    return {"layer": parts, "width": width, "height": height, "datasets": datasets}


def config(*, legend: bool) -> dict[str, Any]:
    """Return the Vega-Lite configuration that all figures share."""
    muted, ink = palette.MUTED.light, palette.INK.light
    return {
        "background": "transparent" if not legend else palette.GROUND.light,
        "font": FONT,
        "view": {"stroke": "transparent"},
        "axis": {
            "labelColor": muted,
            "labelFontSize": 11,
            "titleColor": muted,
            "titleFontSize": 11.5,
            "titleFontWeight": 500,
            "titlePadding": 8,
            "gridColor": palette.GRID.light,
            "domainColor": palette.AXIS.light,
            "tickColor": palette.AXIS.light,
            "tickSize": 4,
        },
        "axisX": {"grid": False, "labelOverlap": "greedy", "labelSeparation": 6},
        "axisY": {"domain": False, "ticks": False, "labelPadding": 6},
        "legend": {
            "disable": not legend,
            "labelColor": ink,
            "labelFontSize": 11.5,
            "symbolSize": 90,
            "symbolOpacity": 1,
            "orient": "bottom",
            "columns": 8,
        },
        "title": {"color": ink, "fontSize": 12.5, "fontWeight": 600, "anchor": "start"},
        "concat": {"spacing": 28},
    }


def size_scale(sizes: Sequence[int]) -> alt.Scale:
    """Return the scale of message sizes."""
    if sizes[0] <= 0:
        return alt.Scale(type="symlog", domain=[sizes[0], sizes[-1]], nice=False)
    if sizes[0] == sizes[-1]:
        return alt.Scale(type="log", base=2, domain=[sizes[0] / 2, sizes[0] * 2], nice=False)
    return alt.Scale(type="log", base=2, domain=[sizes[0], sizes[-1]], nice=False, padding=10)


def size_axis(sizes: Sequence[int]) -> alt.Axis:
    """Return the axis of message sizes."""
    # labels come from integers, so the expression holds nothing but our own text
    every = math.ceil(len(sizes) / MAX_SIZES)
    shown = sizes[(len(sizes) - 1) % every :: every]
    names = ",".join(f"'{value}':'{units.size(value)}'" for value in shown)
    return alt.Axis(
        values=list(sizes), labelExpr=f"({{{names}}})['' + datum.value] || ''", labelFlush=False
    )


def _value_scale(values: Sequence[float]) -> alt.Scale:
    finite = [value for value in values if value > 0]
    if spans_decades(finite):
        return alt.Scale(type="log", domain=[min(finite) * 0.9, max(finite) * 1.1], nice=False)
    return alt.Scale(domain=[0, max(finite, default=1.0) * 1.08], zero=True)


def _value_axis(values: Sequence[float]) -> alt.Axis:
    finite = [value for value in values if value > 0]
    if not spans_decades(finite):
        return alt.Axis(tickCount=5)
    first, last = math.floor(math.log10(min(finite))), math.ceil(math.log10(max(finite)))
    steps = (1,) if last - first > 3 else (1, 2, 5)
    ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    shown = [tick for tick in ticks if min(finite) * 0.9 <= tick <= max(finite) * 1.1]
    return alt.Axis(values=shown, format="~g" if max(shown, default=1) < 1e4 else ",~g")
