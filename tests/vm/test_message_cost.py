# SPDX-License-Identifier: GPL-2.0-or-later
"""What a message costs depends neither on how many are sent nor on who watches."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

import vmlab
from message_cost import Costs, measure
from rocelab import metrics
from rocelab.record import layout
from rocelab.testbed import artifacts
from rocelab.testbed.interface import Testbed
from rocelab.testbed.node.prepare_node import install_probes

COUNTS = {"tcp": (3200, 6400), "rxe-v2": (800, 1600)}
"""After probes, starts differ by a million instructions. Most of that is the return of freed pages
to the page allocator: when, and how many it merges. It is 1.5 % of 3,200 TCP messages."""
OFF, START_OFF = 0.02, 0.1
"""What two measurements may differ by in lockstep, where the host does not decide when a frame
comes, and so whether its receiver sleeps."""
OTHER_PROGRAM_OFF = 0.25
"""What polls is net of what the probes state of themselves, which is less than they cost."""


@pytest.fixture(scope="module")
def counting(boot: vmlab.Boot) -> Iterator[Testbed]:
    """Nodes in lockstep, whose clocks count instructions."""
    with boot(name="cost", prepared=True, lockstep=True) as testbed:
        for node in testbed.nodes:
            install_probes(node, [artifacts.pingpong(vmlab.LINE)])
        yield testbed


@pytest.mark.parametrize("transport", COUNTS)
def test_neither_count_nor_probes_change_the_cost(
    counting: Testbed, transport: str, tmp_path: Path
) -> None:
    """Nor does the program change the driver's part: perftest polls, and has no other."""
    few, many = COUNTS[transport]
    words = {"transports": f'["{transport}"]'}
    alone = measure(counting, tmp_path, "latency", name="a", count=many, probes="[]", **words)
    polls = ("polled",) if transport == "rxe-v2" else ()
    probes = '["rxestat", "rxecpu"]'
    watched = measure(
        counting, tmp_path, "latency", *polls, name="w", count=few, probes=probes, **words
    )
    after = measure(counting, tmp_path, "latency", name="b", count=many, probes="[]", **words)
    cost, other, later_cost = (
        each.of(transport, metrics.MESSAGE_COST, metrics.MARGINAL)
        for each in (watched, alone, after)
    )
    assert cost == pytest.approx(other, rel=OFF)
    assert cost == pytest.approx(later_cost, rel=OFF)
    assert sum(watched.accounts(transport).values()) == pytest.approx(cost, rel=1e-6)
    assert watched.of(transport, metrics.WATCHING_COST, metrics.MARGINAL) > 0.02 * cost
    slope = statistics.fmean((cost, other, later_cost))
    watched_start = start(watched, transport, few, slope)
    assert watched_start == pytest.approx(start(alone, transport, many, slope), rel=START_OFF)
    if polls:
        driver = driver_part(watched.accounts(transport))
        polled = driver_part(watched.accounts(transport, kind=metrics.KERNEL_MARGINAL))
        assert polled == pytest.approx(driver, rel=OTHER_PROGRAM_OFF)


def start(costs: Costs, transport: str, count: int, slope: float) -> float:
    """What is left of the passes without probes if a message costs `slope`, in instructions.

    It is the mean of two passes, where the line through them has nearly all of what the shorter one
    had by chance.
    """
    marginal, intercept = (
        costs.of(transport, metrics.MESSAGE_COST, kind)
        for kind in (metrics.MARGINAL, metrics.START)
    )
    there_and_back = 2
    passes = [there_and_back * count, there_and_back * count / layout.PARTS[layout.EIGHTH]]
    return intercept + (marginal - slope) * statistics.fmean(passes)


def driver_part(parts: dict[metrics.Account, float]) -> float:
    return sum(value for account, value in parts.items() if account.owner == "rxe")
