# SPDX-License-Identifier: GPL-2.0-or-later
"""Application benchmarks: what NPB and HPC Challenge say of themselves, transport by transport."""

from __future__ import annotations

from collections.abc import Sequence

from rocelab.report import fmt, grouping, wording
from rocelab.report.figure import Column, Note, Section, Table
from rocelab.report.runfolder import Run, Series

_PREFIX = "application."
_MEANING = (
    "Each of these programs computes something and chooses its own messages, so there is no "
    "message size to set them side by side by: the figures are the programs' own. Where one that "
    "sends no message (DGEMM, STREAM) differs between transports, something else than the "
    "transport differed too: the processors were not equally free."
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
    found = [item for item in run.series if item.metric.startswith(_PREFIX)]
    tables = tuple(
        _table(accelerator, series)
        for accelerator, series in grouping.by(found, lambda i: i.accelerator).items()
    )
    if not tables:
        return None
    return Section("applications", "Applications", notes=(Note(_MEANING),), tables=tables)


def label(metric: str) -> str:
    """Return what a figure is called."""
    name = metric.removeprefix(_PREFIX)
    return _LABELS.get(name, name)


def _table(accelerator: str, series: Sequence[Series]) -> Table:
    rows: list[tuple[str, ...]] = []
    for (benchmark, metric, size), some in grouping.by(
        series, lambda i: (i.benchmark, i.metric, i.size)
    ).items():
        factor, unit = fmt.scale(some[0].unit, [item.spread.median for item in some])
        unit = wording.time_unit(unit, accelerator)
        what = f"{label(metric)}, {fmt.size(size)}" if size else label(metric)
        rows += (
            (benchmark, what, item.transport, unit, *grouping.spread_cells(item, factor))
            for item in sorted(some, key=lambda i: grouping.transport_rank(i.transport))
        )
    return Table(
        f"Figures of application benchmarks, {wording.accelerator_label(accelerator)}",
        (
            *(Column("benchmark"), Column("figure"), Column("transport"), Column("unit")),
            *grouping.SPREAD_COLUMNS,
        ),
        tuple(rows),
    )
