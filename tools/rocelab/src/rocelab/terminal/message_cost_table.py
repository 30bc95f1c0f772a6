# SPDX-License-Identifier: GPL-2.0-or-later
"""What one more message costs the processors, as a table (docs/numbers.md has the words)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl
from rich.console import RenderableType

from rocelab import accelerators, metrics, units
from rocelab.plans.catalog import TRANSPORTS
from rocelab.plans.plan import Benchmark, Plan
from rocelab.terminal import cost_by_size_table, cost_interval_table, driver_work_table, grid

_OWNERS = ("user", "calls", "network", "rxe", "other")
_KINDS = (metrics.MARGINAL, metrics.START, metrics.RESIDUAL, metrics.KERNEL_MARGINAL)
_HEADS = ("benchmark", "transport", *_OWNERS, "total", "start")
_ALONE = 0.05
"""Processors that other programs may keep busy unnoticed."""
_LINEAR = 0.02
"""Share of the cost of all messages by which a third count may miss the line."""


def has(table: pl.DataFrame, benchmark: Benchmark, transport: str, size: int | None) -> bool:
    """Say whether the cost of a message was measured."""
    return size is not None and not _costs(table, benchmark, transport, size).is_empty()


def owner_of(account: metrics.Account) -> str:
    """Return the column of an account: the benchmark's user mode and its calls are two."""
    if account.owner == "benchmark":
        return "user" if account.context == "user" else "calls"
    return account.owner


def render(table: pl.DataFrame, plan: Plan, columns: int) -> Iterator[RenderableType]:
    """Yield the table and what it leaves out; nothing if no step has several counts."""
    rows: list[tuple[str, ...]] = []
    watching: list[float] = []
    bent: list[str] = []
    counts, polls = True, False
    driver: list[tuple[str, str, pl.DataFrame, float, float]] = []
    measured: list[tuple[str, str, pl.DataFrame]] = []
    for benchmark in plan.benchmarks:
        for size in benchmark.sizes:
            name = title = f"{benchmark.tool} {benchmark.title} {size} B"
            for transport in benchmark.transports:
                costs = _costs(table, benchmark, transport, size)
                if costs.is_empty():
                    continue
                counts = costs["unit"][0] == accelerators.INSTRUCTIONS
                if costs.filter(metric=metrics.MESSAGE_COST).is_empty():
                    parts = _by_owner(costs, metrics.KERNEL_MARGINAL)
                    by_calls = benchmark.waits_by_calls
                    known = ("network", "rxe") if by_calls else ("calls", "network", "rxe")
                    shown = [_number(parts[o]) if o in known else units.ABSENT for o in _OWNERS]
                    rows.append((name, transport, *shown, units.ABSENT, units.ABSENT))
                    step = _step(table, benchmark, transport, size)
                    driver.append((title, transport, step, parts["rxe"], 0.0))
                    polls, name = True, ""
                    continue
                measured.append((title, transport, costs))
                total = _sum(costs, metrics.MESSAGE_COST, metrics.MARGINAL)
                start = _sum(costs, metrics.MESSAGE_COST, metrics.START)
                parts = _by_owner(costs, metrics.MARGINAL)
                shown = [_number(parts[o]) if parts else "" for o in _OWNERS]
                if parts and TRANSPORTS[transport].is_rxe:
                    step = _step(table, benchmark, transport, size)
                    driver.append((title, transport, step, parts["rxe"], total))
                rows.append((name, transport, *shown, _number(total), _millions(start, counts)))
                if total:
                    watching.append(_sum(costs, metrics.WATCHING_COST, metrics.MARGINAL) / total)
                if (miss := _residual(costs)) > _LINEAR:
                    bent.append(f"{title} over {transport} ({miss:.1%})")
                elif start < 0:
                    bent.append(f"{title} over {transport} (a start below zero)")
                name = ""
    if not rows:
        return
    heading = "Instructions of one message" if counts else "CPU time of one message, ns"
    how = f"all nodes together, without probes; start in {'millions' if counts else 'ms'}"
    yield grid.heading(heading, how, columns)
    yield from grid.fit(_HEADS, rows, columns, keys=2)
    yield from _notes(table, watching, bent, min(columns, grid.WIDTH), polls=polls)
    yield from cost_interval_table.render(measured, columns, counts=counts)
    yield from driver_work_table.render(driver, columns)
    yield from cost_by_size_table.render(table, columns)


