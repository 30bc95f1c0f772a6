# SPDX-License-Identifier: GPL-2.0-or-later
"""A packet's cost in each stage of the driver, at both ends, by message size and transport."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rocelab import accelerators, metrics, stage_table, units
from rocelab.group_by import group_by
from rocelab.plans.catalog import TRANSPORTS
from rocelab.record.read import Run
from rocelab.record.stage_costs import (
    SENT,
    Place,
    bars,
    figure_of,
    is_acknowledgement,
    is_packet_cost,
    rare_classes,
    without_rare,
)
from rocelab.report import adapter_tables, series_order, stage_panel, wording
from rocelab.report.figure import Column, Figure, Note, Section, Table
from rocelab.report.stage_panel import Row, StageScale

_TITLE = "What a packet costs in the driver"
_CAPSULES = "; ".join(
    f"{name}: {', '.join(parts)}" for name, (_, parts) in stage_table.CAPSULES.items()
)
_MEANINGS = tuple(
    (stage.name, stage.direction.upper(), stage.meaning) for stage in stage_table.STAGES
)
_V1_SKIPS = (
    "RoCE v1 and v2 ran on the same driver and nodes; only the encapsulation differs. v1 is a GRH "
    "in an Ethernet frame. v2 is UDP in IP, goes through routing and netfilter, which v1 skips, "
    "and has a source port by which switches and receive queues can spread flows."
)


@dataclass(frozen=True)
class _Subject:
    """What one figure is about: a benchmark's packets, or its acknowledgements."""

    accelerator: str
    benchmark: str
    acknowledgements: bool
    figure: str
    """`mean` or `typical`."""
    repetitions: int
    places: Mapping[Place, Sequence[Row]]
    scale: StageScale
    rare: Counter[str]
    """The packets that are left out, by opcode class."""


def section(run: Run) -> Section:
    """Return the section on stages: a figure per benchmark with all transports, answers apart."""
    figures = tuple(_figure(subject) for subject in _subjects(run))
    # the transports that ran, not those that were planned
    no_stages = adapter_tables.no_stages(item.transport for item in run.series)
    more = (Note(no_stages),) if no_stages else ()
    if not figures:
        text = (
            "This run has no stage costs: they come from rxestat on the instrumented driver, "
            "which sees only rxe's RoCE packets, and it measured none here."
        )
        return Section("stages", _TITLE, notes=(Note(text), *more))
    text = (
        "Each packet was timed inside the driver, stage by stage. Stages follow one another and do "
        f"not overlap. Blue stages add or check headers ({_CAPSULES}), orange stages move "
        "memory, green stages are the driver's bookkeeping, violet stages hand the packet over."
    )
    versions = {
        known.roce
        for name in {item.transport for item in run.series if is_packet_cost(item)}
        if (known := TRANSPORTS.get(name)) is not None
    }
    both = (Note(_V1_SKIPS),) if versions >= {1, 2} else ()
    columns = (Column("stage"), Column("direction"), Column("what the driver does"))
    tables = [Table("The stages", columns, _MEANINGS, folded=True)]
    if account := probe_account(run):
        tables.append(account)
    return Section(
        "stages",
        _TITLE,
        notes=(Note(text), *both, *more),
        figures=figures,
        tables=tuple(tables),
    )


def probe_account(run: Run) -> Table | None:
    """Return the probe's account of itself: packets, lost records, and the cost of its clock.

    Counts are summed over repetitions and sizes; None if the results do not mention the probe.
    """
    lost = group_by(
        run.of(metrics.PROBE_LOST), lambda i: (i.accelerator, i.benchmark, i.transport, i.node)
    )
    if not lost:
        return None
    counted = {
        switched: group_by(
            (
                i
                for i in run.series
                if (p := metrics.Packets.parse(i.metric)) and p.switched is switched
            ),
            lambda i: (i.accelerator, i.benchmark, i.transport, i.node),
        )
        for switched in (False, True)
    }
    clocks = group_by(
        run.of(metrics.PROBE_CLOCK), lambda i: (i.accelerator, i.benchmark, i.transport, i.node)
    )
    rows = []
    for key, series in lost.items():
        accelerator, benchmark, transport, node = key
        totals = [sum(sum(i.values) for i in some.get(key, [])) for some in counted.values()]
        clock = [value for i in clocks.get(key, []) for value in i.values]
        rows.append(
            (
                benchmark,
                transport,
                node,
                *(units.integer(int(total)) for total in totals),
                units.integer(int(sum(sum(i.values) for i in series))),
                wording.work(statistics.median(clock), accelerator) if clock else units.ABSENT,
            )
        )
    return Table(
        "The probe's own account, over all repetitions and sizes. Every stage includes one clock "
        "reading, which is not subtracted",
        (
            Column("benchmark"),
            Column("transport"),
            Column("node"),
            Column("records", numeric=True),
            Column("switched out", numeric=True),
            Column("records lost", numeric=True),
            Column("one clock reading", numeric=True),
        ),
        tuple(rows),
        folded=True,
    )


