# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's numbers as tables that fit the terminal, as `rocelab run` and `show` print them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import polars as pl
from rich.console import Console, Group, RenderableType

from rocelab import accelerators, metrics
from rocelab.plans.catalog import TESTS, Kind
from rocelab.plans.plan import Benchmark, Plan
from rocelab.record import read, suite_versions
from rocelab.record.folder import RunFolder
from rocelab.record.read import Json
from rocelab.stats.summary import Spread, spread
from rocelab.terminal import driver_stages, grid, message_cost_table

WIDTH = grid.WIDTH


def show(run_dir: Path, console: Console) -> None:
    """Print a run's tables. Raises UsageError if it cannot be read."""
    console.print(render(run_dir, console.width))


def render(run_dir: Path, columns: int = WIDTH) -> RenderableType:
    """A run folder's tables, `columns` wide. Raises UsageError if it cannot be read."""
    folder = RunFolder(run_dir)
    meta, plan = folder.meta(), folder.plan()
    table = read.results(run_dir)
    accelerator = str(meta.get("accelerator"))
    heading = f"{folder.name}: {accelerators.of(accelerator).heading}"
    if len(heading) > columns:
        heading = heading.replace(": ", ":\n", 1)
    parts: list[RenderableType] = [
        grid.paragraph(line, columns, style="bold") for line in heading.split("\n")
    ]
    # a table that is copied out alone must still name its unit
    unreal = "emulated " if accelerators.is_emulated(accelerator) else ""
    counts = accelerators.of(accelerator).counts_instructions
    parts += message_cost_table.render(table, plan, columns)
    if counts:
        parts += _instructions(table, plan, columns)
    parts += _comparison(table, plan, metrics.LATENCY, f"Latency, {unreal}µs", 1e-3, columns)
    parts += _comparison(table, plan, "bandwidth", f"Bandwidth, {unreal}MB/s", 1e-6, columns)
    requests = table.filter(kind=Kind.REQUEST)
    title = f"IOPS{', emulated time' if unreal else ''}"
    parts += _comparison(requests, plan, metrics.MESSAGE_RATE, title, 1, columns)
    parts += _applications(table, plan, unreal, columns)
    parts += _comparison(
        table, plan, metrics.HEADER_BYTES, "Header bytes per data frame", 1, columns
    )
    for benchmark in plan.benchmarks:
        test = TESTS[benchmark.tool, benchmark.test]
        for transport in benchmark.transports:
            is_benchmark = (pl.col("tool") == test.tool) & (pl.col("test") == benchmark.title)
            rows = table.filter(is_benchmark & (pl.col("transport") == transport))
            title = f"Inside the driver: {_name(benchmark)} over {transport}"
            unit = accelerators.INSTRUCTIONS if counts else f"{unreal}ns"
            parts += driver_stages.render(title, rows, test, benchmark.sizes, unit, columns)
    parts += _failures(folder, plan, columns)
    parts += _suite_warning(folder, plan, columns)
    return Group(*parts)


def _comparison(
    table: pl.DataFrame, plan: Plan, metric: str, title: str, scale: float, columns: int = WIDTH
) -> Iterator[RenderableType]:
    """Medians and intervals: benchmarks and sizes in rows, transports in columns.

    Transports go in rows, too, if the terminal is not wide enough.
    """
    rows = table.filter(pl.col("metric") == metric)
    if rows.is_empty():
        return
    lines: list[tuple[str, ...]] = []
    for benchmark in plan.benchmarks:
        is_benchmark = (pl.col("tool") == benchmark.tool) & (pl.col("test") == benchmark.title)
        name = _with_kind(_name(benchmark), rows.filter(is_benchmark))
        for size in (*benchmark.sizes, None):
            here = rows.filter(is_benchmark & pl.col("size").eq_missing(pl.lit(size)))
            cells = [_value(here.filter(transport=t), scale) for t in plan.transports]
            if any(cells):
                lines.append((name, "all" if size is None else f"{size}", *cells))
    heads = ("benchmark", "bytes", *plan.transports)
    yield grid.heading(title, _how(plan), columns)
    if grid.width((heads, *lines)) <= columns:
        yield from grid.fit(heads, lines, columns, keys=2)
        return
    long: list[tuple[str, ...]] = []
    last = ""
    for name, shown, *cells in lines:
        place = ("" if name == last else name, shown)
        last = name
        for transport, cell in zip(plan.transports, cells, strict=True):
            if cell:
                long.append((*place, transport, cell))
                place = ("", "")
    yield from grid.fit((*heads[:2], "transport", "median"), long, columns, keys=3)


