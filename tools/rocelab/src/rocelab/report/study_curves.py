# SPDX-License-Identifier: GPL-2.0-or-later
"""Measured curves over message size, with the numbers that a publication's text states."""

from __future__ import annotations

from collections.abc import Sequence

from rocelab import units
from rocelab.record.read import Series
from rocelab.report import charts, palette, series_order
from rocelab.report.figure import Legend, Panel
from rocelab.studies.answers import Answer
from rocelab.studies.claims import Figure as Published
from rocelab.studies.claims import Operand


def panel(
    group: Sequence[Published], series: Sequence[Series], *, factor: float, averaging: str
) -> Panel:
    """Return the panel of `series`, all of one quantity, over size; `factor` is of the unit."""
    first = group[0]
    points = []
    for item in series:
        spread = item.spread
        value = (spread.mean if averaging == "mean" else spread.median) / factor
        low, high = spread.low / factor, spread.high / factor
        points.append(
            charts.LinePoint(
                size=item.size,
                series=item.transport,
                value=value,
                low=low,
                high=high,
                repetitions=tuple(one / factor for one in item.values),
                label=f"{item.transport}, {units.size(item.size)}: {units.number(value, 4)} "
                f"({units.number(low)} to {units.number(high)}) {first.unit}, measured here",
            )
        )
    marks = [
        charts.Mark(
            figure.transport,
            figure.size,
            figure.low,
            f"{figure.system}: {figure.low:.10g} {figure.unit}, published",
        )
        for figure in group
    ]
    heights = [height for point in points for height in (*point.repetitions, point.low, point.high)]
    heights += [mark.value for mark in marks]
    axis = f"{first.metric} ({first.unit})"
    if charts.spans_decades(heights):
        axis += ", log scale"
    chart = charts.lines(
        points, series=_transports(group, series), y_title=axis, y_values=heights, marks=marks
    )
    words = "; ".join([*(point.label for point in points), *(mark.label for mark in marks)])
    return Panel("over message size", chart, f"{axis}, by size: {words}.")


def legend(group: Sequence[Published], series: Sequence[Series]) -> list[Legend]:
    """The colours of the lines, marks and dotted lines."""
    return [
        Legend(name, palette.transport_style(name).colour.light, "line")
        for name in _transports(group, series)
    ]


def claims_on(figure: Published, answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers to the claims about a figure's quantity."""
    return [
        answer
        for answer in answers
        if any(
            (operand.tool, operand.test, operand.metric)
            == (figure.tool, figure.test, figure.metric)
            for operand in _operands(answer)
        )
    ]


def _operands(answer: Answer) -> list[Operand]:
    return [value for value in vars(answer.claim.check).values() if isinstance(value, Operand)]


def _transports(group: Sequence[Published], series: Sequence[Series]) -> list[str]:
    names = {item.transport for item in series} | {figure.transport for figure in group}
    return sorted(names, key=series_order.transport_rank)
