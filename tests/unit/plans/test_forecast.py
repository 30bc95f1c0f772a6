# SPDX-License-Identifier: GPL-2.0-or-later
"""What a plan will do: counted by hand."""

from __future__ import annotations

import pytest

from rocelab.plans import plan_file
from rocelab.plans.forecast import Forecast

PLAN = plan_file.from_toml(
    """
[plan]
name = "small"
repetitions = 3
transports = ["tcp", "rxe-v2"]
[testbed]
provider = "qemu"
[[benchmark]]
tool = "perftest"
test = "write_lat"
sizes = [64, 1024]
iterations = 100
[[benchmark]]
tool = "perftest"
test = "write_bw"
sizes = [4096]
iterations = 10
transports = ["rxe-v2"]
""",
    "small.toml",
)


def test_bytes_are_those_of_the_messages() -> None:
    forecast = Forecast.of(PLAN, {})
    assert len(forecast.cells) == 9
    assert set(forecast.cells) == {cell.name for cell in PLAN.cells()}
    assert forecast.steps == 3 * (2 + 2 + 1)
    # a ping-pong sends each message both ways; over tcp, qperf sends for a time
    assert forecast.message_bytes == 3 * (2 * 100 * (64 + 1024) + 10 * 4096)
    assert forecast.open_steps == 3 * 2


def test_time_is_that_of_earlier_cells() -> None:
    taken = {
        ("perftest", "write_lat", "tcp"): [10.0, 20.0],
        ("perftest", "write_lat", "rxe-v2"): [30.0],
        ("perftest", "write_bw", "rxe-v2"): [5.0],
    }
    assert Forecast.of(PLAN, taken).seconds == pytest.approx(3 * (15 + 30 + 5))
    del taken["perftest", "write_bw", "rxe-v2"]
    assert Forecast.of(PLAN, taken).seconds is None
