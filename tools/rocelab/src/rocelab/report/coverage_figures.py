# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of a latency the driver's stages explain, and how much lies outside the driver."""

from __future__ import annotations

from collections.abc import Sequence

from rocelab import units
from rocelab.group_by import group_by
from rocelab.metrics import Coverage
from rocelab.record.read import Run, Series
from rocelab.report import charts, palette, series_order, wording
from rocelab.report.figure import Column, Figure, Legend, Note, Panel, Section, Table

_STAGES, _OUTSIDE, _TOTAL = (Coverage(part).name for part in ("stages", "outside", "total"))
_LABELS = {_STAGES: "stages of the driver, both ends", _OUTSIDE: "outside the driver"}
_COLOURS = {_STAGES: palette.STAGES["net"].light, _OUTSIDE: palette.OUTSIDE.light}


def section(run: Run) -> Section:
    """Return the section on coverage: a figure per accelerator and kind of latency."""
    items = [item for item in run.series if item.metric in {_STAGES, _OUTSIDE, _TOTAL}]
    figures = [
        _figure(accelerator, kind, series)
        for (accelerator, kind), series in group_by(
            items, lambda i: (i.accelerator, i.kind)
        ).items()
        if any(item.metric == _TOTAL for item in series)
    ]
    note = (
        "This run has no coverage: this takes stage costs and a latency of half a round trip, "
        "with messages of one packet."
    )
    if figures:
        note = (
            "The mean latency of one message, and the part of it that the driver's stages at both "
            "ends cover, including waits in the driver's queues. The rest is outside the driver: "
            "the program, system calls, wake-ups, the kernel's network stack, the link. Only the "
            "latency of messages of one packet can be divided like this."
        )
    return Section("coverage", "What the stages cover", notes=(Note(note),), figures=tuple(figures))


def _figure(accelerator: str, kind: str, series: Sequence[Series]) -> Figure:
    totals = [item.spread.mean for item in series if item.metric == _TOTAL]
    factor, unit = wording.time_scale(totals, accelerator)
    keyed = group_by(series, lambda i: (i.benchmark, i.transport))
    ordered = sorted(keyed.items(), key=lambda e: (e[0][0], series_order.transport_rank(e[0][1])))
    top = max([*totals, *(i.spread.mean for i in series if i.metric == _STAGES)]) / factor
    times = units.plural(max(item.spread.count for item in series), "repetition")
    caption = [
        f"Mean latency of a message, {wording.KINDS.get(kind, kind)}; mean over {times}, because "
        "means add up and medians do not.",
    ]
    if any(item.spread.mean < 0 for item in series if item.metric == _OUTSIDE):
        caption.insert(
            1,
            "If the stages add up to more than the latency, the rest is negative: both ends worked "
            "at the same time. The table has the number; the bar cannot show it.",
        )
    return Figure(
        slug=series_order.slug("coverage", kind, accelerator),
        title="Latency inside and outside the driver",
        caption=tuple(caption),
        panels=tuple(
            _panel(f"{benchmark} over {transport}", members, factor, unit, top)
            for (benchmark, transport), members in ordered
        ),
        legend=tuple(Legend(_LABELS[name], _COLOURS[name]) for name in _LABELS),
        tables=(_table(series, factor, unit),),
        accelerator=accelerator,
    )


def _panel(title: str, members: Sequence[Series], factor: float, unit: str, top: float) -> Panel:
    means = {(item.metric, item.size): item.spread.mean / factor for item in members}
    sizes = sorted({size for _, size in means})
    parts = [
        charts.Part(
            row=units.size(size),
            series=_LABELS[metric],
            value=means[metric, size],
            label=(
                f"{_LABELS[metric]}, {units.size(size)}: {units.number(means[metric, size])} {unit}"
            ),
        )
        for size in sizes
        for metric in _LABELS
        if means.get((metric, size), -1.0) >= 0
    ]
    columns = [
        (
            heading,
            [
                units.number(means[metric, size]) if (metric, size) in means else units.ABSENT
                for size in sizes
            ],
        )
        for heading, metric in (("total", _TOTAL), ("stages", _STAGES), ("outside", _OUTSIDE))
    ]
    chart = charts.stacks(
        parts,
        rows=[units.size(size) for size in sizes],
        series=[(_LABELS[name], _COLOURS[name]) for name in _LABELS],
        x_title=f"latency ({unit})",
        x_top=top,
        columns=columns,
    )
    words = "; ".join(
        f"{units.size(size)}: "
        + ", ".join(f"{heading} {texts[position]}" for heading, texts in columns)
        for position, size in enumerate(sizes)
    )
    return Panel(title, chart, f"{title}, {unit}. {words}.")


def _part(metric: str) -> str:
    coverage = Coverage.parse(metric)
    return coverage.part if coverage else metric


def _table(series: Sequence[Series], factor: float, unit: str) -> Table:
    repeated = series_order.is_repeated(series)
    rows = tuple(
        (
            item.benchmark,
            item.transport,
            units.size(item.size),
            _part(item.metric),
            *series_order.spread_cells(item, factor, repeated=repeated),
        )
        for item in sorted(
            series,
            key=lambda i: (i.benchmark, series_order.transport_rank(i.transport), i.size, i.metric),
        )
    )
    return Table(
        f"Coverage, in {unit}",
        (
            Column("benchmark"),
            Column("transport"),
            Column("size", numeric=True),
            Column("part"),
            *series_order.spread_columns(series),
        ),
        rows,
    )
