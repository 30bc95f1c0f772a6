# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own tests on nodes, and whether two drivers give them the same results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rocelab import json_text
from rocelab.errors import TestbedError
from rocelab.plans.catalog import TRANSPORTS
from rocelab.testbed import artifacts, verbs, verbs_ports
from rocelab.testbed.node import Node
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.prepare_node import device_of
from rocelab.testbed.node.private_folder import private_folder

RETRIES = 5
"""Runs of a test whose outcomes differ: some race with the driver's own work queue (test_resize_cq
shrinks a queue while its completions may or may not be in it yet), on any driver."""
_RUNNER = "pyverbs_each.py"
_EACH_SECONDS = "60"
_ALL_SECONDS = 1800

Outcomes = dict[str, str]
"""By the id of a test: pass, fail, error, skip, crash or timeout."""
Pairs = dict[str, tuple[str | None, str | None]]
"""Tests with the outcomes of both drivers in one try, None if it did not run."""
Run = Callable[[Sequence[str]], tuple[Outcomes, Outcomes]]
"""Runs the tests of these names, or all if there are none, on both drivers."""


@dataclass(frozen=True)
class Compared:
    """What both drivers gave, try by try. A test is judged and counted by its last try."""

    tries: tuple[tuple[Outcomes, Outcomes], ...]
    """First of all tests, then of those that had differed in every try before."""

    @property
    def last(self) -> Pairs:
        """The outcomes of each test in the last try in which it ran."""
        return {test: pair for one in self.tries for test, pair in _pairs(*one).items()}

    @property
    def different(self) -> Pairs:
        """The tests that differed in every try."""
        return _differing(self.last)

    @property
    def unsteady(self) -> Pairs:
        """The tests that differed at first and agreed in a later try, as they were at first."""
        differing = _differing(_pairs(*self.tries[0]))
        return {test: pair for test, pair in differing.items() if test not in self.different}

    @property
    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """How many tests had each outcome in their last try, by driver."""
        first = Counter(one for one, _ in self.last.values() if one)
        second = Counter(other for _, other in self.last.values() if other)
        return first, second


def outcomes(node: Node, line: str, transport: str, tests: Sequence[str] = ()) -> Outcomes:
    """Run the tests (all, or those named) on a node, with a GID of the transport."""
    end = verbs.end(node, verbs_ports.find(node), TRANSPORTS[transport])
    options = [device_of(node), str(end.gid_index), _EACH_SECONDS, *tests]
    with private_folder(node, "check") as folder:
        runner = f"{folder}/{_RUNNER}"
        node.put(artifacts.check_program(_RUNNER, line), runner)
        there = ["env", f"--chdir={artifacts.RDMA_CORE_TESTS}", "python3", runner]
        done = node.run([*there, *options], timeout=_ALL_SECONDS)
    try:
        rows = [json_text.parse(row) for row in done.stdout.splitlines()]
        return {str(row["test"]): str(row["outcome"]) for row in rows}
    except (ValueError, KeyError) as error:
        raise TestbedError(
            f"rdma-core's tests on {node.name} end with something else than outcomes",
            cause=str(error)[:200],
            action=f"Log in with `{node.login}` and run them there.",
        ) from error


def _pairs(first: Outcomes, second: Outcomes) -> Pairs:
    tests = sorted(first.keys() | second.keys())
    return {test: (first.get(test), second.get(test)) for test in tests}


def _differing(pairs: Pairs) -> Pairs:
    return {test: pair for test, pair in pairs.items() if pair[0] != pair[1]}


def until_equal(run: Run) -> Compared:
    """Run all tests; those that differ again, up to RETRIES times."""
    compared = Compared((run(()),))
    while compared.different and len(compared.tries) <= RETRIES:
        compared = Compared((*compared.tries, run(list(compared.different))))
    return compared


def compare(
    nodes: tuple[Node, Node], lines: tuple[str, str], transports: tuple[str, str]
) -> Compared:
    """Run the tests on both nodes at once; those that differ again, up to RETRIES times."""

    def run(tests: Sequence[str]) -> tuple[Outcomes, Outcomes]:
        def one(side: int) -> Outcomes:
            return outcomes(nodes[side], lines[side], transports[side], tests)

        first, second = at_once(one, (0, 1))
        return first, second

    return until_equal(run)
