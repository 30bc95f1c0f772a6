# SPDX-License-Identifier: GPL-2.0-or-later
"""Print what a packet costs in several drivers: in the terminal, as Markdown, or as JSON."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType

from rocelab import units
from rocelab.compare.packet_costs import Costs, Packet
from rocelab.terminal import grid
from rocelab.terminal.printable import printable

SCHEMA = "rocelab.lines/1"
CAVEAT = (
    "Instructions are no time: a cache miss, a CRC by PCLMUL and a copy by `rep movs` count like "
    "any other instruction. They serve differences, not shares of time (docs/limitations.md)."
)
_MARKDOWN = re.compile(r"[\\|\[\]`*_]")
_SUM = "in all"

Section = tuple[str, list[Packet]]


def _sections(costs: Costs) -> Iterator[Section]:
    """Packets that share a heading, in the order of their sizes."""

    def heading(packet: Packet) -> str:
        return f"{packet.opcode} over {packet.transport} ({packet.test})"

    for title, packets in groupby(costs.packets, heading):
        yield title, list(packets)


def _rows(costs: Costs, packets: list[Packet]) -> Iterator[tuple[str, list[str]]]:
    """Name and numbers of each row: sizes from left to right, each with all drivers."""
    for direction, stages in groupby(costs.places, lambda place: place[0]):
        for place in stages:
            values = [
                driver.costs.get(packet, {}).get(place)
                for packet in packets
                for driver in costs.drivers
            ]
            yield f"{direction} {place[1]}", [_number(value) for value in values]
        totals = [
            driver.total(packet, direction) if packet in driver.costs else None
            for packet in packets
            for driver in costs.drivers
        ]
        yield f"{direction} {_SUM}", [_number(total) for total in totals]


def _number(value: float | None) -> str:
    return units.ABSENT if value is None else units.integer(round(value))


def _headings(costs: Costs, packets: list[Packet]) -> list[str]:
    return [f"{units.size(packet.size)} {one.name}" for packet in packets for one in costs.drivers]


def render(costs: Costs, columns: int) -> RenderableType:
    """A table for each kind of packet, no wider than `columns` where names allow it."""
    parts: list[RenderableType] = []
    for title, packets in _sections(costs):
        heading = printable(f"{title}, {costs.unit} for {costs.packet}")
        parts += [grid.paragraph(heading, columns, "bold"), *_grids(costs, packets, columns), ""]
    for text in (*costs.sentences, CAVEAT):
        parts.append(grid.paragraph(printable(text), min(columns, grid.WIDTH)))
    return Group(*parts)


def _grids(costs: Costs, packets: list[Packet], columns: int) -> Iterator[RenderableType]:
    """One grid, or one for each size if all together are too wide."""
    rows = [[printable(name), *numbers] for name, numbers in _rows(costs, packets)]
    heads = ["", *map(printable, _headings(costs, packets))]
    if len(packets) > 1 and grid.width((heads, *rows)) > columns:
        for packet in packets:
            yield from _grids(costs, [packet], columns)
        return
    bold = [at for at, row in enumerate(rows) if row[0].endswith(_SUM)]
    yield from grid.fit(heads, rows, columns, bold=bold)


def markdown(costs: Costs) -> str:
    """The same for a page of documentation."""
    lines = []
    for title, packets in _sections(costs):
        headings = ["", *map(_escape, _headings(costs, packets))]
        lines += [f"{_escape(title)}, {costs.unit} for {costs.packet}:", ""]
        lines += [_row(headings), _row(["---", *["---:"] * (len(headings) - 1)])]
        for name, numbers in _rows(costs, packets):
            mark = "**" if name.endswith(_SUM) else ""
            lines.append(_row([f"{mark}{_escape(cell)}{mark}" for cell in (name, *numbers)]))
        lines.append("")
    for text in costs.sentences:
        lines += [textwrap.fill(_escape(text), 120, break_on_hyphens=False), ""]
    kernels = [f"{one.name} is {one.kernel or 'unknown'}" for one in costs.drivers]
    lines.append(textwrap.fill(f"Kernels: {_escape(', '.join(kernels))}.", 120))
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape(text: str) -> str:
    """Names of sides are a user's, and may hold what Markdown or HTML read."""
    shown = html.escape(printable(text), quote=False)
    return _MARKDOWN.sub(r"\\\g<0>", shown)


def document(costs: Costs, runs: dict[str, list[str]]) -> dict[str, Any]:
    """All numbers as JSON (docs/formats/lines.md)."""
    return {
        "schema": SCHEMA,
        "accelerator": costs.accelerator,
        "unit": costs.unit,
        "figure": costs.figure,
        "rounds": costs.rounds,
        "drivers": [
            {
                "side": one.name,
                "kernel": one.kernel,
                "crc32": one.crc_by,
                "runs": runs[one.name],
                "packets": [
                    {
                        "transport": packet.transport,
                        "test": packet.test,
                        "opcode": packet.opcode,
                        "size": packet.size,
                        "stages": {f"{way}.{stage}": cost for (way, stage), cost in stages.items()},
                        "spread": {
                            f"{way}.{stage}": gap
                            for (way, stage), gap in one.spread[packet].items()
                        },
                    }
                    for packet, stages in sorted(one.costs.items())
                ],
            }
            for one in costs.drivers
        ],
        "sentences": list(costs.sentences),
    }
