# SPDX-License-Identifier: GPL-2.0-or-later
"""A perftest that failed for a reason that passes is started again, with its server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fake_testbed import MESSAGES, FakeTestbed
from rocelab.measure import runner
from rocelab.plans import plan_file
from rocelab.plans.benchmarks import perftest

PLAN = f"""
[plan]
name = "unconnected"
repetitions = 1
transports = ["rxe-v2"]
probes = []
[[benchmark]]
tool = "perftest"
test = "send_bw"
sizes = [64]
iterations = {MESSAGES}
"""
REFUSED = """RDMA CM event error:
Event: RDMA_CM_EVENT_REJECTED; error: 8.

ERRNO: Operation not supported.
Failed to handle RDMA CM event.
ERRNO: Operation not supported.
Failed to connect RDMA CM events.
ERRNO: Operation not supported.
"""

# printed on an emulated node next to other work; the bandwidth was 0
NO_CLOCK = "Correlation coefficient r^2: 0.898935 < 0.9\n"


class Between(FakeTestbed):
    """Clients, the warm-up among them, meet no server the first `times` times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times

    def benchmark(self, argv: tuple[str, ...]) -> tuple[int, str]:
        self.left -= 1
        return (255, REFUSED) if self.left >= 0 else super().benchmark(argv)


def only_cell(run: Path) -> Any:
    """Its cell.json."""
    (path,) = run.glob("cells/*/cell.json")
    return json.loads(path.read_text("utf-8"))


class NoClock(FakeTestbed):
    """The first `times` clients after the warm-up cannot measure their processor's clock."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def benchmark(self, argv: tuple[str, ...]) -> tuple[int, str]:
        status, said = super().benchmark(argv)
        return status, said + NO_CLOCK if 1 < len(self.clients) < 2 + self.times else said


@pytest.mark.parametrize("times", [0, 1, 10])
def test_it_is_measured_again(tmp_path: Path, times: int) -> None:
    outcome = runner.run(plan_file.from_toml(PLAN, "p.toml"), Between(times), tmp_path)
    assert not outcome.failed
    cell = only_cell(outcome.path)
    assert [step["size"] for step in cell["steps"]] == [64]


def test_so_is_one_without_a_clock(tmp_path: Path) -> None:
    testbed = NoClock(2)
    outcome = runner.run(plan_file.from_toml(PLAN, "p.toml"), testbed, tmp_path)
    assert not outcome.failed
    assert len(testbed.clients) == 4


def test_a_clock_that_is_never_measured_fails_the_cell_sooner(tmp_path: Path) -> None:
    testbed = NoClock(10)
    outcome = runner.run(plan_file.from_toml(PLAN, "p.toml"), testbed, tmp_path)
    error = only_cell(outcome.path)["error"]
    assert error["what"].endswith("it could not measure its processor's clock")
    assert len(testbed.clients) == 4


class BetweenEachSize(FakeTestbed):
    """Every seventh client, the warm-up among them, meets a server."""

    def __init__(self) -> None:
        super().__init__()
        self.nth = 0

    def benchmark(self, argv: tuple[str, ...]) -> tuple[int, str]:
        self.nth += 1
        return (255, REFUSED) if self.nth % 7 else super().benchmark(argv)


def test_the_tries_of_one_size_are_not_the_next_ones(tmp_path: Path) -> None:
    text = PLAN.replace("sizes = [64]", "sizes = [64, 128]")
    testbed = BetweenEachSize()
    outcome = runner.run(plan_file.from_toml(text, "p.toml"), testbed, tmp_path)
    # its client is answered, too, but the fake one prints 64
    assert only_cell(outcome.path)["error"]["what"].startswith(
        "ib_send_bw, 128 bytes: results are for '64'"
    )
    assert testbed.nth == 14


def test_a_server_that_is_never_there_fails_the_cell(tmp_path: Path) -> None:
    outcome = runner.run(plan_file.from_toml(PLAN, "p.toml"), Between(11), tmp_path)
    cell = only_cell(outcome.path)
    assert cell["error"]["what"] == "ib_send_bw, 64 bytes: rdma_cm did not connect the client"
    assert "Failed to connect RDMA CM events" in cell["error"]["cause"]
    assert cell["error"]["kind"] == "benchmark"


def test_an_error_after_the_connection_is_another() -> None:
    late = REFUSED + "Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n"
    assert perftest.passing(255, REFUSED)
    assert not perftest.passing(1, late)
    assert not perftest.passing(1, "Couldn't connect to 10.44.0.2:18515\n")
