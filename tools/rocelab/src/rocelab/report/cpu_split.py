# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time of a message or packet by context and owner: what transports cost the processors."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rocelab.accelerators import is_emulated
from rocelab.bench.perftest import PROC_STAT
from rocelab.report import charts, fmt, grouping, palette, wording
from rocelab.report.figure import Column, Figure, Legend, Note, Panel, Section, Table
from rocelab.report.runfolder import Run, Series

_TITLE = "CPU split"
_AMOUNTS = ("message", "packet")
_METRIC = re.compile(r"cpu\.[a-z]+\.[a-z]+", re.ASCII)
"""Context and owner."""
_MEANING = (
    "What the processors of each node did while messages went to and fro: the benchmark's own "
    "time (it polls, so all time that nobody else wants is in its user mode), the Soft RoCE "
    "driver's in system calls, kernel threads and softirqs, and the network stack's. Divided by "
    "the messages that the wire carried, in both directions; or, where an mpirun went through many "
    "sizes, by the packets that the node sent and received, the mpirun's start included. Time of "
    "others (timers, the probes, ssh) is not in the bars; the table has it. The probe's own cost "
    "is in all of them."
)
_OF = {"message": "message on the wire", "packet": "packet that the node sent or received"}
_LABELS = {
    ("benchmark", "user"): "benchmark, user mode",
    ("benchmark", "syscall"): "benchmark, system calls",
    ("rxe", "syscall"): "rxe, system calls",
    ("rxe", "kthread"): "rxe, kernel threads",
    ("rxe", "softirq"): "rxe, softirqs",
    ("network", "syscall"): "network, system calls",
    ("network", "kthread"): "network, kernel threads",
    ("network", "softirq"): "network, softirqs",
    ("network", "hardirq"): "network, interrupts",
}
_FIGURES = {
    ("cpu.per_packet", "kernel"): "kernel time per packet",
    ("cpu.per_packet", "communication"): "all time per packet",
    ("cpu.per_mb", "kernel"): "kernel time per MB",
    ("cpu.per_mb", "communication"): "all time per MB",
}
_UTILIZATION = {
    "per_core": "utilization per core (0 to 1, not a time)",
    PROC_STAT: "the same by perftest's --cpu_util (0 to 1, not a time)",
}
_TICKS = (
    "perftest's --cpu_util stands beside rxecpu's utilization and differs from it: it comes from "
    "/proc/stat, where each tick goes whole to what runs at that moment; its window is the "
    "measured loop, not the processes' whole lives; it is of the whole machine, whoever else ran; "
    "and a benchmark that polls keeps its processor busy whatever the transport costs."
)


def section(run: Run) -> Section | None:
    """Return the section, a figure per accelerator and benchmark; None without rxecpu."""
    kinds = [_kind(amount) for amount in _AMOUNTS]
    found = [i for i in run.series if i.kind in kinds and _METRIC.fullmatch(i.metric)]
    figures = tuple(
        _figure(accelerator, benchmark, amount, series, run)
        for (accelerator, benchmark), both in grouping.by(
            found, lambda i: (i.accelerator, i.benchmark)
        ).items()
        for amount, series in [_comparable(both)]
    )
    if not figures:
        return None
    ticks = any(item.metric == "cpu.utilization" and item.kind == PROC_STAT for item in run.series)
    notes = (_MEANING, _TICKS) if ticks else (_MEANING,)
    return Section("cpu", _TITLE, notes=tuple(map(Note, notes)), figures=figures)


def _kind(amount: str) -> str:
    return f"per_{amount}"


def _comparable(series: Sequence[Series]) -> tuple[str, list[Series]]:
    """Take what every bar can be divided by: messages, or where some have none, packets."""
    by_kind = grouping.by(series, lambda i: i.kind)
    bars = {
        amount: {(i.transport, i.node, i.size) for i in by_kind.get(_kind(amount), ())}
        for amount in _AMOUNTS
    }
    amount = "message" if bars["message"] >= bars["packet"] else "packet"
    return amount, list(by_kind[_kind(amount)])


def _part(series: Series) -> tuple[str, str] | None:
    """(owner, context) of a part of the stack; None: it is not in the bars."""
    _, context, owner = series.metric.split(".")
    if owner == "benchmark" and context in ("fault", "kthread"):
        context = "syscall"
    return (owner, context) if (owner, context) in _LABELS else None


def _means(series: Sequence[Series]) -> dict[tuple[str, str], float]:
    """Mean ns of each part, in the order of the stack."""
    sums = dict.fromkeys(_LABELS, 0.0)
    for item in series:
        part = _part(item)
        if part is not None:
            sums[part] += item.spread.mean
    return {part: value for part, value in sums.items() if value > 0}


