# SPDX-License-Identifier: GPL-2.0-or-later
"""A figure of lines over message size: one panel per benchmark, one line per transport."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rocelab import units
from rocelab.group_by import group_by
from rocelab.record.read import Series
from rocelab.report import charts, palette, series_order, wording
from rocelab.report.figure import Column, Figure, Legend, Panel, Table


@dataclass(frozen=True)
class _Scale:
    """The unit of display, the title of the vertical axis, and all values on it."""

    factor: float
    unit: str
    axis: str
    values: Sequence[float]

    def text(self, value: float) -> str:
        """Return a value with the unit."""
        return f"{units.number(value / self.factor)} {self.unit}".rstrip()


def figure(
    series: Sequence[Series],
    *,
    slug: str,
    title: str,
    quantity: str,
    caption: Sequence[str] = (),
    extra: Sequence[tuple[str, Sequence[Series]]] = (),
    is_time: bool = False,
) -> Figure:
    """Return the figure of series that share accelerator, kind and unit.

    `quantity` names the vertical axis. `extra` are columns for the table: a label, and series (of
    any unit) that are looked up by benchmark, transport and size. `is_time` puts "emulated" before
    the unit where it belongs.
    """
    accelerator = series[0].accelerator
    factor, unit = units.scale(series[0].unit, [item.spread.median for item in series])
    if is_time:
        unit = wording.time_unit(unit, accelerator)
    axis = f"{quantity} ({unit})" if unit else quantity
    values = [value / factor for item in series for value in item.values]
    if charts.spans_decades(values):
        axis += ", log scale"
    scale = _Scale(factor, unit, axis, values)
    order = series_order.transports(series)
    panels = tuple(
        _panel(benchmark, members, scale)
        for benchmark, members in group_by(series, lambda item: item.benchmark).items()
    )
    return Figure(
        slug=slug,
        title=title,
        caption=tuple(caption),
        panels=panels,
        legend=tuple(
            Legend(name, palette.transport_style(name).colour.light, "line") for name in order
        ),
        tables=(_table(series, title, factor, unit, extra),),
        accelerator=accelerator,
        notes=(wording.whisker_caption(series), *wording.programs_notes(series)),
    )


def _panel(benchmark: str, members: Sequence[Series], scale: _Scale) -> Panel:
    whiskers = wording.has_intervals(members)
    points = []
    for item in members:
        spread = item.spread
        low, high = spread.low, spread.high
        if whiskers and spread.interval:
            low, high = spread.interval.low, spread.interval.high
        points.append(
            charts.LinePoint(
                size=item.size,
                series=item.transport,
                value=spread.median / scale.factor,
                low=low / scale.factor,
                high=high / scale.factor,
                repetitions=tuple(value / scale.factor for value in item.values),
                label=f"{item.transport}, {units.size(item.size)}: {scale.text(spread.median)} "
                f"({units.number(low / scale.factor)} to {units.number(high / scale.factor)})",
            )
        )
    order = series_order.transports(members)
    chart = charts.lines(points, series=order, y_title=scale.axis, y_values=scale.values)
    lines = []
    for name in order:
        line = sorted((item for item in members if item.transport == name), key=lambda i: i.size)
        ends = [line[0], line[-1]] if len(line) > 1 else line
        steps = [f"{scale.text(i.spread.median)} at {units.size(i.size)}" for i in ends]
        lines.append(f"{name} {' to '.join(steps)}")
    return Panel(benchmark, chart, f"{benchmark}, {scale.axis}, by size: {'; '.join(lines)}.")


def _table(
    series: Sequence[Series],
    title: str,
    factor: float,
    unit: str,
    extra: Sequence[tuple[str, Sequence[Series]]],
) -> Table:
    repeated = series_order.is_repeated(series)
    lookups = [
        (label, {(i.benchmark, i.transport, i.program, i.size): i for i in items})
        for label, items in extra
    ]
    lookups = [(label, values) for label, values in lookups if values]
    order = list(dict.fromkeys(item.benchmark for item in series))
    rows = []
    for item in sorted(
        series,
        key=lambda i: (
            order.index(i.benchmark),
            series_order.transport_rank(i.transport),
            i.size,
            i.program,
        ),
    ):
        more = [
            values.get((item.benchmark, item.transport, item.program, item.size))
            for _, values in lookups
        ]
        rows.append(
            (
                item.benchmark,
                item.transport,
                item.program,
                units.size(item.size),
                *series_order.spread_cells(item, factor, repeated=repeated),
                *(_other(i, series[0].unit, factor) for i in more),
            )
        )
    return Table(
        caption=f"{title}, in {unit}" if unit else title,
        columns=(
            Column("benchmark"),
            Column("transport"),
            Column("program"),
            Column("size", numeric=True),
            *series_order.spread_columns(series),
            *(Column(label, numeric=True) for label, _ in lookups),
        ),
        rows=tuple(rows),
    )


def _other(item: Series | None, unit: str, factor: float) -> str:
    if item is None:
        return units.ABSENT
    if item.unit == unit:
        return units.number(item.spread.median / factor, 4)
    amount, name = units.quantity(item.spread.median, item.unit, 4).rsplit(units.NARROW_SPACE, 1)
    return f"{amount} {wording.time_unit(name, item.accelerator)}"
