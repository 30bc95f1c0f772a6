# SPDX-License-Identifier: GPL-2.0-or-later
"""Processor time of one more message and of its bytes, and what a rate of messages keeps busy.

It is computed from the marginal cost (docs/numbers.md), so neither the start of the programs nor
the probes are in it. Utilizations that were measured, by rxecpu and by perftest, stand next to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress

from rocelab import metrics, units
from rocelab.accelerators import INSTRUCTIONS, is_emulated
from rocelab.group_by import group_by
from rocelab.plans.benchmarks.perftest import PROC_STAT
from rocelab.plans.catalog import Kind
from rocelab.record.read import Run, Series
from rocelab.report import series_order, wording
from rocelab.report.figure import Column, Table

RATE = 10_000
"""Messages a second, of all that are sent in both directions."""
MEANING = (
    "Processor time of a message is marginal: what one more message costs a machine without the "
    "start of the programs and without the probes. Times a rate it is the number of processors "
    "that this rate keeps busy, as long as the cost does not depend on the rate: programs that "
    "sleep more often pay for more wakeups. rxecpu's figure is of the whole life of the programs, "
    "with the probes; perftest's is of its loop, by ticks of /proc/stat, with other programs."
)
_LATENCIES = (Kind.ONE_WAY_HALF_RTT, Kind.ROUND_TRIP)
"""Of one message: a ping-pong sends two in a round trip."""
_RATES = (Kind.ONE_WAY, Kind.ROUND_TRIP)


def tables(run: Run) -> tuple[Table, ...]:
    """Return a table for each accelerator under which the cost of a message was measured."""
    groups = group_by(run.series, lambda item: item.accelerator)
    every = (_table(accelerator, series) for accelerator, series in groups.items())
    return tuple(table for table in every if table is not None)


def _table(accelerator: str, series: Sequence[Series]) -> Table | None:
    costs = [_of(i, metrics.MESSAGE_COST, metrics.MARGINAL) for i in series]
    if not any(costs):
        return None
    factor, unit = wording.work_scale(
        [i.spread.mean for i, is_cost in zip(series, costs, strict=True) if is_cost], accelerator
    )
    steps = group_by(series, lambda i: (i.benchmark, i.size, i.transport))
    ordered = sorted(
        steps.items(), key=lambda step: (step[0][1], series_order.transport_rank(step[0][2]))
    )
    counts, real = unit == INSTRUCTIONS, not is_emulated(accelerator)
    rate = f"at {RATE:,} messages/s" + (" (M instructions/s)" if counts else "")
    labels = ("message", "byte", rate, "at the measured rate", "by rxecpu", "by perftest")
    rows = [
        (benchmark, units.size(size), transport, machine, *cells)
        for (benchmark, size, transport), some in ordered
        for machine, cells in _machines(some, size, factor, counts=counts, real=real)
    ]
    keys = 4
    filled = [any(row[at] != units.ABSENT for row in rows) for at in range(keys, len(rows[0]))]
    return Table(
        f"Processor time of one more message and of its byte ({unit}), and processors that are busy"
        if real
        else f"Work of one more message and of its byte ({unit})",
        (
            *(Column("benchmark"), Column("size", numeric=True)),
            *(Column("transport"), Column("machine")),
            *(Column(label, numeric=True) for label in compress(labels, filled)),
        ),
        tuple((*row[:keys], *compress(row[keys:], filled)) for row in rows),
    )


def _machines(
    series: Sequence[Series], size: int, factor: float, *, counts: bool, real: bool
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each machine of a step, and its cells; a dash for what was not measured."""
    cost = _by_node(series, metrics.MESSAGE_COST, metrics.MARGINAL)
    busy = _by_node(series, metrics.CPU_BUSY_CORES, "cores")
    ticks = _by_node(series, metrics.CPU_UTILIZATION, PROC_STAT)
    cores = _by_node(series, metrics.CPU_CORES, "counter")
    rate = _rate(series)
    for machine in sorted({*cost, *ticks}):
        each = cost.get(machine)
        share = ticks.get(machine)
        values = (
            each and each / factor,
            each and size > 0 and each / factor / size,
            (real or counts) and each and each * RATE / (1e6 if counts else 1e9),
            real and each and rate and each * rate / 1e9,
            real and busy.get(machine),
            real and share and machine in cores and share * cores[machine],
        )
        yield machine, tuple(units.number(value) if value else units.ABSENT for value in values)


def _rate(series: Iterable[Series]) -> float | None:
    """Messages a second, in both directions."""
    for item in series:
        if item.metric == metrics.LATENCY and item.kind in _LATENCIES:
            return 1e9 / item.spread.median
        if item.metric == metrics.MESSAGE_RATE and item.kind in _RATES:
            return item.spread.median
    return None


def _by_node(series: Iterable[Series], metric: str, kind: str) -> dict[str, float]:
    return {item.node: item.spread.mean for item in series if _of(item, metric, kind)}


def _of(item: Series, metric: str, kind: str) -> bool:
    return (item.metric, item.kind) == (metric, kind)