def _name(benchmark: Benchmark) -> str:
    """Tool, test and label: two tools may have a test of the same name."""
    return f"{benchmark.tool} {benchmark.title}"


_IN_KERNEL = ("calls", "network", "rxe")
"""Who works for a message in the kernel: the benchmark's system calls, the stack, the driver."""
_OWNERS = (*_IN_KERNEL, "user")
"""And the benchmark itself, which may poll: what it spends depends on how long it waits."""


def _instructions(table: pl.DataFrame, plan: Plan, columns: int) -> Iterator[RenderableType]:
    """What a message costs the processors of all nodes, by transport and owner."""
    for kind, amount in (("per_message", "message"), ("per_packet", "packet")):
        rows = table.filter(pl.col("kind") == kind)
        if kind == "per_packet":  # where there is no single message size
            rows = rows.filter(pl.col("size").is_null())
        lines: list[tuple[str, ...]] = []
        how = "at all nodes together, mean, with the start of the programs and the probes"
        for benchmark in plan.benchmarks:
            chosen = rows.filter(tool=benchmark.tool, test=benchmark.title)
            for size in (*benchmark.sizes, None):
                name = _name(benchmark)
                if size is not None:
                    name += f" {size} B"
                for transport in plan.transports:
                    here = chosen.filter(transport=transport).filter(
                        pl.col("size").eq_missing(pl.lit(size))
                    )
                    if message_cost_table.has(table, benchmark, transport, size):
                        continue
                    sums = _by_owner(here)
                    if sums:
                        parts = [sums.get(owner, 0.0) for owner in _IN_KERNEL]
                        values = (*parts, sum(parts), sums.get("user", 0.0))
                        lines.append((name, transport, *map(_count, values)))
                        name = ""
        if lines:
            yield grid.heading(f"Instructions per {amount}", how, columns)
            heads = ("benchmark", "transport", *_IN_KERNEL, "in kernel", "user")
            yield from grid.fit(heads, lines, columns, keys=2)


def _count(value: float) -> str:
    """A number of instructions; millions in three digits, which says enough of a polling loop."""
    return f"{value:,.0f}" if value < 1e6 else f"{_digits(value / 1e6)} M"


def _by_owner(rows: pl.DataFrame) -> dict[str, float]:
    """Each owner's mean over the repetitions, summed over nodes and contexts."""
    sums: dict[str, float] = {}
    means = rows.group_by("metric", "node").agg(pl.col("value").mean())
    for metric, _, value in means.sort("metric", "node").iter_rows():
        account = metrics.Account.parse(metric)
        if account is not None and "." not in account.context:
            owner = message_cost_table.owner_of(account)
            if owner in _OWNERS:
                sums[owner] = sums.get(owner, 0.0) + value
    return sums


