# SPDX-License-Identifier: GPL-2.0-or-later
"""Print a run's fits of measured times to stage times."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rocelab.accelerators import is_emulated
from rocelab.correlate.fit import Estimate
from rocelab.correlate.fit_subjects import Subject, Value, subjects
from rocelab.plans.plan import ENOUGH_REPETITIONS
from rocelab.record import results_table
from rocelab.terminal.capture_tables import printable


def show(run: Path, console: Console) -> None:
    """Print a fit for each benchmark and transport, and the rest for each size."""
    frame = results_table.load(run)
    columns = (
        "accelerator", "tool", "test", "transport", "size", "repetition", "node", "metric", "kind",
        "value",
    )  # fmt: skip
    found = subjects(Value(*row) for row in frame.select(columns).iter_rows())
    if not found:
        return
    table = Table(
        box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0),
        title="measured = base + factor x stages, µs per message",
        title_justify="left", title_style="bold",
    )  # fmt: skip
    table.add_column("benchmark", overflow="fold")
    for name in ("base", "factor", "R2", "bytes", "measured", "stages", "rest", "CPU/packet"):
        table.add_column(name, justify="right", no_wrap=True)
    for subject in found:
        _rows(subject, table)
    console.print()
    console.print(table)
    few = all(len({p.repetition for p in one.points}) < ENOUGH_REPETITIONS for one in found)
    if few:
        console.print(f"no intervals: they need at least {ENOUGH_REPETITIONS} repetitions")
    if any(is_emulated(one.accelerator) for one in found):
        console.print("emulated: no time here is real, and no share of time is given")


def _rows(subject: Subject, table: Table) -> None:
    line = subject.fit()
    name = printable(f"{subject.test} {subject.transport}")
    fitted = (
        (_us(line.base), _number(line.factor, 1.0, 2), f"{line.r_squared:.2f}")
        if line
        else ("-", "-", "-")
    )
    for size, rest in subject.rest().items():
        some = [point for point in subject.points if point.size == size]
        mean = [sum(getattr(p, key) for p in some) / len(some) for key in ("measured", "stages")]
        table.add_row(
            Text(name),
            *fitted,
            str(size),
            *(f"{value / 1e3:.1f}" for value in mean),
            _us(rest),
            f"{subject.cpu_ns[size] / 1e3:.1f}" if size in subject.cpu_ns else "-",
        )
        name, fitted = "", ("", "", "")


def _us(estimate: Estimate) -> str:
    return _number(estimate, 1e3, 1)


def _number(estimate: Estimate, unit: float, digits: int) -> str:
    text = f"{estimate.value / unit:.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text}\n{estimate.low / unit:.{digits}f}..{estimate.high / unit:.{digits}f}"
