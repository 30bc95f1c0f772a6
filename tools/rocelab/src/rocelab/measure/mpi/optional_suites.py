# SPDX-License-Identifier: GPL-2.0-or-later
"""Leave out of a plan the optional benchmarks whose suite the nodes lack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rocelab.errors import CellError, UsageError
from rocelab.measure.mpi import launch, mpi_step
from rocelab.plans.benchmarks.mpi.suites import SUITES
from rocelab.plans.plan import Benchmark, Plan
from rocelab.testbed.node import Node


def leave_out_missing(plan: Plan, nodes: Sequence[Node]) -> tuple[Plan, list[str]]:
    """Return the plan without those, and why each of them was left out.

    Raises TestbedError if a node does not answer, UsageError if nothing is left.
    """
    asked = [benchmark for benchmark in plan.benchmarks if benchmark.optional]
    if not asked:
        return plan, []
    lacking: dict[Benchmark, str] = {}
    with launch.prepare(nodes, ()) as folder:
        for benchmark in asked:
            try:
                _find(plan, benchmark, nodes, folder)
            except CellError as error:
                lacking[benchmark] = f"{benchmark.tool} {benchmark.title}: {error.what}"
    left = tuple(each for each in plan.benchmarks if each not in lacking)
    if not left:
        raise UsageError(
            "the nodes have none of the plan's benchmarks",
            cause="; ".join(lacking.values()),
            action="Install the suites (docs/howto/mpi.md), or add other benchmarks to the plan.",
        )
    return replace(plan, benchmarks=left), list(lacking.values())


def _find(plan: Plan, benchmark: Benchmark, nodes: Sequence[Node], folder: str) -> None:
    """Raise CellError if one of the nodes that take part lacks the program."""
    cell = next(cell for cell in plan.cells() if cell.benchmark is benchmark)
    job = mpi_step.job_of(cell, benchmark.sizes[:1])
    launch.find(SUITES[benchmark.tool], job, nodes[: benchmark.nodes], folder)