def _applications(
    table: pl.DataFrame, plan: Plan, unreal: str, columns: int
) -> Iterator[RenderableType]:
    """The figures that application benchmarks report, transports in rows."""
    known = {name: metrics.Application.parse(name) for name in table["metric"].unique()}
    figures = {name: metric.figure for name, metric in known.items() if metric}
    if not figures:
        return
    rows = table.filter(pl.col("metric").is_in(list(figures)))
    lines: list[tuple[str, ...]] = []
    for benchmark in plan.benchmarks:
        mine = rows.filter(tool=benchmark.tool, test=benchmark.title)
        name = _name(benchmark)
        for metric, unit in mine.select("metric", "unit").unique(maintain_order=True).iter_rows():
            chosen = mine.filter(metric=metric)
            scale, shown = _scale(unit, max(chosen["value"]))
            for transport in benchmark.transports:
                here = chosen.filter(transport=transport)
                if not here.is_empty():
                    cells = (figures[metric], transport, shown, _value(here, scale))
                    lines.append((name, *cells))
                    name = ""
    yield grid.heading(f"Applications{', emulated time' if unreal else ''}", _how(plan), columns)
    heads = ("benchmark", "figure", "transport", "unit", "median")
    yield from grid.fit(heads, lines, columns, keys=4)


def _scale(unit: str, top: float) -> tuple[float, str]:
    """The factor and unit in which the largest value is short."""
    steps = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
    if unit != "ns":
        plain = unit.replace("bytes", "B").removeprefix("1")
        steps = ((1e9, f"G{plain}"), (1e6, f"M{plain}"), (1e3, f"k{plain}"), (1, plain))
    factor, name = next((step for step in steps if top >= step[0]), steps[-1])
    return 1 / factor, name


def _with_kind(name: str, rows: pl.DataFrame) -> str:
    kinds = set(rows["kind"].to_list())
    short = {
        "one_way_half_rtt": "½ round trip",
        "round_trip": "round trip",
        "all_pairs": "all pairs",
        "whole_file": "whole file",
    }
    known = [short[kind] for kind in sorted(kinds) if kind in short]
    return f"{name} ({known[0]})" if len(known) == 1 else name


def _how(plan: Plan) -> str:
    if plan.repetitions == 1:
        return "of one repetition"
    if spread([0.0] * plan.repetitions).interval is None:
        return f"median of {plan.repetitions} repetitions (smallest to largest)"
    return f"median of {plan.repetitions} repetitions (95 % confidence interval)"


def _value(rows: pl.DataFrame, scale: float) -> str:
    if rows.is_empty():
        return ""
    summary = spread((rows["value"] * scale).to_list())
    low, high = _bounds(summary)
    text = _digits(summary.median)
    return text if low == high else f"{text} ({_digits(low)} to {_digits(high)})"


def _bounds(summary: Spread) -> tuple[float, float]:
    if summary.interval is not None:
        return summary.interval.low, summary.interval.high
    return summary.low, summary.high


def _failures(folder: RunFolder, plan: Plan, columns: int) -> Iterator[RenderableType]:
    failed = []
    for cell in plan.cells():
        record = folder.record(cell.name)
        if record is None:
            failed.append(f"{cell.name}: did not run")
        elif record.get("status") != "ok":
            error = record.get("error")
            reason = error.get("what") if isinstance(error, dict) else None
            reason = str(reason or "no reason recorded").removeprefix(f"{cell.name}, ")
            failed.append(f"{cell.name}: {_plain(reason)}")
    if failed:
        yield grid.heading("Cells without numbers", "", columns)
        yield from (grid.paragraph(line, columns, style="red") for line in failed)


def _suite_warning(folder: RunFolder, plan: Plan, columns: int) -> Iterator[RenderableType]:
    records = (folder.record(cell.name) for cell in plan.cells())
    if suites := suite_versions.untested_suites(Json(each) for each in records if each):
        yield grid.paragraph(suite_versions.warning(suites), columns, style="red")


def _plain(text: object) -> str:
    """A node's text without control characters, which may be terminal escapes."""
    return "".join(c if c.isprintable() else " " for c in str(text))[:400]


def _digits(number: float) -> str:
    """At least three significant digits, without an exponent."""
    if number == 0:
        return "0"
    return f"{number:,.{max(0, 2 - math.floor(math.log10(abs(number))))}f}"
