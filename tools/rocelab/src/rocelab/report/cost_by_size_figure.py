# SPDX-License-Identifier: GPL-2.0-or-later
"""What the cost of one message grows with: a base, its bytes, and each further packet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rocelab import metrics, units
from rocelab.accelerators import INSTRUCTIONS
from rocelab.correlate import cost_by_size
from rocelab.correlate.cost_by_size import CostBySize
from rocelab.correlate.fit import Fit
from rocelab.record.read import Run
from rocelab.report import palette, plots, series_order, wording
from rocelab.report.correlation_figures import estimate_cells
from rocelab.report.figure import Column, Figure, Note, Panel, Section, Table

_TITLE = "What the cost of a message grows with"
_MEANING = (
    "The cost of one more message, without the start of the programs and without the probes, of "
    "all nodes together, fitted over the sizes of messages: cost = base + factor x size. Messages "
    "of one packet and of several are fitted apart. A further packet costs the difference of the "
    "two factors, times the bytes that a packet carries."
)
_KIB = 1024


def section(run: Run) -> Section | None:
    """Return the section; None unless three sizes of one packet, or of several, were measured."""
    figures = tuple(
        figure
        for name in run.table["accelerator"].unique(maintain_order=True)
        for figure in _figures(run, name)
    )
    return Section("growth", _TITLE, notes=(Note(_MEANING),), figures=figures) if figures else None


def _figures(run: Run, accelerator: str) -> Iterator[Figure]:
    """A figure for each benchmark."""
    every = cost_by_size.lines(run.table.filter(accelerator=accelerator))
    for benchmark in dict.fromkeys((line.tool, line.test) for line in every):
        lines = [line for line in every if (line.tool, line.test) == benchmark]
        lines.sort(key=lambda line: series_order.transport_rank(line.transport))
        yield _figure(lines, accelerator)


def _figure(lines: Sequence[CostBySize], accelerator: str) -> Figure:
    benchmark = f"{lines[0].tool} {lines[0].test}"
    costs = [point.measured for line in lines for point in line.points]
    factor, unit = wording.work_scale(costs, accelerator)
    quantity = "Instructions" if unit == INSTRUCTIONS else "CPU time"
    return Figure(
        slug=series_order.slug("growth", benchmark, accelerator),
        title=f"{quantity} of one message by its size: {benchmark}",
        caption=(
            "One point per size and repetition. Lines: the fits, of one packet and of several.",
        ),
        panels=tuple(_panel(line, factor, unit) for line in lines),
        legend=(),
        tables=(_table(lines, factor, unit),),
        accelerator=accelerator,
    )


def _panel(line: CostBySize, factor: float, unit: str) -> Panel:
    fits = [fit for fit in (line.one, line.several) if fit]
    chart = plots.scatter(
        [
            plots.Dot(
                point.size,
                point.measured / factor,
                f"{units.size(point.size)}, repetition {point.repetition}: "
                f"{units.number(point.measured / factor)} {unit}",
            )
            for point in line.points
        ],
        lines=[_plot_line(line, fit, factor) for fit in fits],
        colour=palette.transport_style(line.transport).colour.light,
        x_title="message size",
        y_title=wording.work_title("CPU time", unit, "message"),
    )
    values = "; ".join(
        f"{fit.regime}: {units.number(fit.base.value / factor)} plus "
        f"{units.number(fit.factor.value * _KIB / factor)} {unit} a KiB"
        for fit in fits
    )
    return Panel(
        line.transport, chart, f"Over {line.transport}. {values}.", transport=line.transport
    )


def _plot_line(line: CostBySize, fit: Fit, factor: float) -> plots.Line:
    sizes = [point.size for point in line.points if point.regime is fit.regime]
    return plots.Line(fit.base.value / factor, fit.factor.value / factor, min(sizes), max(sizes))


def _table(lines: Sequence[CostBySize], factor: float, unit: str) -> Table:
    rows = tuple(
        (
            line.transport,
            str(fit.regime),
            *estimate_cells(fit.base, factor),
            *estimate_cells(fit.factor, factor / _KIB),
            units.ABSENT
            if fit is line.one or line.packet is None
            else units.number(line.packet / factor, 4),
            f"{fit.r_squared:.3f}",
            str(fit.sizes),
        )
        for line in lines
        for fit in (line.one, line.several)
        if fit
    )
    labels = ("base", "its 95 % CI", "KiB", "its 95 % CI", "further packet", "R²", "sizes")
    return Table(
        "Marginal cost of a message"
        + (f", in {unit}" if unit != INSTRUCTIONS else ", instructions")
        + f" ({metrics.MESSAGE_COST})",
        (
            *(Column("transport"), Column("message of")),
            *(Column(label, numeric=True) for label in labels),
        ),
        rows,
    )
