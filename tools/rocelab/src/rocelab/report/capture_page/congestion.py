# SPDX-License-Identifier: GPL-2.0-or-later
"""Congestion: ECN marks, notifications, and who paused whom for how long."""

from __future__ import annotations

from typing import Any

from rocelab import units
from rocelab.capture.picture import OverTime
from rocelab.report import palette, time_charts
from rocelab.report.capture_page.wording import duration, ends, printable
from rocelab.report.figure import Column, Figure, Legend, Note, Panel, Section, Table

_LINES = (("ce", "CE marks", palette.MEMORY.light), ("cnp", "CNPs", palette.HEADERS.light))
_MAX_ROWS = 40
_BITS_PER_QUANTUM = 512
_RATES = (10, 25, 100, 400)
"""Gbit/s that requested times are given for: a capture does not say how fast its link is."""


def section(result: dict[str, Any], over_time: OverTime) -> Section:
    """Return the section; without congestion it says so."""
    congestion = result["congestion"]
    figures = (_figure(over_time),) if any(sum(over_time.sums[name]) for name, *_ in _LINES) else ()
    tables = tuple(table for table in (_pauses(congestion), _ways(result)) if table.rows)
    ecn = congestion["ecn"]
    able = ecn["ect0"] + ecn["ect1"] + ecn["ce"]
    note = Note(
        f"{units.integer(ecn['ce'])} of {units.integer(able)} ECN-capable packets are marked CE; "
        f"{units.integer(result['opcodes'].get('CNP', 0))} CNPs, "
        f"{units.integer(congestion['pfc'])} PFC and {units.integer(congestion['pause'])} PAUSE "
        "frames."
    )
    return Section("congestion", "Congestion", notes=(note,), figures=figures, tables=tables)


def _figure(over_time: OverTime) -> Figure:
    places = range(len(over_time.sums["ce"]))
    span = over_time.step_ns * len(places)
    factor, unit = units.scale("ns", [span])
    shown = [line for line in _LINES if sum(over_time.sums[line[0]])]
    chart = time_charts.lines(
        [edge / factor for edge in over_time.edges_ns],
        [time_charts.Line(label, colour, over_time.sums[name]) for name, label, colour in shown],
        x_title=f"time after the first frame ({unit})",
        y_title="packets per interval",
        x_top=span / factor,
    )
    rows = [
        (
            units.number(over_time.step_ns * at / factor),
            *(units.integer(over_time.sums[name][at]) for name, *_ in shown),
        )
        for at in places
        if any(over_time.sums[name][at] for name, *_ in shown)
    ]
    sums = ", ".join(
        f"{units.integer(sum(over_time.sums[name]))} {label}" for name, label, _ in shown
    )
    return Figure(
        slug="marks",
        title="CE marks and CNPs",
        caption=(f"In intervals of {units.quantity(over_time.step_ns, 'ns')}.",),
        panels=(Panel("", chart, f"Over {units.quantity(span, 'ns')}: {sums}."),),
        legend=tuple(Legend(label, colour) for _, label, colour in shown),
        tables=(
            Table(
                "Intervals with marks",
                (
                    Column(f"from ({unit})", numeric=True),
                    *(Column(label, numeric=True) for _, label, _ in shown),
                ),
                tuple(rows),
            ),
        ),
        accelerator="",
        columns=1,
        scrolls=True,
    )


def _pauses(congestion: dict[str, Any]) -> Table:
    ranked = sorted(congestion["pauses"], key=lambda row: -row["quanta"])
    left = len(ranked) - _MAX_ROWS
    several = len({row["file"] for row in ranked}) > 1
    return Table(
        "Who paused the link. Requested: the sum of the frames' times, if the link has that speed. "
        "Paused: from XOFF to XON, at most (a time that ran out before is not seen)"
        + (f". {left} more are left out" if left > 0 else ""),
        (
            Column("sender", name=True),
            Column("class"),
            Column("XOFF", numeric=True),
            Column("XON", numeric=True),
            *(Column(f"requested at {rate} Gbit/s", numeric=True) for rate in _RATES),
            Column("paused", numeric=True),
            Column("first frame", numeric=True),
        ),
        tuple(
            (
                row["source"],
                "all (802.3x)" if row["class"] is None else str(row["class"]),
                units.integer(row["xoff"]),
                units.integer(row["xon"]),
                *(duration(row["quanta"] * _BITS_PER_QUANTUM // rate) for rate in _RATES),
                duration(row["paused_at_most_ns"]) if row["xon"] else units.ABSENT,
                (f"{printable(row['file'])}: " if several else "") + str(row["packet"]),
            )
            for row in ranked[:_MAX_ROWS]
        ),
    )


def _ways(result: dict[str, Any]) -> Table:
    ways = [
        (one, way)
        for one in result["connections"]
        for way in one["directions"]
        if way["ce"] or way["cnp"]
    ]
    ranked = sorted(ways, key=lambda row: -(row[1]["ce"] + row[1]["cnp"]))
    left = len(ranked) - _MAX_ROWS
    return Table(
        "Whose packets are marked, and who notifies"
        + (f". {units.integer(left)} more directions are left out" if left > 0 else ""),
        (
            Column("id", numeric=True),
            Column("from"),
            Column("to"),
            Column("packets", numeric=True),
            Column("CE", numeric=True),
            Column("CNPs sent", numeric=True),
            Column("least gap", numeric=True),
        ),
        tuple(
            (
                str(one["id"]),
                *ends(one, way["from"]),
                units.integer(way["packets"]),
                units.integer(way["ce"]),
                units.integer(way["cnp"]),
                duration(way["cnp_min_gap_ns"]),
            )
            for one, way in ranked[:_MAX_ROWS]
        ),
    )
