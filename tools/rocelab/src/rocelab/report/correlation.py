# SPDX-License-Identifier: GPL-2.0-or-later
"""What was measured against what the stages add up to: the fit, the rest, and what follows."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from rocelab.accelerators import is_emulated
from rocelab.bench.plan import ENOUGH_REPETITIONS
from rocelab.correlate.fit import RESAMPLES, Estimate, Fit
from rocelab.correlate.model import Subject, Value, subjects
from rocelab.report import fmt, grouping, palette, plots, wording
from rocelab.report.figure import Column, Figure, Note, Panel, Section, Table
from rocelab.report.runfolder import Run, Series

_TITLE = "How far the stages explain what was measured"
_QUANTITIES = {
    "latency": "mean latency of a message",
    "inverse_bandwidth": "time per message, the inverse of the message rate",
}
_ABSENT = (
    "This run holds nothing to correlate: that takes stage costs at both ends, and a latency or a "
    "message rate of the same benchmark."
)
_MEANING = (
    "For every size and repetition: the measured time of a message against the sum of its stages, "
    "all its packets at both ends (without acknowledgements; without the reply, which is another "
    "packet; with the wait in the queue only for latencies, of which it is a part). The line is "
    "fitted by least squares: measured = base + factor times stages. The rest is measured less "
    "stages, what no stage covers."
)
_CONCLUSIONS = (
    "What follows: a factor near 1 with a steady rest says that what grows with the message grows "
    "inside these stages. A factor above 1 says that something outside grows with them, such as "
    "copies in the network stack; one below 1 that they overlap: both ends work at once, or the "
    "packets of one message do.",
    "What does not follow: R² is the share of the differences between points that the line "
    "reproduces, not a share of time; a good fit does not make the stages the cause. A few sizes "
    "hold few degrees of freedom. Header bytes are a constant of a transport as long as a message "
    "is one packet, so their effect cannot be told from the base: compare transports for that. "
    "CPU time stands beside the fit, where rxecpu measured it, and is not in it.",
)
_EMULATED = (
    "Emulated: all axes count instructions. Whether stages and latency move together can be seen; "
    "how much of the time of a real machine the stages take cannot, and no such share is given."
)


def section(run: Run) -> Section:
    """Return the section: a figure per accelerator, quantity and kind."""
    found = subjects(value for series in run.series for value in _values(series))
    if not found:
        return Section("correlation", _TITLE, notes=(Note(_ABSENT),))
    groups = grouping.by(found, lambda one: (one.accelerator, one.quantity, one.kind))
    drivers = {
        (item.accelerator, item.benchmark, item.transport): item.driver
        for item in run.series
        if item.metric.startswith("stage.")
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
    factor, unit = fmt.scale("ns", [point.measured for point in points])
    unit = wording.time_unit(unit, first.accelerator)
    fits = [(one, one.fit()) for one in members]
    quantity = _QUANTITIES[first.quantity]
    kind = wording.KINDS.get(first.kind, first.kind)
    known = [drivers.get((one.accelerator, one.benchmark, one.transport), "") for one in members]
    versions = fmt.listing(sorted({name for name in known if name}))
    return Figure(
        slug=grouping.slug("correlation", first.quantity, first.kind, first.accelerator),
        title=f"{quantity[0].upper()}{quantity[1:]}, against its stages",
        caption=(
            f"One point per size and repetition ({kind}). Solid: the fitted line. Dotted: where "
            "the stages would be all of it; what lies above is the rest. " + _interval_text(fits),
            f"Driver: {versions or 'not recorded'}.",
            wording.accelerator_caption(first.accelerator),
        ),
        panels=tuple(_panel(one, line, factor, unit) for one, line in fits),
        legend=(),
        table=_table(fits, factor, unit),
    )


def _interval_text(fits: Sequence[tuple[Subject, Fit | None]]) -> str:
    if any(line is None or line.factor.low is None for _, line in fits):
        return f"No intervals: they take at least {ENOUGH_REPETITIONS} repetitions."
    return (
        f"Intervals in the table: 95 %, from a bootstrap of {RESAMPLES} draws of whole "
        "repetitions; with few repetitions they are somewhat too narrow."
    )


def _panel(one: Subject, line: Fit | None, factor: float, unit: str) -> Panel:
    title = f"{one.benchmark} over {one.transport}"
    chart = plots.scatter(
        [
            plots.Dot(
                point.stages / factor,
                point.measured / factor,
                f"{fmt.size(point.size)}, repetition {point.repetition}: measured "
                f"{fmt.number(point.measured / factor)}, stages "
                f"{fmt.number(point.stages / factor)} {unit}",
            )
            for point in one.points
        ],
        line=(line.base.value / factor, line.factor.value) if line else None,
        colour=palette.transport_style(one.transport).colour.light,
        x_title=f"sum of stages ({unit})",
        y_title=f"measured ({unit})",
    )
    fitted = (
        f"base {fmt.number(line.base.value / factor)} {unit}, factor "
        f"{fmt.number(line.factor.value)}, R² {line.r_squared:.2f}"
        if line
        else "no line fits"
    )
    rest = "; ".join(
        f"{fmt.size(size)} {fmt.number(value.value / factor)} {unit}"
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
            share = () if emulated else (f"{stages / measured:.1%}" if measured else fmt.ABSENT,)
            headers, cpu = one.header_bytes.get(size), one.cpu_ns.get(size)
            per_packet = fmt.ABSENT if cpu is None else fmt.number(cpu / factor, 4)
            rows.append(
                (
                    one.benchmark,
                    one.transport,
                    fmt.size(size),
                    fmt.number(measured / factor, 4),
                    fmt.number(stages / factor, 4),
                    *_cells(rest, factor),
                    *share,
                    fmt.ABSENT if headers is None else fmt.number(headers),
                    *((per_packet,) if timed else ()),
                    *(_cells(line.base, factor) if line else (fmt.ABSENT, fmt.ABSENT)),
                    *(_cells(line.factor, 1.0) if line else (fmt.ABSENT, fmt.ABSENT)),
                    f"{line.r_squared:.3f}" if line else fmt.ABSENT,
                    str(len(one.points)),
                )
            )
    labels = [
        "size", "measured", "stages", "rest", "its 95 % CI", *([] if emulated else ["explained"]),
        "header bytes", *(["kernel CPU per packet"] if timed else []),
        "base", "its 95 % CI", "factor", "its 95 % CI", "R²", "points",
    ]  # fmt: skip
    return Table(
        f"Measured, stages and rest, in {unit} a message; header bytes of a message's packets; "
        "base, factor and R² are of all sizes together",
        (
            Column("benchmark"),
            Column("transport"),
            *(Column(name, numeric=True) for name in labels),
        ),
        tuple(rows),
    )


def _cells(estimate: Estimate, factor: float) -> tuple[str, str]:
    value = fmt.number(estimate.value / factor, 4)
    if estimate.low is None or estimate.high is None:
        return value, "none"
    low, high = (fmt.number(end / factor, 4) for end in (estimate.low, estimate.high))
    return value, f"{low} to {high}"
