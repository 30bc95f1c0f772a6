# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own tests on nodes, and whether two drivers give them the same results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from rocelab.plans.catalog import TRANSPORTS
from rocelab.testbed import artifacts, verbs, verbs_ports
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import device_of

RETRIES = 5
"""Runs of a test whose outcomes differ: some race with the driver's own work queue (test_resize_cq
shrinks a queue while its completions may or may not be in it yet), on any driver."""
_RUNNER = "/tmp/pyverbs_each.py"  # noqa: S108
_EACH_SECONDS = "60"
_ALL_SECONDS = 1800

Outcomes = dict[str, str]
"""By the id of a test: pass, fail, error, skip, crash or timeout."""
Differing = dict[str, tuple[str | None, str | None]]
"""Tests with the outcomes of both drivers, None if it did not run."""


@dataclass(frozen=True)
class Compared:
    """What both drivers gave, and the tests that differed, try by try."""

    first: Outcomes
    second: Outcomes
    tries: tuple[Differing, ...]

    @property
    def different(self) -> Differing:
        """The tests that differed in every try."""
        return self.tries[-1]

    @property
    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """How often each outcome came, by driver."""
        return Counter(self.first.values()), Counter(self.second.values())


def outcomes(node: Node, line: str, transport: str, tests: Sequence[str] = ()) -> Outcomes:
    """Run the tests (all, or those named) on a node, with a GID of the transport."""
    node.put(artifacts.check_program("pyverbs_each.py", line), _RUNNER)
    end = verbs.end(node, verbs_ports.find(node), TRANSPORTS[transport])
    command = ["python3", _RUNNER, device_of(node), str(end.gid_index), _EACH_SECONDS, *tests]
    done = node.run(["env", f"--chdir={artifacts.RDMA_CORE_TESTS}", *command], timeout=_ALL_SECONDS)
    rows = [json.loads(row) for row in done.stdout.splitlines()]
    return {row["test"]: row["outcome"] for row in rows}


def _differing(one: Outcomes, other: Outcomes) -> Differing:
    return {
        test: (one.get(test), other.get(test))
        for test in sorted(one.keys() | other.keys())
        if one.get(test) != other.get(test)
    }


def compare(
    nodes: tuple[Node, Node], lines: tuple[str, str], transports: tuple[str, str]
) -> Compared:
    """Run the tests on both nodes at once; those that differ again, up to RETRIES times."""
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(outcomes, nodes, lines, transports)
        tries = [_differing(first, second)]
        while tries[-1] and len(tries) <= RETRIES:
            again = pool.map(outcomes, nodes, lines, transports, [list(tries[-1])] * 2)
            tries.append(_differing(*again))
    return Compared(first, second, tuple(tries))