def _figure(
    accelerator: str, benchmark: str, amount: str, series: Sequence[Series], run: Run
) -> Figure:
    bars = grouping.by(series, lambda i: (i.transport, i.node, i.size))
    totals = [sum(_means(members).values()) for members in bars.values()]
    factor, unit = fmt.scale("ns", totals)
    unit = wording.time_unit(unit, accelerator)
    top = max(totals) / factor
    places = grouping.by(series, lambda i: (i.transport, i.node))
    ordered = sorted(places.items(), key=lambda e: (grouping.transport_rank(e[0][0]), e[0][1]))
    times = fmt.plural(max(item.spread.count for item in series), "repetition")
    seen = {part for members in bars.values() for part in _means(members)}
    used = [part for part in _LABELS if part in seen]
    return Figure(
        slug=grouping.slug("cpu", benchmark, accelerator),
        title=f"CPU time of a {amount}: {benchmark}",
        caption=(
            f"CPU time by context and owner, per {_OF[amount]}; mean over {times}, since "
            "means add up and medians do not. “kernel” is without user mode; "
            "page faults are among the benchmark's system calls.",
            wording.programs_caption(series),
            wording.accelerator_caption(accelerator),
        ),
        panels=tuple(
            _panel(f"{transport}, on {node}", members, used, amount, factor, unit, top)
            for (transport, node), members in ordered
        ),
        legend=tuple(Legend(_LABELS[part], palette.CPU[part].light) for part in used),
        table=_table(accelerator, benchmark, amount, series, run, factor, unit),
    )


def _panel(
    title: str,
    members: Sequence[Series],
    used: Sequence[tuple[str, str]],
    amount: str,
    factor: float,
    unit: str,
    top: float,
) -> Panel:
    by_size = {
        size: _means(some) for size, some in sorted(grouping.by(members, lambda i: i.size).items())
    }
    rows = [fmt.size(size) for size in by_size]
    parts = [
        charts.Part(
            row=fmt.size(size),
            series=_LABELS[part],
            value=value / factor,
            label=f"{_LABELS[part]}, {fmt.size(size)}: {fmt.number(value / factor)} {unit}",
        )
        for size, means in by_size.items()
        for part, value in means.items()
    ]
    user = ("benchmark", "user")
    columns = [
        ("all", [fmt.number(sum(means.values()) / factor) for means in by_size.values()]),
        (
            "kernel",
            [
                fmt.number((sum(means.values()) - means.get(user, 0.0)) / factor)
                for means in by_size.values()
            ],
        ),
    ]
    chart = charts.stacks(
        parts,
        rows=rows,
        series=[(_LABELS[part], palette.CPU[part].light) for part in used],
        x_title=f"CPU time a {amount} ({unit})",
        x_top=top,
        columns=columns,
    )
    words = "; ".join(
        f"{fmt.size(size)}: "
        + ", ".join(f"{_LABELS[part]} {fmt.number(v / factor)}" for part, v in means.items())
        for size, means in by_size.items()
    )
    return Panel(title, chart, f"{title}, {unit} a {amount}. {words}.")


def _table(
    accelerator: str,
    benchmark: str,
    amount: str,
    series: Sequence[Series],
    run: Run,
    factor: float,
    unit: str,
) -> Table:
    """Every account, and what the time comes to per packet and MB."""
    here = [i for i in run.series if (i.accelerator, i.benchmark) == (accelerator, benchmark)]
    rows = [
        (item, f"{item.metric.split('.')[2]}, {item.metric.split('.')[1]}, per {amount}", factor)
        for item in series
    ]
    rows += [
        (item, _FIGURES[item.metric, item.kind], factor)
        for item in here
        if (item.metric, item.kind) in _FIGURES
    ]
    # a share of time: not of emulated time
    if not is_emulated(accelerator):
        rows += [
            (item, _UTILIZATION[item.kind], 1.0)
            for item in here
            if item.metric == "cpu.utilization" and item.kind in _UTILIZATION
        ]
    rows.sort(key=lambda row: (grouping.transport_rank(row[0].transport), row[0].node, row[0].size))
    return Table(
        f"CPU time, in {unit}",
        (
            Column("transport"),
            Column("node"),
            Column("size", numeric=True),
            Column("owner and context"),
            *grouping.SPREAD_COLUMNS,
        ),
        tuple(
            (
                item.transport,
                item.node,
                fmt.size(item.size),
                label,
                *grouping.spread_cells(item, scale),
            )
            for item, label, scale in rows
        ),
    )
