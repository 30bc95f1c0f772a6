# SPDX-License-Identifier: GPL-2.0-or-later
"""The figure of `rocelab lines`: a stack of stages for each driver, message size and transport."""

from __future__ import annotations

from rocelab import stage_table, units
from rocelab.compare.packet_costs import Costs, Packet
from rocelab.report import charts, palette, render
from rocelab.report.figure import Figure, Panel

_WAYS = {"tx": "sent", "rx": "received"}


def draw(costs: Costs, *, caption: tuple[str, ...]) -> str:
    """Return the figure as SVG."""
    sections = dict.fromkeys((packet.transport, packet.opcode) for packet in costs.packets)
    top = max(
        driver.total(packet, way)
        for driver in costs.drivers
        for packet in driver.costs
        for way in _WAYS
    )
    panels = tuple(
        _panel(costs, transport, opcode, way, top)
        for transport, opcode in sections
        for way in _WAYS
    )
    figure = Figure(
        "lines",
        "What a packet costs, kernel by kernel",
        caption,
        panels,
        (),
        (),
        costs.accelerator,
    )
    return render.figure_file(figure)


def _panel(costs: Costs, transport: str, opcode: str, way: str, top: float) -> Panel:
    packets = [
        packet
        for packet in costs.packets
        if (packet.transport, packet.opcode) == (transport, opcode)
    ]
    places = [place for place in costs.places if place[0] == way]
    bars: list[tuple[str, Packet, int]] = [
        (f"{units.size(packet.size)} {driver.name}", packet, number)
        for packet in packets
        for number, driver in enumerate(costs.drivers)
        if packet in driver.costs
    ]
    parts = [
        charts.Part(
            row=row,
            series=place[1],
            value=cost,
            label=f"{row}, {place[1]}: {cost:,.0f} {costs.unit}",
        )
        for row, packet, number in bars
        for place in places
        if (cost := costs.drivers[number].costs[packet].get(place)) is not None
    ]
    chart = charts.stacks(
        parts,
        rows=[row for row, _, _ in bars],
        series=[
            (name, palette.STAGES[name].light)
            for name in stage_table.EVERY_NAME
            if name in {stage for _, stage in costs.places}
        ],
        x_title=f"{costs.unit} for {costs.packet}",
        x_top=top,
        columns=[
            (
                "sum",
                [
                    units.integer(round(costs.drivers[number].total(packet, way)))
                    for _, packet, number in bars
                ],
            )
        ],
    )
    words = "; ".join(
        f"{row} {costs.drivers[number].total(packet, way):,.0f}" for row, packet, number in bars
    )
    title = f"{opcode} {_WAYS[way]}, {transport}"
    return Panel(title, chart, f"{title}, {costs.unit} for {costs.packet}: {words}.")
