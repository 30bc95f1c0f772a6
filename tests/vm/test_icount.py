# SPDX-License-Identifier: GPL-2.0-or-later
"""Instruction counts repeat on two separately booted machines under the same load."""

from __future__ import annotations

from typing import Any

import vethlab
import vmlab
from rocelab.testbed.node.parallel import at_once

SIZES = (64, 4096)
WARM_UP_BATCHES = 60
BATCHES = 120
RUNS = 3
"""The smallest mean of each stage counts, since an outside interrupt can only add to it."""

TOLERANCE = 0.001
INSTRUCTIONS = 6
"""Absolute tolerance of a stage: slabs are fuller in one boot than in the other."""
WAITING = "queue"
WAITING_TOLERANCE = 0.02
"""Excluded: waiting in a queue depends on other work and is no cost of the driver."""

Means = dict[tuple[int, str, str, str], float]


def usual(row: dict[str, Any]) -> float:
    """What a stage usually costs: its mean, but of `cqe` the cheapest packet.

    Whether a completion wakes the process depends on when that went to sleep (docs/howto/ab.md).
    """
    return float(row["min_ns" if row["stage"] == "cqe" else "mean_ns"])


def stage_means(name: str) -> Means:
    """Boot, run the loop at every size, and return each stage's mean."""
    means: Means = {}
    with vethlab.boot(name=name, icount=True) as testbed:
        assert testbed.accelerator == "icount"
        machine = testbed.nodes[0].machine
        with vmlab.healthy([machine], name):
            # the first packets of each size fill the caches of socket buffers
            for size in SIZES:
                vethlab.watched_loop(machine, size, WARM_UP_BATCHES)
            for size in SIZES * RUNS:
                document = vethlab.watched_loop(machine, size, BATCHES)
                assert document["lost"] == 0
                sent = {p["opcode_class"]: p["count"] for p in document["packets"]
                        if p["event"] == "tx"}  # fmt: skip
                assert sent["RDMA_WRITE"] == sent["ACKNOWLEDGE"] > BATCHES
                for row in document["rows"]:
                    key = (size, row["dir"], row["opcode_class"], row["stage"])
                    if row["mean_ns"] > 1.1 * row["min_ns"]:
                        print(name, key, row)
                    means[key] = min(usual(row), means.get(key, usual(row)))
    return means


def test_two_boots_give_the_same_stage_means() -> None:
    """Each stage of sent and received WRITEs and ACKs agrees at each size, as does their sum."""
    first, second = at_once(stage_means, ("count1", "count2"))
    assert first.keys() == second.keys()
    # a WRITE and an ACK have 8 and 7 stages where they are sent, 6 and 5 where they are received
    assert len(first) == len(SIZES) * 26
    apart = {}
    for key, mean in first.items():
        allowed = max(TOLERANCE * mean, INSTRUCTIONS)
        if key[-1] == WAITING:
            allowed = WAITING_TOLERANCE * mean
        if abs(second[key] - mean) > allowed:
            apart[key] = (mean, second[key])
    assert not apart, apart
    # and nothing of that shows in the whole
    worked = [key for key in first if key[-1] != WAITING]
    whole = [sum(means[key] for key in worked) for means in (first, second)]
    assert abs(whole[0] - whole[1]) <= TOLERANCE * whole[0], whole
