# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time per message or packet by context and owner: what transports cost the processors."""

from __future__ import annotations

from collections.abc import Sequence

from rocelab import units
from rocelab.accelerators import INSTRUCTIONS, is_emulated
from rocelab.group_by import group_by
from rocelab.metrics import CPU_UTILIZATION, Account, CpuPer
from rocelab.plans.benchmarks.perftest import PROC_STAT
from rocelab.record.read import Run, Series
from rocelab.report import charts, palette, series_order, wording
from rocelab.report.figure import Column, Figure, Legend, Note, Panel, Section, Table

_TITLE = "CPU split"
_AMOUNTS = ("message", "packet")
_MEANING = (
    "What each node's processors did while messages were exchanged: the time of the benchmark "
    "itself (it polls, so otherwise idle time is in its user mode), of the Soft RoCE driver in "
    "system calls, kernel threads and softirqs, and of the network stack. The time is divided by "
    "the number of messages on the wire in both directions, or, for an mpirun over many sizes, by "
    "the number of packets that the node sent and received, including the mpirun's start. Time of "
    "other owners (timers, the probes, ssh) is only in the table, not in the bars. All of them "
    "include the probe's cost."
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
    (CpuPer("packet").name, "kernel"): "kernel time per packet",
    (CpuPer("packet").name, "communication"): "all time per packet",
    (CpuPer("mb").name, "kernel"): "kernel time per MB",
    (CpuPer("mb").name, "communication"): "all time per MB",
}
_UTILIZATION = {
    "per_core": "utilization per core (0 to 1, not a time)",
    PROC_STAT: "utilization by perftest's --cpu_util (0 to 1, not a time)",
}
_TICKS = (
    "perftest's --cpu_util differs from rxecpu's utilization. It comes from /proc/stat, which "
    "charges each tick to whatever runs at that moment. It covers the measured loop, not the "
    "processes' whole lives, and the whole machine, including other processes. A benchmark that "
    "polls keeps its processor busy whatever the transport costs."
)


def section(run: Run) -> Section | None:
    """Return the section, a figure per accelerator and benchmark; None without rxecpu."""
    kinds = [_kind(amount) for amount in _AMOUNTS]
    found = [i for i in run.series if i.kind in kinds and _account(i)]
    figures = tuple(
        _figure(accelerator, benchmark, amount, series, run)
        for (accelerator, benchmark), both in group_by(
            found, lambda i: (i.accelerator, i.benchmark)
        ).items()
        for amount, series in [_comparable(both)]
    )
    if not figures:
        return None
    ticks = any(item.metric == CPU_UTILIZATION and item.kind == PROC_STAT for item in run.series)
    notes = (_MEANING, _TICKS) if ticks else (_MEANING,)
    return Section("cpu", _TITLE, notes=tuple(map(Note, notes)), figures=figures)


def _kind(amount: str) -> str:
    return f"per_{amount}"


def _comparable(series: Sequence[Series]) -> tuple[str, list[Series]]:
    """Choose the divisor that all bars have: messages, or packets if some have no messages."""
    by_kind = group_by(series, lambda i: i.kind)
    bars = {
        amount: {(i.transport, i.node, i.size) for i in by_kind.get(_kind(amount), ())}
        for amount in _AMOUNTS
    }
    amount = "message" if bars["message"] >= bars["packet"] else "packet"
    return amount, list(by_kind[_kind(amount)])


def _account(series: Series) -> Account | None:
    """Context and owner; None for another metric, and for softirqs by kind."""
    found = Account.parse(series.metric)
    return None if found is None or "." in found.context else found


def _part(series: Series) -> tuple[str, str] | None:
    """(owner, context) of a part of the stack; None if it is not in the bars."""
    account = _account(series)
    if account is None:
        return None
    context, owner = account
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
    bars = group_by(series, lambda i: (i.transport, i.node, i.size))
    totals = [sum(_means(members).values()) for members in bars.values()]
    factor, unit = wording.work_scale(totals, accelerator)
    top = max(totals) / factor
    places = group_by(series, lambda i: (i.transport, i.node))
    ordered = sorted(places.items(), key=lambda e: (series_order.transport_rank(e[0][0]), e[0][1]))
    times = units.plural(max(item.spread.count for item in series), "repetition")
    seen = {part for members in bars.values() for part in _means(members)}
    used = [part for part in _LABELS if part in seen]
    return Figure(
        slug=series_order.slug("cpu", benchmark, accelerator),
        title=f"{_word(unit)} of a {amount}: {benchmark}",
        caption=(
            f"{_word(unit)} by context and owner, per {_OF[amount]}; mean over {times}, because "
            "means add up and medians do not. “kernel” excludes user mode; "
            "page faults count as the benchmark's system calls.",
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


def _word(unit: str) -> str:
    return "Instructions" if unit == INSTRUCTIONS else "CPU time"


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
        size: _means(some) for size, some in sorted(group_by(members, lambda i: i.size).items())
    }
    rows = [units.size(size) for size in by_size]
    parts = [
        charts.Part(
            row=units.size(size),
            series=_LABELS[part],
            value=value / factor,
            label=f"{_LABELS[part]}, {units.size(size)}: {units.number(value / factor)} {unit}",
        )
        for size, means in by_size.items()
        for part, value in means.items()
    ]
    user = ("benchmark", "user")
    columns = [
        ("all", [units.number(sum(means.values()) / factor) for means in by_size.values()]),
        (
            "kernel",
            [
                units.number((sum(means.values()) - means.get(user, 0.0)) / factor)
                for means in by_size.values()
            ],
        ),
    ]
    chart = charts.stacks(
        parts,
        rows=rows,
        series=[(_LABELS[part], palette.CPU[part].light) for part in used],
        x_title=wording.work_title("CPU time", unit, amount),
        x_top=top,
        columns=columns,
    )
    words = "; ".join(
        f"{units.size(size)}: "
        + ", ".join(f"{_LABELS[part]} {units.number(v / factor)}" for part, v in means.items())
        for size, means in by_size.items()
    )
    return Panel(title, chart, f"{title}, {unit} per {amount}. {words}.")


def _table(
    accelerator: str,
    benchmark: str,
    amount: str,
    series: Sequence[Series],
    run: Run,
    factor: float,
    unit: str,
) -> Table:
    """The time of every owner and context, and the sums per packet and MB."""
    here = [i for i in run.series if (i.accelerator, i.benchmark) == (accelerator, benchmark)]
    rows = [
        (item, f"{account.owner}, {account.context}, per {amount}", factor)
        for item in series
        if (account := _account(item))
    ]
    rows += [
        (item, _FIGURES[item.metric, item.kind], factor)
        for item in here
        if (item.metric, item.kind) in _FIGURES
    ]
    # a share of time is meaningless under emulation
    if not is_emulated(accelerator):
        rows += [
            (item, _UTILIZATION[item.kind], 1.0)
            for item in here
            if item.metric == CPU_UTILIZATION and item.kind in _UTILIZATION
        ]
    rows.sort(
        key=lambda row: (series_order.transport_rank(row[0].transport), row[0].node, row[0].size)
    )
    return Table(
        f"{_word(unit)}, in {unit}" if unit != INSTRUCTIONS else _word(unit),
        (
            Column("transport"),
            Column("node"),
            Column("size", numeric=True),
            Column("owner and context"),
            *series_order.SPREAD_COLUMNS,
        ),
        tuple(
            (
                item.transport,
                item.node,
                units.size(item.size),
                label,
                *series_order.spread_cells(item, scale),
            )
            for item, label, scale in rows
        ),
    )
