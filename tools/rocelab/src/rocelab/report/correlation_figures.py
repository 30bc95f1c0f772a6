# SPDX-License-Identifier: GPL-2.0-or-later
"""The time outside the stages: by size, and what it grows with."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from rocelab import units
from rocelab.accelerators import is_emulated
from rocelab.correlate.fit import FEWEST_SIZES, RESAMPLES, Estimate, Fit, Regime
from rocelab.correlate.fit_subjects import (
    BYTES,
    CPU,
    CPU_WITH_START,
    HEADERS,
    PACKETS,
    Subject,
    Value,
    subjects,
)
from rocelab.group_by import group_by
from rocelab.metrics import Stage
from rocelab.plans.plan import ENOUGH_REPETITIONS
from rocelab.record.read import Run, Series
from rocelab.report import palette, plots, series_order, wording
from rocelab.report.figure import Column, Figure, Note, Panel, Section, Table

_TITLE = "What no stage covers, and what it grows with"
_QUANTITIES = {
    "latency": "mean latency of a message",
    "inverse_bandwidth": "time per message, the inverse of the message rate",
}
_ABSENT = (
    "This run has nothing to correlate: this takes a latency or a message rate of one size, and "
    "stage costs at both ends or CPU time of the same benchmark."
)
_MEANING = (
    "The rest is the measured time of a message minus its stages: the time that no stage covers. "
    "The stages are summed over all its packets at both ends, without acknowledgements and the "
    "reply, which is another packet, and with the wait in the queue only for latencies, which "
    "contain it. Where nothing sees stages (TCP, adapters), the rest is all that was measured. "
    "It is fitted by least squares, rest = base + factor x amount, for one amount at a time, with "
    "relative weights, and apart for messages of one packet and of several."
)
_CONCLUSIONS = (
    "What this shows: an amount with a factor whose interval is above 0 and a high R² is one with "
    "which the time outside the driver grows. If none has, that time does not depend on the "
    "message, as with wakeups and interrupts. The measured time itself is not fitted to stages: "
    "they are parts of it, so that line fits whatever the rest does.",
    "What this does not show: R² is the share of variance that the line explains, not a share of "
    "time, and a good fit does not prove a cause. Amounts grow together (more bytes are more "
    "packets), so their factors cannot be added. Messages of one packet do not differ in packets "
    "and header bytes: compare transports to see those.",
)
_EMULATED = (
    "Emulated: no axis shows real time. They show whether the rest and an amount change together, "
    "but not what share of time it takes on a real machine, so no share is given."
)


def section(run: Run) -> Section:
    """Return the section: a figure per accelerator, quantity and kind."""
    correlated = subjects(value for series in run.series for value in _values(series))
    if not correlated:
        return Section("correlation", _TITLE, notes=(Note(_ABSENT),))
    groups = group_by(correlated, lambda one: (one.accelerator, one.quantity, one.kind))
    drivers = {
        (item.accelerator, item.benchmark, item.transport): item.driver
        for item in run.series
        if Stage.parse(item.metric)
    }
    figures = tuple(_figure(members, drivers) for members in groups.values())
    closing = [Note(text) for text in _CONCLUSIONS]
    if any(is_emulated(one.accelerator) for one in correlated):
        closing.append(Note(_EMULATED, "warning"))
    return Section(
        "correlation", _TITLE, notes=(Note(_MEANING),), figures=figures, closing=tuple(closing)
    )


def _values(series: Series) -> Iterator[Value]:
    if series.size == units.ALL_SIZES:
        return  # what the sizes of an mpirun share belongs to none of them
    for repetition, value in zip(series.repetitions, series.values, strict=True):
        yield Value(
            *(series.accelerator, series.tool, series.test, series.transport, series.size),
            *(repetition, series.node, series.metric, series.kind, value),
        )


def _figure(members: Sequence[Subject], drivers: dict[tuple[str, str, str], str]) -> Figure:
    first = members[0]
    points = [point for one in members for point in one.points]
    factor, unit = wording.time_scale([point.measured for point in points], first.accelerator)
    fits = [(one, one.fits()) for one in members]
    quantity = _QUANTITIES[first.quantity]
    kind = wording.KINDS.get(first.kind, first.kind)
    known = [drivers.get((one.accelerator, one.benchmark, one.transport), "") for one in members]
    versions = units.listing(sorted({name for name in known if name}))
    tables = [_times(members, factor, unit)]
    if any(lines for _, lines in fits):
        tables.append(_lines(fits, factor, unit))
    return Figure(
        slug=series_order.slug("correlation", first.quantity, first.kind, first.accelerator),
        title=f"{quantity[0].upper()}{quantity[1:]}: the rest over the bytes of a message",
        caption=(
            f"One point per size and repetition ({kind}). Lines: the fits over bytes, of one "
            "packet and of several. " + _interval_text(members, fits),
            f"Driver: {versions or 'not recorded'}.",
        ),
        panels=tuple(_panel(one, lines, factor, unit) for one, lines in fits),
        legend=(),
        tables=tuple(tables),
        accelerator=first.accelerator,
    )


_Fitted = Sequence[tuple[Subject, list[Fit]]]


def _interval_text(members: Sequence[Subject], fits: _Fitted) -> str:
    sentences = []
    if not all(lines for _, lines in fits):
        sentences.append(f"A fit needs {FEWEST_SIZES} sizes of one packet, or of several.")
    estimates = [rest for one in members for rest in one.rest().values()]
    if any(rest.low is None for rest in estimates):
        sentences.append(f"No intervals: they need at least {ENOUGH_REPETITIONS} repetitions.")
    else:
        sentences.append(
            f"Intervals in the tables: 95 %, from a bootstrap of {RESAMPLES} draws of whole "
            "repetitions; with few repetitions they are slightly too narrow."
        )
    return " ".join(sentences)


def _panel(one: Subject, lines: Sequence[Fit], factor: float, unit: str) -> Panel:
    title = f"{one.benchmark} over {one.transport}"
    spans = {
        regime: [point.size for point in one.points if point.regime is regime] for regime in Regime
    }
    chart = plots.scatter(
        [
            plots.Dot(
                point.size,
                point.rest / factor,
                f"{units.size(point.size)}, repetition {point.repetition}: measured "
                f"{units.number(point.measured / factor)}, stages "
                f"{units.number(point.stages / factor)} {unit}",
            )
            for point in one.points
        ],
        lines=[
            plots.Line(
                line.base.value / factor,
                line.factor.value / factor,
                min(spans[line.regime]),
                max(spans[line.regime]),
            )
            for line in lines
            if line.amount == BYTES
        ],
        colour=palette.transport_style(one.transport).colour.light,
        x_title="message size",
        y_title=f"rest ({unit})" if one.has_stages else f"measured ({unit})",
    )
    fitted = "; ".join(
        f"{line.regime}: {units.number(line.base.value / factor)} {unit} plus "
        f"{units.number(line.factor.value)} ns per byte, R² {line.r_squared:.2f}"
        for line in lines
        if line.amount == BYTES
    )
    rest = "; ".join(
        f"{units.size(size)} {units.number(value.value / factor)} {unit}"
        for size, value in one.rest().items()
    )
    return Panel(
        title,
        chart,
        f"{title}, {len(one.points)} points: {fitted or 'no line fits'}. The rest: {rest}.",
    )


def _times(members: Sequence[Subject], factor: float, unit: str) -> Table:
    emulated = any(is_emulated(one.accelerator) for one in members)
    amount = CPU if any(one.mean(CPU) for one in members) else CPU_WITH_START
    timed = any(one.mean(amount) for one in members)
    rows = []
    for one in members:
        headers, packets, cpu = (one.mean(each) for each in (HEADERS, PACKETS, amount))
        for size, rest in one.rest().items():
            some = [point for point in one.points if point.size == size]
            measured = statistics.fmean(point.measured for point in some)
            stages = statistics.fmean(point.stages for point in some)
            share = units.ABSENT if not one.has_stages else f"{stages / measured:.1%}"
            rows.append(
                (
                    one.benchmark,
                    one.transport,
                    units.size(size),
                    units.number(measured / factor, 4),
                    units.number(stages / factor, 4) if one.has_stages else units.ABSENT,
                    *estimate_cells(rest, factor),
                    *(() if emulated else (share,)),
                    units.number(packets[size]) if size in packets else units.ABSENT,
                    units.number(headers[size]) if size in headers else units.ABSENT,
                    *((_number(cpu.get(size), factor),) if timed else ()),
                )
            )
    labels = [
        "size", "measured", "stages", "rest", "its 95 % CI", *([] if emulated else ["explained"]),
        "packets", "header bytes", *([f"{amount} per message"] if timed else []),
    ]  # fmt: skip
    return Table(
        f"Measured, stages and rest, in {unit} per message; packets and header bytes of a message",
        (
            Column("benchmark"),
            Column("transport"),
            *(Column(name, numeric=True) for name in labels),
        ),
        tuple(rows),
    )


def _number(value: float | None, factor: float) -> str:
    return units.ABSENT if value is None else units.number(value / factor, 4)


def _lines(fits: _Fitted, factor: float, unit: str) -> Table:
    rows = tuple(
        (
            one.benchmark,
            one.transport,
            str(line.regime),
            line.amount,
            *estimate_cells(line.base, factor),
            *estimate_cells(line.factor, 1.0),
            f"{line.r_squared:.3f}",
            str(line.sizes),
            str(line.points),
        )
        for one, lines in fits
        for line in lines
    )
    labels = ["base", "its 95 % CI", "factor", "its 95 % CI", "R²", "sizes", "points"]
    return Table(
        f"The rest over each amount: base in {unit}, factor in ns for each more of the amount (for "
        "CPU time, ns for each ns)",
        (
            *(Column(name) for name in ("benchmark", "transport", "message of", "amount")),
            *(Column(name, numeric=True) for name in labels),
        ),
        rows,
    )


def estimate_cells(estimate: Estimate, factor: float) -> tuple[str, str]:
    """Return an estimate, divided by `factor`, and its interval as texts."""
    value = units.number(estimate.value / factor, 4)
    if estimate.low is None or estimate.high is None:
        return value, "none"
    low, high = (units.number(end / factor, 4) for end in (estimate.low, estimate.high))
    return value, f"{low} to {high}"