def _notes(
    table: pl.DataFrame,
    watching: Sequence[float],
    bent: Sequence[str],
    columns: int,
    *,
    polls: bool,
) -> Iterator[RenderableType]:
    """What the figures leave out, and what is wrong with them."""
    if any(watching):
        low, high = min(watching), max(watching)
        text = f"{low:.0%}" if f"{low:.0%}" == f"{high:.0%}" else f"{low:.0%} to {high:.0%}"
        yield grid.paragraph(
            f"While the probes watched, a message cost {text} more. That is not in the table.",
            columns,
            style="dim",
        )
    if others := _others(table):
        yield grid.paragraph(
            f"Other programs kept {others} busy: their work is in these figures. Measure on "
            "machines that do nothing else.",
            columns,
            style="red",
        )
    if polls:
        yield grid.paragraph(
            f"{units.ABSENT}: the program polls, so this depends on how long it waits. The rest "
            "contains what the probes do not state of themselves.",
            columns,
            style="dim",
        )
    if bent:
        yield grid.paragraph(
            f"Not linear in the number of messages: {units.listing(bent)}.", columns, style="red"
        )


def _others(table: pl.DataFrame) -> str:
    """By machine the processors that other programs kept busy; empty if it was hardly any."""
    rows = table.filter(metric=metrics.OTHERS)
    means = rows.group_by("node").agg(pl.col("value").mean()).sort("node")
    return units.listing(
        [f"{cores:.1f} processors of {node}" for node, cores in means.iter_rows() if cores > _ALONE]
    )


def _costs(table: pl.DataFrame, benchmark: Benchmark, transport: str, size: int) -> pl.DataFrame:
    rows = _step(table, benchmark, transport, size)
    return rows.filter(pl.col("kind").is_in(_KINDS), pl.col("metric") != metrics.KERNEL_CYCLES)


def _step(table: pl.DataFrame, benchmark: Benchmark, transport: str, size: int) -> pl.DataFrame:
    return table.filter(tool=benchmark.tool, test=benchmark.title, transport=transport, size=size)


def _sum(rows: pl.DataFrame, metric: str, kind: str) -> float:
    """The mean over the repetitions, added over the machines."""
    values = rows.filter(metric=metric, kind=kind)
    return float(values.group_by("node").agg(pl.col("value").mean())["value"].sum())


def _by_owner(rows: pl.DataFrame, kind: str) -> dict[str, float]:
    """Each owner's part; empty without rxecpu."""
    sums = dict.fromkeys(_OWNERS, 0.0)
    accounts = {m: a for m in rows["metric"].unique() if (a := metrics.Account.parse(m))}
    for metric, account in sorted(accounts.items()):
        sums[owner_of(account)] += _sum(rows, metric, kind)
    return sums if accounts else {}


def _residual(rows: pl.DataFrame) -> float:
    """How far the third count is from the line, of all machines together."""
    cost = rows.filter(metric=metrics.MESSAGE_COST)
    by_node = {
        kind: dict(cost.filter(kind=kind).group_by("node").agg(pl.col("value").mean()).iter_rows())
        for kind in (metrics.MARGINAL, metrics.RESIDUAL)
    }
    slopes = by_node[metrics.MARGINAL]
    missed = sum(share * slopes.get(n, 0.0) for n, share in by_node[metrics.RESIDUAL].items())
    whole = sum(slopes.values())
    return float(abs(missed) / whole) if whole else 0.0


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _millions(value: float, counts: bool) -> str:
    return f"{value / 1e6:,.1f}{' M' if counts else ''}"
