# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict on simulated connections with one cause injected, two, or none."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from injected_causes import simulate
from rocelab import capture

pytestmark = pytest.mark.slow

REQUESTER, RESPONDER = "10.0.0.1", "10.0.0.2"
MIN_NS = 2000
"""What a cause costs at least, to be looked for."""
CLEAN = 3
"""One seed in so many has nothing injected."""
SHARES = {"one cause": 0.95, "two causes": 0.95}
"""Of the verdicts, in which the most costly cause has to come first."""


def first_fault(path: Path) -> str | None:
    """The cause in the first line of the verdict; a loss with its side."""
    result = capture.analyze([str(path)], capture.Options(threads=1)).result
    faults = [line for line in result["verdict"] if line["kind"] != "limit"]
    return _name(faults[0]) if faults else None


def _name(line: dict[str, Any]) -> str:
    sides = {REQUESTER: "loss_near", RESPONDER: "loss_far", None: "loss"}
    return sides[line["where"]] if line["cause"] == "loss" else str(line["cause"])


def judged(count: int) -> tuple[Counter[str], list[str]]:
    """How many verdicts were looked at, how many were right, and what was wrong."""
    sums: Counter[str] = Counter()
    wrong = []
    for one in simulate(count):
        said = first_fault(one.path)
        if one.seed % CLEAN == 0:
            sums["clean"] += 1
            if said:
                wrong.append(f"seed {one.seed}: {said} is invented")
            continue
        several = "two causes" if len(one.costs) > 1 else "one cause"
        # Go-Back-N on a path that reorders sends so much again that nothing can be told apart
        blurred = len(one.costs) > 1 and "reordering" in one.costs
        if blurred or max(one.costs.values(), default=0) < MIN_NS:
            continue
        sums[several] += 1
        # of two that cost about the same, either may come first
        near = {cause for cause, ns in one.costs.items() if 2 * ns >= max(one.costs.values())}
        sums[f"{several}, right"] += said in near
        if said not in near:
            wrong.append(f"seed {one.seed}: {dict(one.costs)}, and it says {said}")
    return sums, wrong


def check(count: int) -> None:
    sums, wrong = judged(count)
    print(dict(sums), *wrong, sep="\n")
    assert sums["one cause"] > count / 20
    assert not [text for text in wrong if "invented" in text]
    for causes, share in SHARES.items():
        assert sums[f"{causes}, right"] >= share * sums[causes]


def test_the_cause_that_was_injected_comes_first() -> None:
    check(900)


@pytest.mark.long
def test_the_cause_comes_first_and_none_is_invented_in_many_traces() -> None:
    check(30_000)
