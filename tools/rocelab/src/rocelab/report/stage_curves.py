# SPDX-License-Identifier: GPL-2.0-or-later
"""How the stages of a packet grow with the message size."""

from __future__ import annotations

from collections.abc import Sequence

from rocelab import stage_table, units
from rocelab.group_by import group_by
from rocelab.record.read import Run
from rocelab.record.stage_costs import Bar, Place, bars, is_acknowledgement, is_packet_cost
from rocelab.report import palette, plots, series_order, wording
from rocelab.report.figure import Column, Figure, Legend, Note, Panel, Section, Table

_TITLE = "Stage costs against size"


def section(run: Run) -> Section | None:
    """Return the section; None where no benchmark has stages at two sizes."""
    figures = []
    for (accelerator, benchmark, transport), series in group_by(
        filter(is_packet_cost, run.series), lambda i: (i.accelerator, i.benchmark, i.transport)
    ).items():
        sized = [item for item in series if item.size != units.ALL_SIZES]
        places = bars([item for item in sized if not is_acknowledgement(item.kind)])
        several = {place: found for place, found in places.items() if len(found) > 1}
        if several:
            drivers = sorted({item.driver for item in series})
            figures.append(_figure(accelerator, benchmark, transport, drivers, several))
    if not figures:
        return None
    note = (
        "Stages that touch the message's bytes grow with its size: copy, icrc, and alloc, which "
        "allocates the memory. Stages that write headers do not. Above the path MTU a message "
        "becomes several packets, and packets stop growing."
    )
    return Section("stage-curves", _TITLE, notes=(Note(note),), figures=tuple(figures))


def _figure(
    accelerator: str,
    benchmark: str,
    transport: str,
    drivers: Sequence[str],
    places: dict[Place, list[Bar]],
) -> Figure:
    costs = [
        cost
        for found in places.values()
        for bar in found
        for cost in bar.costs
        if cost.stage not in stage_table.APART
    ]
    top = max(cost.per_packet for cost in costs)
    factor, unit = wording.work_scale([top], accelerator)
    measured = {cost.stage for cost in costs}
    stages = [name for name in stage_table.EVERY_NAME if name in measured]
    panels, rows = [], []
    for place, found in places.items():
        points = [
            plots.StagePoint(
                bar.size,
                cost.stage,
                cost.per_packet / factor,
                f"{cost.stage}, {units.size(bar.size)}: "
                f"{units.number(cost.per_packet / factor)} {unit}",
            )
            for bar in found
            for cost in bar.costs
            if cost.stage not in stage_table.APART
        ]
        chart = plots.stage_lines(
            points,
            stages=[name for name in stages if any(p.stage == name for p in points)],
            y_title=wording.work_title("time", unit, "packet"),
            y_top=top / factor,
        )
        panels.append(
            Panel(place.title, chart, f"{place.title}, by size: {plots.words(points, unit)}.")
        )
        rows += [
            (place.title, point.stage, units.size(point.size), units.number(point.value, 4))
            for point in points
        ]
    return Figure(
        slug=series_order.slug("stage-curves", benchmark, transport, accelerator),
        title=f"Stages over size: {benchmark} over {transport}",
        caption=(
            "Mean cost of a packet in each stage, mean over repetitions; the wait in the queue and "
            f"the sending of the reply are left out. Driver: {units.listing(list(drivers))}.",
            wording.accelerator_caption(accelerator),
        ),
        panels=tuple(panels),
        legend=tuple(Legend(name, palette.STAGES[name].light) for name in stages),
        table=Table(
            f"Stages over size, in {unit} per packet",
            (
                Column("packets"),
                Column("stage"),
                Column("size", numeric=True),
                Column("mean", numeric=True),
            ),
            tuple(rows),
        ),
    )
