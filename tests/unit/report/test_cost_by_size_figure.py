# SPDX-License-Identifier: GPL-2.0-or-later
"""What the cost of a message grows with, as a figure with its table."""

from __future__ import annotations

import polars as pl
import pytest

from cost_by_size_results import BASE, BYTE, MTU, PACKET, results
from rocelab import units
from rocelab.record.read import Json, Run
from rocelab.report import cost_by_size_figure, plots
from rocelab.report.figure import Figure

SIZES = [64, 1024, 4096, 2 * MTU, 4 * MTU, 8 * MTU]


def run(*transports: str, sizes: list[int] = SIZES) -> Run:
    table = pl.concat([results(sizes, name) for name in transports])
    table = table.with_columns(accelerator=pl.lit("icount"))
    return Run(Json({}), (), table, ())


def figure(some: Run) -> Figure:
    section = cost_by_size_figure.section(some)
    assert section is not None
    (only,) = section.figures
    return only


def test_a_panel_for_each_transport_and_a_row_for_each_line() -> None:
    drawn = figure(run("rxe-v2", "tcp"))
    assert [panel.title for panel in drawn.panels] == ["tcp", "rxe-v2"]
    (table,) = drawn.tables
    assert [row[:2] for row in table.rows] == [
        (transport, regime)
        for transport in ("tcp", "rxe-v2")
        for regime in ("one packet", "several packets")
    ]
    labels = [column.label for column in table.columns]
    one, several = (dict(zip(labels, row, strict=True)) for row in table.rows[:2])
    assert one["base"] == units.number(BASE, 4)
    assert one["KiB"] == units.number(1024 * BYTE, 4)
    assert one["further packet"] == units.ABSENT
    assert several["further packet"] == units.number(PACKET, 4)
    assert several["R²"] == "1.000"


def test_the_lines_go_through_the_points() -> None:
    """Costs are linear here, so each end of a line is a point."""
    some = run("rxe-v2")
    drawn: list[tuple[list[plots.Dot], list[plots.Line]]] = []

    def scatter(dots: list[plots.Dot], *, lines: list[plots.Line], **_: str) -> dict[str, str]:
        drawn.append((dots, lines))
        return {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "scatter", scatter)
        figure(some)
    ((dots, lines),) = drawn
    costs = {dot.x: dot.y for dot in dots}
    assert sorted(costs) == SIZES
    assert [(line.begin, line.end) for line in lines] == [(64, 4096), (2 * MTU, 8 * MTU)]
    for line in lines:
        for size in (line.begin, line.end):
            assert line.base + line.factor * size == pytest.approx(costs[size])


def test_nothing_without_three_sizes() -> None:
    assert cost_by_size_figure.section(run("tcp", sizes=SIZES[:2])) is None
