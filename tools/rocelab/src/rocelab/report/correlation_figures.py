# SPDX-License-Identifier: GPL-2.0-or-later
"""Measured times against the sum of the stages: the fit, the rest, and the conclusions."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from rocelab import units
from rocelab.accelerators import is_emulated
from rocelab.correlate.fit import RESAMPLES, Estimate, Fit
from rocelab.correlate.fit_subjects import Subject, Value, subjects
from rocelab.group_by import group_by
from rocelab.metrics import Stage
from rocelab.plans.plan import ENOUGH_REPETITIONS
from rocelab.record.read import Run, Series
from rocelab.report import palette, plots, series_order, wording
from rocelab.report.figure import Column, Figure, Note, Panel, Section, Table

_TITLE = "How far the stages explain what was measured"
_QUANTITIES = {
    "latency": "mean latency of a message",
    "inverse_bandwidth": "time per message, the inverse of the message rate",
}
_ABSENT = (
    "This run has nothing to correlate: this takes stage costs at both ends, and a latency or a "
    "message rate of the same benchmark."
)
_MEANING = (
    "For every size and repetition, the measured time of a message is drawn against the sum of "
    "its stages, over all its packets at both ends. The sum leaves out acknowledgements and the "
    "reply, which is another packet, and includes the wait in the queue only for latencies, which "
    "contain it. The line is fitted by least squares: measured = base + factor x stages. The rest "
    "is measured minus stages: the time that no stage covers."
)
_CONCLUSIONS = (
    "What this shows: with a factor near 1 and a steady rest, the cost that grows with the "
    "message is inside these stages. With a factor above 1, something outside grows with them, "
    "such as copies in the network stack. With a factor below 1, stages overlap: both ends, or "
    "several packets of one message, are processed at the same time.",
    "What this does not show: R² is the share of variance that the line explains, not a share of "
    "time, and a good fit does not prove that the stages are the cause. A few sizes give few "
    "degrees of freedom. Header bytes are constant for a transport as long as a message is one "
    "packet, so their effect is part of the base: compare transports to see it. CPU time is shown "
    "in the table if rxecpu measured it; it is not part of the fit.",
)
_EMULATED = (
    "Emulated: no axis shows real time. They show whether stages and latency change together, "
    "but not what share of time the stages take on a real machine, so no share is given."
)


def section(run: Run) -> Section:
    """Return the section: a figure per accelerator, quantity and kind."""
    found = subjects(value for series in run.series for value in _values(series))
    if not found:
        return Section("correlation", _TITLE, notes=(Note(_ABSENT),))
    groups = group_by(found, lambda one: (one.accelerator, one.quantity, one.kind))
    drivers = {
        (item.accelerator, item.benchmark, item.transport): item.driver
        for item in run.series
        if Stage.parse(item.metric)
    }
    figures = tuple(_figure(members, drivers) for members in groups.values())
    closing = [Note(text) for text in _CONCLUSIONS]
    if any(is_emulated(one.accelerator) for one in found):
        closing.append(Note(_EMULATED, "warning"))
    return Section(
        "correlation", _TITLE, notes=(Note(_MEANING),), figures=figures, closing=tuple(closing)
    )


def _values(series: Series) -> Iterator[Value]:
    for repetition, value in zip(series.repetitions, series.values, strict=True):
        yield Value(
            *(series.accelerator, series.tool, series.test, series.transport, series.size),
            *(repetition, series.node, series.metric, series.kind, value),
        )


def _figure(members: Sequence[Subject], drivers: dict[tuple[str, str, str], str]) -> Figure:
    first = members[0]
    points = [point for one in members for point in one.points]
    factor, unit = wording.time_scale([point.measured for point in points], first.accelerator)
    fits = [(one, one.fit()) for one in members]
    quantity = _QUANTITIES[first.quantity]
    kind = wording.KINDS.get(first.kind, first.kind)
    known = [drivers.get((one.accelerator, one.benchmark, one.transport), "") for one in members]
    versions = units.listing(sorted({name for name in known if name}))
    return Figure(
        slug=series_order.slug("correlation", first.quantity, first.kind, first.accelerator),
        title=f"{quantity[0].upper()}{quantity[1:]}, against its stages",
        caption=(
            f"One point per size and repetition ({kind}). Solid: the fitted line. Dotted: measured "
            "equals stages; the distance above it is the rest. " + _interval_text(fits),
            f"Driver: {versions or 'not recorded'}.",
            wording.accelerator_caption(first.accelerator),
        ),
        panels=tuple(_panel(one, line, factor, unit) for one, line in fits),
        legend=(),
        table=_table(fits, factor, unit),
    )


def _interval_text(fits: Sequence[tuple[Subject, Fit | None]]) -> str:
    if any(line is None or line.factor.low is None for _, line in fits):
        return f"No intervals: they need at least {ENOUGH_REPETITIONS} repetitions."
    return (
        f"Intervals in the table: 95 %, from a bootstrap of {RESAMPLES} draws of whole "
        "repetitions; with few repetitions they are slightly too narrow."
    )


def _panel(one: Subject, line: Fit | None, factor: float, unit: str) -> Panel:
    title = f"{one.benchmark} over {one.transport}"
    chart = plots.scatter(
        [
            plots.Dot(
                point.stages / factor,
                point.measured / factor,
                f"{units.size(point.size)}, repetition {point.repetition}: measured "
                f"{units.number(point.measured / factor)}, stages "
                f"{units.number(point.stages / factor)} {unit}",
            )
            for point in one.points
        ],
        line=(line.base.value / factor, line.factor.value) if line else None,
        colour=palette.transport_style(one.transport).colour.light,
        x_title=f"sum of stages ({unit})",
        y_title=f"measured ({unit})",
    )
    fitted = (
        f"base {units.number(line.base.value / factor)} {unit}, factor "
        f"{units.number(line.factor.value)}, R² {line.r_squared:.2f}"
        if line
        else "no line fits"
    )
    rest = "; ".join(
        f"{units.size(size)} {units.number(value.value / factor)} {unit}"
        for size, value in one.rest().items()
    )
    return Panel(title, chart, f"{title}, {len(one.points)} points: {fitted}. The rest: {rest}.")


def _table(fits: Sequence[tuple[Subject, Fit | None]], factor: float, unit: str) -> Table:
    emulated = any(is_emulated(one.accelerator) for one, _ in fits)
    timed = any(one.cpu_ns for one, _ in fits)
    rows = []
    for one, line in fits:
        for size, rest in one.rest().items():
            some = [point for point in one.points if point.size == size]
            measured = statistics.fmean(point.measured for point in some)
            stages = statistics.fmean(point.stages for point in some)
            share = () if emulated else (f"{stages / measured:.1%}" if measured else units.ABSENT,)
            headers, cpu = one.header_bytes.get(size), one.cpu_ns.get(size)
            per_packet = units.ABSENT if cpu is None else units.number(cpu / factor, 4)
            rows.append(
                (
                    one.benchmark,
                    one.transport,
                    units.size(size),
                    units.number(measured / factor, 4),
                    units.number(stages / factor, 4),
                    *_cells(rest, factor),
                    *share,
                    units.ABSENT if headers is None else units.number(headers),
                    *((per_packet,) if timed else ()),
                    *(_cells(line.base, factor) if line else (units.ABSENT, units.ABSENT)),
                    *(_cells(line.factor, 1.0) if line else (units.ABSENT, units.ABSENT)),
                    f"{line.r_squared:.3f}" if line else units.ABSENT,
                    str(len(one.points)),
                )
            )
    labels = [
        "size", "measured", "stages", "rest", "its 95 % CI", *([] if emulated else ["explained"]),
        "header bytes", *(["kernel CPU per packet"] if timed else []),
        "base", "its 95 % CI", "factor", "its 95 % CI", "R²", "points",
    ]  # fmt: skip
    return Table(
        f"Measured, stages and rest, in {unit} per message; header bytes of a message's packets; "
        "base, factor and R² cover all sizes together",
        (
            Column("benchmark"),
            Column("transport"),
            *(Column(name, numeric=True) for name in labels),
        ),
        tuple(rows),
    )


def _cells(estimate: Estimate, factor: float) -> tuple[str, str]:
    value = units.number(estimate.value / factor, 4)
    if estimate.low is None or estimate.high is None:
        return value, "none"
    low, high = (units.number(end / factor, 4) for end in (estimate.low, estimate.high))
    return value, f"{low} to {high}"
