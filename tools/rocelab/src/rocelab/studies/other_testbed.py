# SPDX-License-Identifier: GPL-2.0-or-later
"""A study's plan on another number of nodes, or over a link with another MTU."""

from __future__ import annotations

from dataclasses import replace

from rocelab.errors import UsageError
from rocelab.limits import MAX_NODES
from rocelab.plans.catalog import COLLECTIVES
from rocelab.plans.plan import Benchmark, MpiPlan, Plan
from rocelab.studies.claims import Study


def on_nodes(plan: Plan, study: Study, nodes: int) -> Plan:
    """The plan with its collectives spread over `nodes`, as the study would have done.

    Depending on the study, the same ranks are spread in blocks no larger than the plan's smallest
    if there are enough nodes, or each node runs as many ranks as in the plan. Raises UsageError if
    the study is about two nodes or there are too many.
    """
    fewer = nodes < plan.testbed.nodes
    if nodes == plan.testbed.nodes or (fewer and study.more_nodes != "same ranks"):
        return plan
    if not study.more_nodes:
        raise UsageError(
            f"{study.name} is about {plan.testbed.nodes} nodes, but {nodes} are named",
            cause="it says nothing about larger machines",
            action=f"Name {plan.testbed.nodes} of them.",
        )
    if nodes > MAX_NODES:
        raise UsageError(
            f"{nodes} nodes are more than {MAX_NODES}, the most a run can have",
            cause="--nodes names too many hosts",
            action="Name fewer nodes.",
        )
    block = min(b.mpi.ranks_per_node for b in plan.benchmarks if b.mpi and _spreads(b))

    def place(mpi: MpiPlan) -> MpiPlan:
        if study.more_nodes == "more ranks":
            return replace(mpi, ranks=mpi.ranks_per_node * nodes)
        return replace(mpi, ranks_per_node=max(-(-mpi.ranks // nodes), block))

    benchmarks = tuple(
        replace(b, mpi=place(b.mpi)) if b.mpi and _spreads(b) else b for b in plan.benchmarks
    )
    return replace(plan, testbed=replace(plan.testbed, nodes=nodes), benchmarks=benchmarks)


def _spreads(benchmark: Benchmark) -> bool:
    return benchmark.test in COLLECTIVES


def at_mtu(plan: Plan, mtu: int) -> Plan:
    """Return the plan at this MTU of the link, in bytes; its name says which.

    RoCE's path MTU is the largest power of two that fits, up to 4096, except where a benchmark of
    the plan has one of its own.
    """
    if mtu == plan.testbed.mtu:
        return plan
    return replace(plan, name=f"{plan.name}-mtu{mtu}", testbed=replace(plan.testbed, mtu=mtu))
