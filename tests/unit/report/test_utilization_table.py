# SPDX-License-Identifier: GPL-2.0-or-later
"""What a rate of messages keeps busy, by what one more message costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocelab import units
from rocelab.record import read
from rocelab.report import cpu_split, utilization_table
from rocelab.report.figure import Table
from study_results import Line, table, write_run

COST, SIZE, HALF_TRIP = 40_000.0, 64, 20_000.0
"""ns: the machine is busy with two processors."""


def line(test: str, metric: str, value: float, kind: str, unit: str = "ns") -> Line:
    return Line(test, "tcp", metric, {SIZE: value}, kind, unit, tool="perftest", exact=True)


def utilization(folder: Path, accelerator: str) -> Table:
    lines = [
        line("send_lat", "cost.message", COST, "marginal"),
        line("send_lat", "cost.message", 1e9, "start"),
        line("send_lat", "latency.mean", HALF_TRIP, "one_way_half_rtt"),
        line("send_lat", "cpu.busy_cores", 2.5, "cores", "1"),
        line("send_bw", "cpu.utilization", 0.75, "proc_stat", "1"),
        line("send_bw", "cpu.cores", 4, "counter", "1"),
    ]
    run = read.load(write_run(folder, table(lines, accelerator=accelerator)))
    (only,) = utilization_table.tables(run)
    section = cpu_split.section(run)
    assert section is not None
    assert section.tables == (only,)
    return only


def rows(some: Table) -> dict[str, dict[str, str]]:
    labels = [column.label for column in some.columns]
    return {row[0]: dict(zip(labels, row, strict=True)) for row in some.rows}


def test_processors_that_a_rate_keeps_busy(tmp_path: Path) -> None:
    by_name = rows(utilization(tmp_path / "run", "native"))
    cost = by_name["perftest send_lat"]
    assert cost["at 10,000 messages/s"] == units.number(COST * 10_000 / 1e9)
    assert cost["at the measured rate"] == units.number(COST / HALF_TRIP)
    assert cost["by rxecpu"] == units.number(2.5)
    assert cost["by perftest"] == units.ABSENT
    ticks = by_name["perftest send_bw"]
    assert ticks["by perftest"] == units.number(0.75 * 4)
    assert ticks["message"] == units.ABSENT


def test_a_message_and_its_byte(tmp_path: Path) -> None:
    some = utilization(tmp_path / "run", "native")
    cost = rows(some)["perftest send_lat"]
    unit = some.caption.partition("(")[2].partition(")")[0]
    scale = {"ns": 1.0, "µs": 1e3}[unit]
    assert cost["message"] == units.number(COST / scale)
    assert cost["byte"] == units.number(COST / scale / SIZE)


@pytest.mark.parametrize("accelerator", ["icount", "tcg"])
def test_no_share_of_emulated_time(tmp_path: Path, accelerator: str) -> None:
    some = utilization(tmp_path / "run", accelerator)
    labels = [column.label for column in some.columns]
    assert not {"at the measured rate", "by rxecpu", "by perftest"} & set(labels)
    rates = [label for label in labels if label.startswith("at ")]
    counted = ["at 10,000 messages/s (M instructions/s)"]
    assert rates == (counted if accelerator == "icount" else [])
    assert "processors" not in some.caption