def _subjects(run: Run) -> Iterator[_Subject]:
    for names, series in group_by(
        filter(is_packet_cost, run.series), lambda i: (i.accelerator, i.benchmark)
    ).items():
        for acknowledgements in (False, True):
            chosen = [i for i in series if is_acknowledgement(i.kind) == acknowledgements]
            rare = rare_classes((i.kind, n) for i in chosen if i.metric == SENT for n in i.values)
            chosen = [i for i in chosen if i.kind not in rare]
            figure = figure_of(chosen)
            entries = [
                (place, Row(transport, bar))
                for transport in series_order.transports(chosen)
                for place, drawn in bars(
                    [i for i in chosen if i.transport == transport], figure
                ).items()
                for bar in drawn
            ]
            if not entries:
                continue
            rows = group_by(entries, lambda entry: entry[0])
            yield _Subject(
                *names,
                acknowledgements=acknowledgements,
                figure=figure,
                repetitions=max(item.spread.count for item in chosen),
                places={
                    place: sorted((row for _, row in some), key=lambda row: row.bar.size)
                    for place, some in rows.items()
                },
                scale=StageScale.of((row.bar for _, row in entries), names[0]),
                rare=rare,
            )


def _figure(subject: _Subject) -> Figure:
    kind = "acknowledgements" if subject.acknowledgements else "packets"
    times = units.plural(subject.repetitions, "repetition")
    return Figure(
        slug=series_order.slug("stages", subject.benchmark, kind, subject.accelerator),
        title=f"Stages of {kind}: {subject.benchmark}",
        caption=(wording.COST[subject.figure] + f", mean over {times}.",),
        panels=tuple(
            stage_panel.panel(place.title, rows, place.direction, subject.scale)
            for place, rows in subject.places.items()
        ),
        legend=subject.scale.legend,
        tables=(
            *(
                _table(subject, direction)
                for direction in stage_table.BY_DIRECTION
                if any(place.direction == direction for place in subject.places)
            ),
            *_atypical(subject),
        ),
        accelerator=subject.accelerator,
        notes=(
            f"The driver works from left to right. {wording.FIGURES[subject.figure]} Packets whose "
            "task was switched out in between are not in it.",
            stage_panel.COLUMNS,
            *((without_rare(subject.rare),) if subject.rare else ()),
        ),
        folded=subject.acknowledgements,
    )


def _table(subject: _Subject, direction: str) -> Table:
    scale = subject.scale
    whole, verb = {
        name: (whole, verb)
        for (whole, (name, _)), verb in zip(
            stage_table.CAPSULES.items(), ("sent", "received"), strict=True
        )
    }[direction]
    places = [place for place in subject.places if place.direction == direction]
    measured = {
        cost.stage for place in places for row in subject.places[place] for cost in row.bar.costs
    }
    names = [name for name in stage_table.BY_DIRECTION[direction] if name in measured]
    work = [name for name in names if name not in stage_table.APART]
    apart = [name for name in names if name in stage_table.APART]
    waits = ""
    if accelerators.of(subject.accelerator).counts_instructions:
        mean = "mean, " if subject.figure == metrics.TYPICAL else ""
        waits = f" ({mean}{wording.time_unit('ns', subject.accelerator)})"
    rows = []
    for place in places:
        for row in subject.places[place]:
            costs = {cost.stage: cost.per_packet for cost in row.bar.costs}
            rows.append(
                (
                    place.title,
                    units.size(row.bar.size),
                    row.transport,
                    *(scale.text(costs.get(name), digits=4) for name in work),
                    scale.text(row.bar.total, digits=4),
                    scale.text(row.bar.capsule, digits=4),
                    *(scale.text(costs.get(name), digits=4) for name in apart),
                )
            )
    return Table(
        f"A packet {verb}, {subject.figure} {scale.unit}"
        + ("; queue and reply are no work on this packet and not in the sum" if apart else ""),
        (
            Column("packets"),
            Column("size", numeric=True),
            Column("transport"),
            *(Column(name, numeric=True) for name in work),
            Column("sum", numeric=True),
            Column(whole, numeric=True),
            *(Column(f"{name}{waits}", numeric=True) for name in apart),
        ),
        tuple(rows),
    )


def _atypical(subject: _Subject) -> Iterator[Table]:
    """Which stages have packets that are not typical, how many, and what they do to the mean."""
    scale = subject.scale
    rows = tuple(
        (
            place.title,
            units.size(row.bar.size),
            row.transport,
            cost.stage,
            scale.text(cost.cost, digits=4),
            scale.text(cost.mean, digits=4),
            units.integer(cost.packets),
            units.integer(cost.atypical),
            f"{cost.atypical / cost.packets:.1%}",
        )
        for place, some in subject.places.items()
        for row in some
        for cost in row.bar.costs
        if cost.atypical
    )
    if rows:
        yield Table(
            "Stages with packets that differ from the typical one by over an eighth, in "
            f"{scale.unit} per packet that passed the stage; over all repetitions",
            (
                Column("packets"),
                Column("size", numeric=True),
                Column("transport"),
                Column("stage"),
                Column("typical", numeric=True),
                Column("mean", numeric=True),
                Column("passed", numeric=True),
                Column("not typical", numeric=True),
                Column("share", numeric=True),
            ),
            rows,
            folded=True,
        )
