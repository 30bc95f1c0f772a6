# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time per message or packet by context and owner: what transports cost the processors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rocelab import units
from rocelab.accelerators import INSTRUCTIONS, is_emulated
from rocelab.group_by import group_by
from rocelab.metrics import CPU_UTILIZATION, MARGINAL, Account, CpuPer
from rocelab.plans.benchmarks.perftest import PROC_STAT
from rocelab.plans.catalog import MPI_TOOLS
from rocelab.record.read import Run, Series
from rocelab.report import charts, palette, series_order, utilization_table, wording
from rocelab.report.figure import Column, Figure, Legend, Note, Panel, Section, Table

_TITLE = "CPU split"
_AMOUNTS = ("message", "packet")
_MEANING = (
    "Who worked in the kernel of each node: the benchmark's system calls (with page faults), the "
    "Soft RoCE driver, and the network stack. A program that polls counts its wait as user mode, "
    "so user mode is a number next to the bars. Divided by the messages on the wire in both "
    "directions, or, for an mpirun over many sizes, by the packets that the node sent and "
    "received. Other owners (timers, the probes, ssh) are only in the table. All figures contain "
    "their share of the start of the programs and of the probes: what one more message costs is "
    "less."
)
_MPI_START = (
    "Work of an MPI benchmark includes the start of mpirun and of the MPI library, divided by the "
    "messages: with few iterations, that is most of it."
)
_GROSS = "with start and probes"
_OF = {"message": "message on the wire", "packet": "packet that the node sent or received"}
LABELS = {
    ("benchmark", "user"): "benchmark, user mode",
    ("benchmark", "syscall"): "benchmark, system calls",
    ("rxe", "syscall"): "rxe, system calls",
    ("rxe", "kthread"): "rxe, kernel threads",
    ("rxe", "softirq"): "rxe, softirqs",
    ("network", "syscall"): "network, system calls",
    ("network", "kthread"): "network, kernel threads",
    ("network", "softirq"): "network, softirqs",
    ("network", "hardirq"): "network, interrupts",
    ("other", "kernel"): "work queues, scheduler, idle loop",
}
_FIGURES = {
    (CpuPer("packet").name, "kernel"): "all in the kernel, per packet",
    (CpuPer("packet").name, "communication"): "all, per packet",
    (CpuPer("mb").name, "kernel"): "all in the kernel, per MB",
    (CpuPer("mb").name, "communication"): "all, per MB",
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
    items = [i for i in run.series if i.kind in kinds and _account(i)]
    figures = tuple(
        _figure(accelerator, benchmark, amount, series, run)
        for (accelerator, benchmark), both in group_by(
            items, lambda i: (i.accelerator, i.benchmark)
        ).items()
        for amount, series in [_comparable(both)]
    )
    busy = utilization_table.tables(run)
    if not figures:
        meaning = Note(utilization_table.MEANING)
        return Section("cpu", _TITLE, notes=(meaning,), tables=busy) if busy else None
    ticks = any(item.metric == CPU_UTILIZATION and item.kind == PROC_STAT for item in run.series)
    mpi = any(item.tool in MPI_TOOLS for item in items)
    notes = (
        _MEANING,
        *((_MPI_START,) if mpi else ()),
        *((_TICKS,) if ticks else ()),
        *((utilization_table.MEANING,) if busy else ()),
    )
    return Section("cpu", _TITLE, notes=tuple(map(Note, notes)), figures=figures, tables=busy)


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
    account = Account.parse(series.metric)
    return None if account is None or "." in account.context else account


def _part(series: Series) -> tuple[str, str] | None:
    """(owner, context) of a part of the stack; None if it is not in the bars."""
    account = _account(series)
    if account is None:
        return None
    if series.kind == MARGINAL and account.owner == "other":
        return "other", "kernel"
    part = part_of(*account)
    return part if part in LABELS else None


def part_of(context: str, owner: str) -> tuple[str, str]:
    """(owner, context) under which the work of a context counts: its part of the stack."""
    if owner == "benchmark" and context in ("fault", "kthread"):
        context = "syscall"
    return owner, context


USER = ("benchmark", "user")


def kernel(series: Sequence[Series]) -> dict[tuple[str, str], float]:
    """Mean of each part of the kernel's work, in ns or instructions, in the order of the stack.

    Parts of several nodes are added. What one more message costs also has user mode: it is only
    measured where nobody polls.
    """
    whole = is_marginal(series)
    return {part: value for part, value in _means(series).items() if whole or part != USER}


def is_marginal(series: Iterable[Series]) -> bool:
    """Whether these are what one more message costs (docs/numbers.md)."""
    return any(item.kind == MARGINAL for item in series)


def user(series: Sequence[Series]) -> float:
    """Mean of the benchmark's user mode, in ns or instructions."""
    return _means(series).get(USER, 0.0)


def per_message(run: Run) -> list[Series]:
    """The accounts of single messages, by size, node, context and owner.

    Where the run has what one more message costs, only that.
    """
    accounts = [i for i in run.series if _account(i)]
    marginal = [i for i in accounts if i.kind == MARGINAL]
    return marginal or [i for i in accounts if i.kind == _kind("message")]


def legend(parts: Iterable[tuple[str, str]]) -> tuple[Legend, ...]:
    """The legend of these parts, in the order of the stack."""
    used = set(parts)
    return tuple(
        Legend(text, palette.CPU[part].light) for part, text in LABELS.items() if part in used
    )


def _means(series: Sequence[Series]) -> dict[tuple[str, str], float]:
    """Mean of each part, in the order of the stack."""
    sums = dict.fromkeys(LABELS, 0.0)
    for item in series:
        part = _part(item)
        if part is not None:
            sums[part] += item.spread.mean
    if is_marginal(series):  # noise below 0 has no bar, but stays in the total
        sums["other", "kernel"] += sum(value for value in sums.values() if value < 0)
    return {part: value for part, value in sums.items() if value > 0}


def _figure(
    accelerator: str, benchmark: str, amount: str, series: Sequence[Series], run: Run
) -> Figure:
    bars = {
        place: kernel(some)
        for place, some in group_by(series, lambda i: (i.transport, i.node, i.size)).items()
    }
    totals = [sum(parts.values()) for parts in bars.values()]
    factor, unit = wording.work_scale(totals, accelerator)
    times = units.plural(max(item.spread.count for item in series), "repetition")
    return Figure(
        slug=series_order.slug("cpu", benchmark, accelerator),
        title=f"{_word(unit)} of a {amount}, {_GROSS}: {benchmark}",
        caption=(f"Per {_OF[amount]}, mean over {times}.",),
        panels=tuple(
            _panel(node, some, amount, factor, unit, max(totals) / factor)
            for node, some in sorted(group_by(series, lambda i: i.node).items())
        ),
        legend=legend(part for parts in bars.values() for part in parts),
        tables=(_table(accelerator, benchmark, amount, series, run, factor, unit),),
        accelerator=accelerator,
        notes=wording.programs_notes(series),
    )


def _word(unit: str) -> str:
    return "Instructions" if unit == INSTRUCTIONS else "CPU time"


def _panel(
    node: str, members: Sequence[Series], amount: str, factor: float, unit: str, top: float
) -> Panel:
    bars = {
        (size, transport): some
        for (size, transport), some in sorted(
            group_by(members, lambda i: (i.size, i.transport)).items(),
            key=lambda entry: (entry[0][0], series_order.transport_rank(entry[0][1])),
        )
    }
    return Panel(
        node,
        stack(
            [(f"{units.size(size)} {name}", name, some) for (size, name), some in bars.items()],
            factor=factor,
            unit=unit,
            top=top,
            amount=amount,
        ),
        f"Work in the kernel of {node}, {unit} per {amount}. "
        + "; ".join(
            f"{name}, {units.size(size)}: "
            + ", ".join(
                f"{LABELS[part]} {units.number(value / factor)}"
                for part, value in kernel(some).items()
            )
            for (size, name), some in bars.items()
        )
        + ".",
    )


def stack(
    rows: Sequence[tuple[str, str, Sequence[Series]]],
    *,
    factor: float,
    unit: str,
    top: float,
    amount: str,
    width: int = charts.BAR_WIDTH,
) -> charts.Spec:
    """Return a bar for each row: its label, its transport, and the accounts that it adds up."""
    used = {part for _, _, some in rows for part in kernel(some)}
    return charts.stacks(
        [
            charts.Part(
                row=label,
                series=LABELS[part],
                value=value / factor,
                label=f"{transport}, {units.size(some[0].size)}, {LABELS[part]}: "
                f"{units.number(value / factor)} {unit}",
            )
            for label, transport, some in rows
            for part, value in kernel(some).items()
        ],
        rows=[label for label, _, _ in rows],
        series=[(text, palette.CPU[part].light) for part, text in LABELS.items() if part in used],
        x_title=wording.work_title("kernel CPU time", unit, amount),
        x_top=top,
        columns=_columns([some for _, _, some in rows], factor),
        width=width,
    )


def _columns(rows: Sequence[Sequence[Series]], factor: float) -> list[tuple[str, list[str]]]:
    sums = [units.number(sum(kernel(some).values()) / factor) for some in rows]
    if any(is_marginal(some) for some in rows):
        return [("total", sums)]
    return [("kernel", sums), ("user mode", [units.number(user(some) / factor) for some in rows])]


def _table(
    accelerator: str,
    benchmark: str,
    amount: str,
    series: Sequence[Series],
    run: Run,
    factor: float,
    unit: str,
) -> Table:
    """The mean of every owner and context and the sums, by transport and node."""
    here = [i for i in run.series if (i.accelerator, i.benchmark) == (accelerator, benchmark)]
    entries = [
        (item, f"{account.owner}, {account.context}", factor)
        for item in series
        if (account := _account(item))
    ]
    entries += [
        (item, _FIGURES[item.metric, item.kind], factor)
        for item in here
        if (item.metric, item.kind) in _FIGURES
    ]
    # a share of time is meaningless under emulation
    if not is_emulated(accelerator):
        entries += [
            (item, _UTILIZATION[item.kind], 1.0)
            for item in here
            if item.metric == CPU_UTILIZATION and item.kind in _UTILIZATION
        ]
    places = sorted(
        {(item.transport, item.node) for item, _, _ in entries},
        key=lambda place: (series_order.transport_rank(place[0]), place[1]),
    )
    rows: dict[tuple[int, str], dict[tuple[str, str], str]] = {}
    for item, label, scale in entries:
        row = rows.setdefault((item.size, label), {})
        row[item.transport, item.node] = units.number(item.spread.mean / scale, 4)
    labels = list(dict.fromkeys(label for _, label, _ in entries))
    return Table(
        f"{_word(unit)} by owner and context, per {amount}, {_GROSS}, mean"
        + (f", in {unit}" if unit != INSTRUCTIONS else ""),
        (
            Column("size", numeric=True),
            Column("owner and context"),
            *(
                Column(f"{transport} {node}", numeric=True, transport=transport)
                for transport, node in places
            ),
        ),
        tuple(
            (units.size(size), label, *(row.get(place, units.ABSENT) for place in places))
            for (size, label), row in sorted(
                rows.items(), key=lambda entry: (entry[0][0], labels.index(entry[0][1]))
            )
        ),
    )
