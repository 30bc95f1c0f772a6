# SPDX-License-Identifier: GPL-2.0-or-later
"""What watching cost: the same steps with probes and without."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from rocelab import units
from rocelab.metrics import BANDWIDTH, LATENCY, MESSAGE_RATE, Watched
from rocelab.record.read import Run, Series
from rocelab.report.figure import Column, Note, Section, Table
from rocelab.report.transport_comparison import amount

_SHOWN = ((LATENCY, "mean latency"), (BANDWIDTH, "bandwidth"), (MESSAGE_RATE, "message rate"))
_MEANING = (
    "Each step ran twice: first without probes, then with them. Latencies, bandwidths and claims "
    "are from the first pass; stages, CPU time, counters and frames from the second. The "
    "difference of the second from the first, the median over the repetitions, is what watching "
    "cost, and what differs between any two passes."
)


def section(run: Run) -> Section | None:
    """Return the section; None for a run whose steps ran once."""
    rows = tuple(
        row for metric, name in _SHOWN for pair in _pairs(run, metric) for row in _row(name, *pair)
    )
    if not rows:
        return None
    table = Table(
        "Medians over the repetitions",
        (
            Column("benchmark"),
            Column("transport"),
            Column("size", numeric=True),
            Column("quantity"),
            Column("without probes", numeric=True),
            Column("with probes", numeric=True),
            Column("difference", numeric=True),
        ),
        rows,
    )
    return Section("watching", "What watching cost", notes=(Note(_MEANING),), tables=(table,))


def _pairs(run: Run, metric: str) -> Iterator[tuple[Series, Series]]:
    """Series without probes, and the same with them."""

    def key(item: Series) -> tuple[object, ...]:
        return (item.accelerator, item.benchmark, item.transport, item.size, item.node, item.kind)

    watched = {key(item): item for item in run.of(Watched(metric).name)}
    for item in run.of(metric):
        if key(item) in watched:
            yield item, watched[key(item)]


def _row(name: str, plain: Series, watched: Series) -> Iterator[tuple[str, ...]]:
    of_plain = dict(zip(plain.repetitions, plain.values, strict=True))
    differences = [
        value / of_plain[repetition] - 1
        for repetition, value in zip(watched.repetitions, watched.values, strict=True)
        if of_plain.get(repetition)
    ]
    if not differences:
        return
    percent = 100 * median(differences)
    sign = "+" if percent > 0 else ""
    yield (
        plain.benchmark,
        plain.transport,
        units.size(plain.size),
        name,
        amount(plain.spread.median, plain.unit, plain.accelerator),
        amount(watched.spread.median, watched.unit, watched.accelerator),
        f"{sign}{units.number(percent)} %",
    )
