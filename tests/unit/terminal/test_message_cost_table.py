# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of what one message costs, and what it says of its figures."""

from __future__ import annotations

from io import StringIO

import polars as pl
import pytest
from rich.console import Console, Group

from rocelab import metrics
from rocelab.plans import plan_file
from rocelab.terminal import message_cost_table

PLAN = """
[plan]
name = "p"
transports = ["tcp"]
[[benchmark]]
tool = "pingpong"
test = "latency"
sizes = [64]
message_cost = true
"""


Row = tuple[str, str, float, str]


def shown(others: float | None, residual: float = 0.0, start: float = 5e6) -> str:
    values: list[Row] = [
        (metrics.MESSAGE_COST, metrics.MARGINAL, 20_000.0, "ns"),
        (metrics.MESSAGE_COST, metrics.START, start, "ns"),
        (metrics.MESSAGE_COST, metrics.RESIDUAL, residual, "1"),
        *([(metrics.OTHERS, "cores", others, "1")] if others is not None else []),
    ]
    return rendered(values)


def rendered(values: list[Row]) -> str:
    table = pl.DataFrame(values, ["metric", "kind", "value", "unit"], orient="row").with_columns(
        tool=pl.lit("pingpong"),
        test=pl.lit("latency"),
        transport=pl.lit("tcp"),
        repetition=pl.lit(1),
        size=pl.lit(64),
        node=pl.lit("n1+n2"),
    )
    screen = StringIO()
    plan = plan_file.from_toml(PLAN, "p.toml")
    Console(width=80, file=screen).print(Group(*message_cost_table.render(table, plan, 80)))
    return " ".join(screen.getvalue().split())


@pytest.mark.parametrize(("others", "warns"), [(None, False), (0.01, False), (1.9, True)])
def test_other_programs_work_is_said(others: float | None, warns: bool) -> None:
    text = shown(others)
    assert "tcp 20,000 5.0" in text
    assert ("Other programs kept 1.9 processors of n1+n2 busy" in text) == warns


@pytest.mark.parametrize("residual", [0.01, -0.03])
def test_what_is_not_linear_is_said(residual: float) -> None:
    text = shown(None, residual)
    assert ("Not linear" in text) == (abs(residual) > 0.02)


def test_a_start_below_zero_is_no_start() -> None:
    """As of a bandwidth test by time, whose messages share their costs when there are many."""
    assert "tcp (a start below zero)" in shown(None, start=-5e6)


def test_cycles_alone_are_no_cost() -> None:
    """As where only root may read how long the processors were idle."""
    assert rendered([(metrics.KERNEL_CYCLES, metrics.MARGINAL, 9_000.0, "cycles")]) == ""
