# SPDX-License-Identifier: GPL-2.0-or-later
"""Application benchmarks: what NPB and HPC Challenge say of themselves, transport by transport."""

from __future__ import annotations

from collections.abc import Sequence

from rocelab import units
from rocelab.group_by import group_by
from rocelab.metrics import Application
from rocelab.record.read import Run, Series
from rocelab.report import series_order, wording
from rocelab.report.figure import Column, Note, Section, Table

_MEANING = (
    "Each of these programs computes something and chooses its own messages, so they cannot be "
    "compared by message size: the figures are those that the programs report. If a program that "
    "sends no messages (DGEMM, STREAM) differs between transports, something other than the "
    "transport differed: the processors were not equally free."
)
_LABELS = {
    "time": "time",
    "rate": "operations",
    "hpl.time": "HPL, time",
    "hpl.rate": "HPL, operations",
    "ptrans.bandwidth": "PTRANS",
    "random_access.rate": "RandomAccess, updates",
    "fft.rate": "FFT, operations",
    "dgemm.rate": "DGEMM, operations (sends nothing)",
    "stream_triad.bandwidth": "STREAM triad (sends nothing)",
    "ping_pong.latency": "ping-pong, latency",
    "natural_ring.latency": "ring in order, latency",
    "random_ring.latency": "ring in random order, latency",
    "ping_pong.bandwidth": "ping-pong, bandwidth",
    "natural_ring.bandwidth": "ring in order, bandwidth",
    "random_ring.bandwidth": "ring in random order, bandwidth",
}


def section(run: Run) -> Section | None:
    """Return the section, a table for each accelerator; None when no application ran."""
    items = [item for item in run.series if Application.parse(item.metric)]
    tables = tuple(
        _table(accelerator, series)
        for accelerator, series in group_by(items, lambda i: i.accelerator).items()
    )
    if not tables:
        return None
    return Section("applications", "Applications", notes=(Note(_MEANING),), tables=tables)


def label(metric: str) -> str:
    """Return what a figure is called."""
    application = Application.parse(metric)
    name = application.figure if application else metric
    return _LABELS.get(name, name)


def _table(accelerator: str, series: Sequence[Series]) -> Table:
    rows: list[tuple[str, ...]] = []
    repeated = series_order.is_repeated(series)
    for (benchmark, metric, size), some in group_by(
        series, lambda i: (i.benchmark, i.metric, i.size)
    ).items():
        factor, unit = units.scale(some[0].unit, [item.spread.median for item in some])
        unit = wording.time_unit(unit, accelerator)
        quantity = f"{label(metric)}, {units.size(size)}" if size else label(metric)
        rows += (
            (
                *(benchmark, quantity, item.transport, unit),
                *series_order.spread_cells(item, factor, repeated=repeated),
            )
            for item in sorted(some, key=lambda i: series_order.transport_rank(i.transport))
        )
    return Table(
        f"Figures of application benchmarks, {wording.accelerator_label(accelerator)}",
        (
            *(Column("benchmark"), Column("figure"), Column("transport"), Column("unit")),
            *series_order.spread_columns(series),
        ),
        tuple(rows),
    )
