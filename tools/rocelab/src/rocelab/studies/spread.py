# SPDX-License-Identifier: GPL-2.0-or-later
"""A study's plan over more nodes than its two."""

from __future__ import annotations

from dataclasses import replace

from rocelab.bench.catalog import COLLECTIVES
from rocelab.bench.plan import Benchmark, MpiPlan, Plan
from rocelab.bench.plan_file import MOST_NODES
from rocelab.errors import UsageError
from rocelab.studies.study import Study


def over(nodes: int, plan: Plan, study: Study) -> Plan:
    """The plan with its collectives on as many of so many nodes as the study would have had.

    The same ranks go in blocks no larger than the plan's smallest, if the nodes are enough; or
    every node has as many as each of the plan's. Raises UsageError when the study is about two
    nodes, or the nodes are too many.
    """
    if nodes <= plan.testbed.nodes:
        return plan
    if not study.more_nodes:
        raise UsageError(
            f"{study.name} is about {plan.testbed.nodes} nodes, and {nodes} are named",
            action=f"Name {plan.testbed.nodes} of them.",
        )
    if nodes > MOST_NODES:
        raise UsageError(f"{nodes} nodes are more than {MOST_NODES}", action="Name fewer.")
    block = min(b.mpi.ranks_per_node for b in plan.benchmarks if b.mpi and _spreads(b))

    def placed(mpi: MpiPlan) -> MpiPlan:
        if study.more_nodes == "more ranks":
            return replace(mpi, ranks=mpi.ranks_per_node * nodes)
        return replace(mpi, ranks_per_node=max(-(-mpi.ranks // nodes), block))

    benchmarks = tuple(
        replace(b, mpi=placed(b.mpi)) if b.mpi and _spreads(b) else b for b in plan.benchmarks
    )
    return replace(plan, testbed=replace(plan.testbed, nodes=nodes), benchmarks=benchmarks)


def _spreads(benchmark: Benchmark) -> bool:
    return benchmark.test in COLLECTIVES
