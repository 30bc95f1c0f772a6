# SPDX-License-Identifier: GPL-2.0-or-later
"""What a packet cost in each stage of the driver, at both ends, by message size: the figures."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rocelab.report import adapters, fmt, grouping, stage_panel, wording
from rocelab.report.figure import Column, Figure, Note, Section, Table
from rocelab.report.runfolder import Run
from rocelab.report.stage_panel import StageScale
from rocelab.report.stages import Bar, Place, bars, is_acknowledgement, is_packet_cost

_TITLE = "What a packet cost in the driver"
_MEANINGS = (
    ("wqe", "TX", "find the next work request and its address vector"),
    ("alloc", "TX", "allocate the packet's buffer"),
    ("bth", "TX", "write the BTH and the extended headers"),
    ("route", "TX", "find the route to the peer"),
    ("net", "TX", "write UDP and IP, or GRH, and Ethernet headers"),
    ("copy", "TX, RX", "copy the message between the program's memory and the packet"),
    ("icrc", "TX, RX", "compute or check the invariant CRC over the packet"),
    ("xmit", "TX", "IP output, neighbour and queueing discipline, up to the device"),
    ("parse", "RX", "check the headers and find the queue pair"),
    ("queue", "RX", "wait until the queue pair's task takes the packet: nobody works on it"),
    ("exec", "RX", "carry the packet out: responder or completer, without the stages beside it"),
    ("cqe", "RX", "post the completion"),
    ("reply", "RX", "send the answer (an ACK or data), which is also a packet sent"),
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
    # of what ran, not of what was planned
    elsewhere = adapters.no_stages(item.transport for item in run.series)
    more = (Note(elsewhere),) if elsewhere else ()
    if not figures:
        text = (
            "This run holds no stage costs: they come from rxestat on the instrumented driver, "
            "which sees RoCE packets of rxe only, and it measured none here."
        )
        return Section("stages", _TITLE, notes=(Note(text), *more))
    text = (
        "Each packet was timed inside the driver, stage by stage. Stages follow one another and do "
        "not overlap. Blue stages put headers on or check them (encapsulation: bth, route, net, "
        "icrc; decapsulation: parse, icrc), orange ones move memory, green ones are the driver's "
        "bookkeeping, violet hands the packet over."
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
    """Return what the probe says of itself: packets, records lost, and the cost of its clock.

    Counts are summed over repetitions and sizes; None when the results say nothing of the probe.
    """
    lost = grouping.by(
        run.of("probe.lost"), lambda i: (i.accelerator, i.benchmark, i.transport, i.node)
    )
    if not lost:
        return None
    counted = {
        name: grouping.by(
            (i for i in run.series if i.metric.startswith("packets.") and name(i.metric)),
            lambda i: (i.accelerator, i.benchmark, i.transport, i.node),
        )
        for name in (_is_count, _is_switched)
    }
    clocks = grouping.by(
        run.of("probe.clock"), lambda i: (i.accelerator, i.benchmark, i.transport, i.node)
    )
    rows = []
    for key, series in lost.items():
        accelerator, benchmark, transport, node = key
        totals = [sum(sum(i.values) for i in counted[name].get(key, [])) for name in counted]
        clock = [value for i in clocks.get(key, []) for value in i.values]
        rows.append(
            (
                benchmark,
                transport,
                node,
                *(fmt.grouped(int(total)) for total in totals),
                fmt.grouped(int(sum(sum(i.values) for i in series))),
                f"{fmt.number(statistics.median(clock))} {wording.time_unit('ns', accelerator)}"
                if clock
                else fmt.ABSENT,
            )
        )
    return Table(
        "The probe's own account, over all repetitions and sizes. Every stage contains one reading "
        "of the clock; figures are not netted of it",
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


def _is_switched(metric: str) -> bool:
    return metric.endswith(".switched")


def _is_count(metric: str) -> bool:
    return not _is_switched(metric)


def _subjects(run: Run) -> Iterator[_Subject]:
    for names, series in grouping.by(
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
    times = fmt.plural(subject.repetitions, "repetition")
    return Figure(
        slug=grouping.slug(
            "stages", subject.benchmark, subject.transport, what, subject.accelerator
        ),
        title=f"Stages: {subject.benchmark} over {subject.transport}"
        + (", acknowledgements" if subject.acknowledgements else ""),
        caption=(
            "Mean time of a packet in each stage, from left to right in the order in which the "
            f"driver works; mean over {times}, since means add up and medians do not. "
            + stage_panel.COLUMNS_CAPTION,
            wording.accelerator_caption(subject.accelerator),
        ),
        panels=tuple(
            stage_panel.panel(
                place.title,
                [(fmt.size(bar.size), bar) for bar in found],
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
            fmt.size(bar.size),
            cost.stage,
            number(cost.per_packet),
            number(cost.spread[0]),
            number(cost.spread[1]),
            number(cost.mean),
            number(cost.p50),
            number(cost.p99),
            fmt.grouped(cost.packets),
        )
        for place, found in subject.places.items()
        for bar in found
        for cost in bar.costs
    )
    return Table(
        f"Time by stage, in {subject.scale.unit}; per packet: over all packets of the bar; in the "
        "stage: over those that passed it; p50 and p99 of single packets are edges of histogram "
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
