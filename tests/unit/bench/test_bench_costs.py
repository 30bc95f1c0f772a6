# SPDX-License-Identifier: GPL-2.0-or-later
"""The arithmetic of `make bench`: comparisons, and the report of a missed target."""

from __future__ import annotations

from types import ModuleType

import pytest

import script_module


@pytest.fixture(scope="module")
def costs() -> ModuleType:
    return script_module.load("tools/rocelab/bench/costs.py")


def samples(costs: ModuleType) -> dict[str, list[float]]:
    """Two loads of each module; the second of ours always costs 1,900 more."""
    return {
        costs.STOCK: [20000, 20010],
        costs.BPFTRACE: [50000, 50010],
        costs.FIXES: [20035, 20045],
        costs.BARE: [20060, 20070],
        costs.OFF: [20080, 21980],
        costs.EMPTY: [22080, 23980],
        costs.STAT: [23080, 24980],
    }


def test_additions_are_within_one_load(costs: ModuleType) -> None:
    rows = {row.name: row for row in costs.rows(samples(costs))}
    assert rows[costs.STAT].added == rows[costs.STAT].added_high == 3000
    assert rows[costs.BPFTRACE].added == 30000
    assert rows[costs.OFF].added == (21980 + 20080) / 2 - 20005
    assert costs.LIBBPF not in rows


def test_a_missed_target_names_the_largest_contributor(costs: ModuleType) -> None:
    sampled = samples(costs)
    document = {"probe_ns": {"tx": 200.0, "xmit": 50.0, "rx": 100.0, "done": None}}
    parts = costs.parts_of(sampled, document)
    assert dict(parts[costs.STAT])["rxestat's programs"] == 700
    bounds = {target.what: target for target in costs.targets(sampled, parts)}
    assert dict(parts[costs.OFF]) == {
        "the fixes of the stock driver": 35,
        "the events' branches": 25,
        "RoCE v1": 1025 - 60,
    }
    assert bounds["events off, without the fixes"].found == (1025 - 35) / 20005
    share = bounds["rxestat, of the path"]
    assert share.found == 3000 / 20005
    assert not share.met
    assert share.contributor.endswith(": 2,000")
    assert bounds["rxestat, of bpftrace"].met
    printed = costs.text(64, "instructions", sampled, list(bounds.values()))
    assert "MISSED; largest contributor: the driver's clock reads" in printed
    assert "+3,000" in printed
