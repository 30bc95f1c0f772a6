# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of a packet's cost in each driver stage, at both ends, by message size."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rocelab import metrics, stage_table, units
from rocelab.group_by import group_by
from rocelab.record.read import Run
from rocelab.record.stage_costs import Bar, Place, bars, is_acknowledgement, is_packet_cost
from rocelab.report import adapter_tables, series_order, stage_panel, wording
from rocelab.report.figure import Column, Figure, Note, Section, Table
from rocelab.report.stage_panel import StageScale

_TITLE = "What a packet cost in the driver"
_CAPSULES = "; ".join(
    f"{name}: {', '.join(parts)}" for name, (_, parts) in stage_table.CAPSULES.items()
)
_MEANINGS = tuple(
    (stage.name, stage.direction.upper(), stage.meaning) for stage in stage_table.STAGES
)


@dataclass(frozen=True)
class _Subject:
    """What one figure is about."""

    accelerator: str
    benchmark: str
    transport: str
    acknowledgements: bool
    repetitions: int
    places: Mapping[Place, Sequence[Bar]]
    scale: StageScale


def section(run: Run) -> Section:
    """Return the section on stages: a figure per benchmark and transport, answers apart."""
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
    columns = (Column("stage"), Column("direction"), Column("what the driver does"))
    tables = [Table("The stages", columns, _MEANINGS)]
    if account := probe_account(run):
        tables.append(account)
    return Section(
        "stages",
        _TITLE,
        notes=(Note(text), *more),
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
                *(units.grouped(int(total)) for total in totals),
                units.grouped(int(sum(sum(i.values) for i in series))),
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
    )


def _subjects(run: Run) -> Iterator[_Subject]:
    for names, series in group_by(
        filter(is_packet_cost, run.series), lambda i: (i.accelerator, i.benchmark, i.transport)
    ).items():
        for acknowledgements in (False, True):
            chosen = [i for i in series if is_acknowledgement(i.kind) == acknowledgements]
            places = bars(chosen)
            if places:
                yield _Subject(
                    *names,
                    acknowledgements=acknowledgements,
                    repetitions=max(item.spread.count for item in chosen),
                    places=places,
                    scale=StageScale.of(places.values(), names[0]),
                )


def _figure(subject: _Subject) -> Figure:
    what = "acknowledgements" if subject.acknowledgements else "packets"
    times = units.plural(subject.repetitions, "repetition")
    return Figure(
        slug=series_order.slug(
            "stages", subject.benchmark, subject.transport, what, subject.accelerator
        ),
        title=f"Stages: {subject.benchmark} over {subject.transport}"
        + (", acknowledgements" if subject.acknowledgements else ""),
        caption=(
            "Mean cost of a packet in each stage, from left to right in the order in which the "
            f"driver works; mean over {times}, because means add up and medians do not. "
            + stage_panel.columns_caption(subject.accelerator),
            wording.accelerator_caption(subject.accelerator),
        ),
        panels=tuple(
            stage_panel.panel(
                place.title,
                [(units.size(bar.size), bar) for bar in found],
                place.direction,
                subject.scale,
            )
            for place, found in subject.places.items()
        ),
        legend=subject.scale.legend,
        table=_table(subject),
        folded=subject.acknowledgements,
    )


def _table(subject: _Subject) -> Table:
    def number(value: float | None) -> str:
        return subject.scale.text(value, digits=4)

    rows = tuple(
        (
            place.node,
            place.direction,
            place.opcode_class,
            units.size(bar.size),
            cost.stage,
            number(cost.per_packet),
            number(cost.spread[0]),
            number(cost.spread[1]),
            number(cost.mean),
            number(cost.p50),
            number(cost.p99),
            units.grouped(cost.packets),
        )
        for place, found in subject.places.items()
        for bar in found
        for cost in bar.costs
    )
    return Table(
        f"Time by stage, in {subject.scale.unit}; per packet: over all packets of the bar; in the "
        "stage: over packets that passed it; p50 and p99 of single packets are edges of histogram "
        "buckets",
        (
            Column("node"),
            Column("direction"),
            Column("packets"),
            Column("size", numeric=True),
            Column("stage"),
            Column("per packet, mean", numeric=True),
            Column("smallest", numeric=True),
            Column("largest", numeric=True),
            Column("in the stage, mean", numeric=True),
            Column("p50", numeric=True),
            Column("p99", numeric=True),
            Column("packets measured", numeric=True),
        ),
        rows,
    )
