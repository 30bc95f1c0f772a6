# SPDX-License-Identifier: GPL-2.0-or-later
"""What a testbed cannot be is refused with the key, why, and what to write instead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rocelab.measure.testbed_for_plan import has_clock
from rocelab.plans import plan_file, testbed_rules
from rocelab.plans.catalog import Provider
from rocelab.plans.plan import LinkPlan

PLAIN = plan_file.load("demo").testbed


@pytest.mark.parametrize(
    ("changes", "key", "why"),
    [
        ({"provider": Provider.SSH, "icount": True}, "icount", "only emulated machines"),
        ({"provider": Provider.VETH, "lockstep": True}, "lockstep", "two virtual machines"),
        ({"nodes": 3, "switches": 1, "lockstep": True}, "lockstep", "without a switch"),
        ({"native": True}, "native", "only provider veth"),
        ({"provider": Provider.VETH, "native": True, "icount": True}, "native", "without icount"),
        ({"provider": Provider.SSH, "fresh": True}, "fresh", "only virtual machines"),
        ({"provider": Provider.VETH, "native": True, "fresh": True}, "fresh", "boots only"),
        ({"nodes": 3}, "nodes", "3 nodes need a switch"),
    ],
)
def test_a_testbed_that_cannot_be(changes: dict[str, Any], key: str, why: str) -> None:
    refusal = testbed_rules.refusal(replace(PLAIN, **changes))
    assert refusal is not None
    assert refusal.key == key
    assert why in refusal.why
    assert refusal.action.endswith(".")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"icount": True},
        {"lockstep": True},
        {"provider": Provider.VETH, "native": True},
        {"nodes": 3, "switches": 1, "fresh": True},
    ],
)
def test_a_testbed_that_can_be(changes: dict[str, Any]) -> None:
    assert testbed_rules.refusal(replace(PLAIN, **changes)) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"provider": Provider.VETH},
        {"provider": Provider.SSH},
        {"nodes": 3, "switches": 1},
        {"switches": 1},
        {"link": LinkPlan(loss_ppm=1)},
    ],
)
def test_lockstep_that_is_only_preferred_forbids_nothing(changes: dict[str, Any]) -> None:
    assert PLAIN.emulated_as == "lockstep"
    moved = replace(PLAIN, **changes)
    assert testbed_rules.refusal(moved) is None
    assert moved.emulated_as == "icount"


@pytest.mark.parametrize(
    ("changes", "accelerators"),
    [
        ({}, "icount lockstep kvm"),
        ({"emulation": "icount"}, "icount kvm"),
        ({"emulation": "icount", "icount": True}, "icount"),
        ({"lockstep": True}, "lockstep"),
    ],
)
def test_which_clocks_are_what_a_plan_asks_for(changes: dict[str, Any], accelerators: str) -> None:
    names = ("icount", "lockstep", "kvm")
    possible = [name for name in names if has_clock(replace(PLAIN, **changes), name)]
    assert " ".join(possible) == accelerators
