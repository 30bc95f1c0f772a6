# SPDX-License-Identifier: GPL-2.0-or-later
"""Install driver and probes on every node of a virtual testbed."""

from __future__ import annotations

from collections.abc import Callable

from rocelab.plans.catalog import PROBE_PROGRAMS
from rocelab.testbed import artifacts
from rocelab.testbed.by_name import VirtualTestbed
from rocelab.testbed.node.prepare_node import device_of, prepare


def prepare_testbed(testbed: VirtualTestbed, line: str, say: Callable[[str], None]) -> None:
    """Put driver, probes and rxe device on every node; take the testbed down if that fails."""
    try:
        driver = artifacts.driver(line)
        prepare(testbed.nodes, driver, artifacts.programs(line))
        testbed.state.mark_prepared()
    except BaseException:
        testbed.down()
        raise
    probes = ", ".join(PROBE_PROGRAMS)
    devices = " and ".join(dict.fromkeys(device_of(node) for node in testbed.nodes))
    say(f"on each node: driver rocelab-{driver.patch_id}, device {devices}, {probes}")
