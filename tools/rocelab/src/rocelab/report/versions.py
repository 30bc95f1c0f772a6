# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare RoCE v1 with RoCE v2, stage by stage, on the same driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rocelab import units
from rocelab.group_by import group_by
from rocelab.plans.catalog import TRANSPORTS
from rocelab.record.read import Run
from rocelab.record.stage_costs import Bar, Place, bars, is_acknowledgement, is_packet_cost
from rocelab.report import headers, series_order, stage_panel, wording
from rocelab.report.figure import Column, Figure, Note, Section, Table
from rocelab.report.stage_panel import StageScale

_V1, _V2 = (
    next(name for name, known in TRANSPORTS.items() if known.is_rxe and known.roce == version)
    for version in (1, 2)
)
_PREFERRED = frozenset({64, 1024, 4096})
"""Sizes that show the difference best; others are drawn only if none of these ran."""


@dataclass(frozen=True)
class _Pair:
    accelerator: str
    benchmark: str
    places: Mapping[Place, Sequence[tuple[Bar, Bar]]]
    """Bars of v1 and v2 at the same size, by place."""


def section(run: Run) -> Section | None:
    """Return the section that compares the versions; None if the run lacks one of them."""
    pairs = list(_pairs(run))
    if not pairs:
        return None
    return Section(
        "versions",
        "RoCE v1 and RoCE v2",
        notes=(
            Note(
                "Both versions ran on the same driver and nodes; only the encapsulation differs: "
                "v1 is a GRH in an Ethernet frame, v2 is UDP in IP. Part of the difference is what "
                "v1 bypasses: it skips routing and netfilter. It also has no UDP source port by "
                "which switches and receive queues could spread flows."
            ),
        ),
        figures=tuple(_figure(pair) for pair in pairs),
        tables=tuple(_header_table(run)),
    )


def _pairs(run: Run) -> Iterator[_Pair]:
    groups = group_by(
        (i for i in run.series if is_packet_cost(i) and not is_acknowledgement(i.kind)),
        lambda i: (i.accelerator, i.benchmark),
    )
    for (accelerator, benchmark), series in groups.items():
        one, two = (
            bars([item for item in series if item.transport == name]) for name in (_V1, _V2)
        )
        places = {place: _matched(one[place], two[place]) for place in one if place in two}
        places = {place: found for place, found in places.items() if found}
        if places:
            yield _Pair(accelerator, benchmark, places)


def _matched(one: Sequence[Bar], two: Sequence[Bar]) -> list[tuple[Bar, Bar]]:
    other = {bar.size: bar for bar in two}
    both = [(bar, other[bar.size]) for bar in one if bar.size in other]
    return [pair for pair in both if pair[0].size in _PREFERRED] or both


def _figure(pair: _Pair) -> Figure:
    every = [bar for found in pair.places.values() for both in found for bar in both]
    scale = StageScale.of([every], pair.accelerator)
    return Figure(
        slug=series_order.slug("versions", pair.benchmark, pair.accelerator),
        title=f"RoCE v1 and v2: {pair.benchmark}",
        caption=(
            "Mean cost of a packet in each stage over rxe-v1 and rxe-v2, to one scale. v1 skips "
            "routing and netfilter. " + stage_panel.columns_caption(pair.accelerator),
            wording.accelerator_caption(pair.accelerator),
        ),
        panels=tuple(
            stage_panel.panel(
                place.title,
                [
                    (f"{units.size(bar.size)} {version}", bar)
                    for both in found
                    for version, bar in zip(("v1", "v2"), both, strict=True)
                ],
                place.direction,
                scale,
            )
            for place, found in pair.places.items()
        ),
        legend=scale.legend,
        table=_table(pair, scale),
    )


def _table(pair: _Pair, scale: StageScale) -> Table:
    rows = []
    for place, found in pair.places.items():
        for one, two in found:
            names = dict.fromkeys(cost.stage for bar in (one, two) for cost in bar.costs)
            for name in names:
                v1, v2 = (
                    cost.per_packet if (cost := bar.cost(name)) else None for bar in (one, two)
                )
                rows.append(_row(place, one.size, name, v1, v2, scale))
            rows.append(_row(place, one.size, "sum of work", one.total, two.total, scale))
            capsule = "encapsulation" if place.direction == "tx" else "decapsulation"
            rows.append(_row(place, one.size, capsule, one.capsule, two.capsule, scale))
    return Table(
        f"Mean cost of a packet, in {scale.unit}",
        (
            Column("node"),
            Column("direction"),
            Column("packets"),
            Column("size", numeric=True),
            Column("stage"),
            Column("v1", numeric=True),
            Column("v2", numeric=True),
            Column("v2 \N{MINUS SIGN} v1", numeric=True),
        ),
        tuple(rows),
    )


def _row(
    place: Place, size: int, name: str, v1: float | None, v2: float | None, scale: StageScale
) -> tuple[str, ...]:
    difference = None if v1 is None or v2 is None else v2 - v1
    return (
        place.node,
        place.direction,
        place.opcode_class,
        units.size(size),
        name,
        *(scale.text(value, digits=4) for value in (v1, v2, difference)),
    )


def _header_table(run: Run) -> Iterator[Table]:
    found = {
        (f.series.accelerator, f.series.benchmark, f.series.size, f.series.transport): f
        for f in headers.frames(run)
    }
    rows = [
        (
            benchmark,
            units.size(size),
            units.number(one.headers, 4),
            units.number(two.headers, 4),
            f"{one.efficiency:.2%}",
            f"{two.efficiency:.2%}",
        )
        for (accelerator, benchmark, size, transport), one in found.items()
        if transport == _V1 and (two := found.get((accelerator, benchmark, size, _V2))) is not None
    ]
    if rows:
        yield Table(
            "Header bytes of a data frame, and the message's share of its bytes",
            (
                Column("benchmark"),
                Column("size", numeric=True),
                Column("header bytes, v1", numeric=True),
                Column("header bytes, v2", numeric=True),
                Column("efficiency, v1", numeric=True),
                Column("efficiency, v2", numeric=True),
            ),
            tuple(rows),
        )
