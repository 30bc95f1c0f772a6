# SPDX-License-Identifier: GPL-2.0-or-later
"""Intervals of the cost of a message and of the start, by repetition."""

from __future__ import annotations

from io import StringIO

import polars as pl
import pytest
from rich.console import Console, Group

from rocelab import metrics
from rocelab.stats import paired
from rocelab.terminal import cost_interval_table


def step(costs: list[float]) -> pl.DataFrame:
    """A repetition for each cost, a quarter of which is n1's; the start is 100 times as much."""
    rows = [
        (repetition, node, kind, share * cost * factor)
        for repetition, cost in enumerate(costs, 1)
        for node, share in (("n1", 0.25), ("n2", 0.75))
        for kind, factor in ((metrics.MARGINAL, 1), (metrics.START, 100))
    ]
    frame = pl.DataFrame(rows, ["repetition", "node", "kind", "value"], orient="row")
    return frame.with_columns(metric=pl.lit(metrics.MESSAGE_COST))


def shown(costs: list[float], *, counts: bool = False) -> str:
    screen = StringIO()
    steps = [("pingpong latency 64 B", "tcp", step(costs))]
    table = cost_interval_table.render(steps, 80, counts=counts)
    Console(width=80, file=screen).print(Group(*table))
    return screen.getvalue()


COSTS = [20_000.0, 21_000.0, 19_000.0, 20_500.0, 19_500.0, 20_200.0, 90_000.0]


def test_one_disturbed_repetition_does_not_move_the_estimate() -> None:
    shift = paired.shift(paired.averages(COSTS))
    assert shift.interval is not None
    text = shown(COSTS)
    numbers = (shift.estimate, shift.interval.low, shift.interval.high)
    middle, low, high = (f"{number:,.0f}" for number in numbers)
    assert f"{middle} ({low} to {high})" in text
    assert 19_000 <= shift.estimate <= 21_000
    assert "95 %, ns; start in ms" in text
    assert f"{shift.estimate * 100 / 1e6:,.1f} (" in text
    assert "instructions; start in millions" in shown(COSTS, counts=True)


@pytest.mark.parametrize("number", range(6))
def test_no_interval_below_six_repetitions(number: int) -> None:
    assert shown(COSTS[:number]).strip() == ""
