# SPDX-License-Identifier: GPL-2.0-or-later
"""Print what no stage of a run covers, and what it grows with."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rocelab.accelerators import is_emulated
from rocelab.correlate.fit import FEWEST_SIZES, Estimate
from rocelab.correlate.fit_subjects import CPU, CPU_WITH_START, PACKETS, Subject, Value, subjects
from rocelab.plans.plan import ENOUGH_REPETITIONS
from rocelab.record import read
from rocelab.terminal.printable import printable


def show(run: Path, console: Console) -> None:
    """Print the rest of each benchmark and size, and its fits."""
    frame = read.results(run)
    columns = (
        "accelerator", "tool", "test", "transport", "size", "repetition", "node", "metric", "kind",
        "value",
    )  # fmt: skip
    # what all sizes of an mpirun share, such as its packets, belongs to no size
    sized = frame.filter(pl.col("size").is_not_null())
    benchmarks = subjects(Value(*row) for row in sized.select(columns).iter_rows())
    if not benchmarks:
        return
    times = _table("Time per message, µs; rest: what no stage covers", "benchmark")
    amount = CPU if any(one.mean(CPU) for one in benchmarks) else CPU_WITH_START
    for name in ("bytes", "packets", "measured", "stages", "rest", amount):
        times.add_column(name, justify="right", no_wrap=True)
    lines = _table("rest = base + factor x amount, relative weights", "benchmark", "message of")
    lines.add_column("amount", overflow="fold")
    for name in ("base µs", "factor ns", "R2", "sizes"):
        lines.add_column(name, justify="right", no_wrap=True)
    for subject in benchmarks:
        tools = {other.tool for other in benchmarks if other.test == subject.test}
        name = subject.benchmark if len(tools) > 1 else subject.test
        _times(subject, printable(f"{name} {subject.transport}"), times, amount)
        _lines(subject, printable(f"{name} {subject.transport}"), lines)
    console.print()
    console.print(times)
    if lines.row_count:
        console.print()
        console.print(lines)
        console.print("factor: ns for each more of the amount; for CPU time, ns for each ns of it")
    else:
        console.print(f"no fits: they need {FEWEST_SIZES} sizes of one packet, or of several")
    few = all(len({p.repetition for p in one.points}) < ENOUGH_REPETITIONS for one in benchmarks)
    if few:
        console.print(f"no intervals: they need at least {ENOUGH_REPETITIONS} repetitions")
    if any(is_emulated(one.accelerator) for one in benchmarks):
        console.print("emulated: no time here is real, and no share of time is given")


def _table(title: str, *columns: str) -> Table:
    table = Table(
        box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0),
        title=title, title_justify="left", title_style="bold",
    )  # fmt: skip
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def _times(subject: Subject, name: str, table: Table, amount: str) -> None:
    packets, cpu = subject.mean(PACKETS), subject.mean(amount)
    for size, rest in subject.rest().items():
        some = [point for point in subject.points if point.size == size]
        measured = sum(point.measured for point in some) / len(some)
        stages = sum(point.stages for point in some) / len(some)
        table.add_row(
            Text(name),
            str(size),
            f"{packets[size]:.2f}" if size in packets else "-",
            f"{measured / 1e3:.1f}",
            f"{stages / 1e3:.1f}" if subject.has_stages else "-",
            _us(rest),
            f"{cpu[size] / 1e3:.1f}" if size in cpu else "-",
        )
        name = ""


def _lines(subject: Subject, name: str, table: Table) -> None:
    regime = ""
    for line in subject.fits():
        table.add_row(
            Text(name),
            line.regime if line.regime != regime else "",
            line.amount,
            _us(line.base),
            _number(line.factor, 1.0, 2),
            f"{line.r_squared:.2f}",
            str(line.sizes),
        )
        name, regime = "", line.regime


def _us(estimate: Estimate) -> str:
    return _number(estimate, 1e3, 1)


def _number(estimate: Estimate, unit: float, digits: int) -> str:
    text = f"{estimate.value / unit:.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text}\n{estimate.low / unit:.{digits}f}..{estimate.high / unit:.{digits}f}"
