# SPDX-License-Identifier: GPL-2.0-or-later
"""Throughput and goodput over time."""

from __future__ import annotations

from rocelab import units
from rocelab.capture.picture import OverTime
from rocelab.report import palette, time_charts
from rocelab.report.figure import Column, Figure, Legend, Panel, Section, Table

_LINES = (
    ("wire_bytes", "throughput", palette.HEADERS.light),
    ("goodput_bytes", "goodput", palette.MEMORY.light),
)


def section(over_time: OverTime) -> Section:
    """Return the section."""
    gbits = {name: over_time.gbit_per_s(name) for name, *_ in _LINES}
    per_gbit, rate_unit = _unit(max(gbits["wire_bytes"]))
    rates = {name: [per_gbit * one for one in gbits[name]] for name in gbits}
    places = range(len(rates["wire_bytes"]))
    span = over_time.step_ns * len(places)
    factor, unit = units.scale("ns", [span])
    chart = time_charts.lines(
        [edge / factor for edge in over_time.edges_ns],
        [time_charts.Line(label, colour, rates[name]) for name, label, colour in _LINES],
        x_title=f"time after the first frame ({unit})",
        y_title=rate_unit,
        x_top=span / factor,
    )
    means = {name: 8 * per_gbit * sum(over_time.sums[name]) / span for name, *_ in _LINES}
    step = units.quantity(over_time.step_ns, "ns")
    figure = Figure(
        slug="throughput",
        title="Throughput and goodput",
        caption=(
            f"Sums of {step} each. Throughput: all bytes of RoCE frames. Goodput: bytes of "
            "messages whose every packet was captured, each once, counted when the last packet "
            "came; so a message longer than an interval is a peak at its end.",
            f"Mean: {units.number(means['wire_bytes'])} {rate_unit}, goodput "
            f"{units.number(means['goodput_bytes'])} {rate_unit}.",
        ),
        panels=(
            Panel(
                "",
                chart,
                f"Two lines over {units.quantity(span, 'ns')}. Throughput: mean "
                f"{units.number(means['wire_bytes'])}, at most "
                f"{units.number(max(rates['wire_bytes']))} {rate_unit}. Goodput: mean "
                f"{units.number(means['goodput_bytes'])}, at most "
                f"{units.number(max(rates['goodput_bytes']))} {rate_unit}.",
            ),
        ),
        legend=tuple(Legend(label, colour) for _, label, colour in _LINES),
        tables=(
            Table(
                f"Each interval of {step}",
                tuple(
                    Column(name, numeric=True)
                    for name in (
                        f"from ({unit})",
                        "packets",
                        f"throughput, {rate_unit}",
                        f"goodput, {rate_unit}",
                    )
                ),
                tuple(
                    (
                        units.number(over_time.step_ns * at / factor),
                        units.integer(over_time.sums["packets"][at]),
                        units.number(rates["wire_bytes"][at]),
                        units.number(rates["goodput_bytes"][at]),
                    )
                    for at in places
                ),
            ),
        ),
        accelerator="",
        columns=1,
        scrolls=True,
    )
    return Section("time", "Throughput over time", figures=(figure,))


def _unit(top_gbit: float) -> tuple[float, str]:
    """How many of the unit, in which the largest rate reads best, are a Gbit/s; and its name."""
    for per_gbit, name in ((1.0, "Gbit/s"), (1e3, "Mbit/s")):
        if top_gbit * per_gbit >= 1:
            return per_gbit, name
    return 1e6, "kbit/s"
