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
    rates = {name: over_time.gbit_per_s(name) for name, *_ in _LINES}
    places = range(len(rates["wire_bytes"]))
    span = over_time.step_ns * len(places)
    factor, unit = units.scale("ns", [span])
    chart = time_charts.lines(
        [edge / factor for edge in over_time.edges_ns],
        [time_charts.Line(label, colour, rates[name]) for name, label, colour in _LINES],
        x_title=f"time after the first frame ({unit})",
        y_title="Gbit/s",
        x_top=span / factor,
    )
    means = {name: 8 * sum(over_time.sums[name]) / span for name, *_ in _LINES}
    step = units.quantity(over_time.step_ns, "ns")
    figure = Figure(
        slug="throughput",
        title="Throughput and goodput",
        caption=(
            f"Sums of {step} each. Throughput: all bytes of RoCE frames. Goodput: bytes of "
            "messages whose every packet was captured, each once, counted when the last packet "
            "came; so a message longer than an interval is a peak at its end.",
            f"Mean: {units.number(means['wire_bytes'])} Gbit/s, goodput "
            f"{units.number(means['goodput_bytes'])} Gbit/s.",
        ),
        panels=(
            Panel(
                "",
                chart,
                f"Two lines over {units.quantity(span, 'ns')}. Throughput: mean "
                f"{units.number(means['wire_bytes'])}, at most "
                f"{units.number(max(rates['wire_bytes']))} Gbit/s. Goodput: mean "
                f"{units.number(means['goodput_bytes'])}, at most "
                f"{units.number(max(rates['goodput_bytes']))} Gbit/s.",
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
                        "throughput, Gbit/s",
                        "goodput, Gbit/s",
                    )
                ),
                tuple(
                    (
                        units.number(over_time.step_ns * at / factor),
                        units.grouped(over_time.sums["packets"][at]),
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
