# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of a message of the ping-pong of 64 bytes, measured on nodes of a test."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from rocelab import metrics
from rocelab.measure import runner
from rocelab.plans import plan_file
from rocelab.record import read
from rocelab.testbed.interface import Testbed

PLAN = """
[plan]
name = "{name}"
repetitions = {times}
transports = {transports}
probes = {probes}
"""
BENCHMARKS = {
    "latency": """
[[benchmark]]
tool = "pingpong"
test = "latency"
sizes = [{sizes}]
iterations = {count}
qp_timeout = 21
message_cost = true
""",
    "polled": """
[[benchmark]]
tool = "perftest"
test = "send_lat"
sizes = [64]
iterations = {count}
qp_timeout = 21
message_cost = true
transports = ["rxe-v2"]
""",
}


class Costs:
    """The cost of a message in one run, of both nodes together."""

    def __init__(self, run: Path) -> None:
        self._table = read.results(run)

    def of(self, transport: str, metric: str, kind: str) -> float:
        rows = self._table.filter(transport=transport, metric=metric, kind=kind)
        assert sorted(rows["node"]) == ["n1", "n2"]
        return float(rows["value"].sum())

    def by_repetition(self, transport: str, size: int, kind: str) -> list[float]:
        """The cost at one size, of all nodes together, ns."""
        rows = self._table.filter(
            transport=transport, size=size, metric=metrics.MESSAGE_COST, kind=kind, unit="ns"
        )
        sums = rows.group_by("repetition").agg(pl.col("value").sum()).sort("repetition")
        return [float(value) for value in sums["value"]]

    def accounts(
        self, transport: str, *, kind: str = metrics.MARGINAL
    ) -> dict[metrics.Account, float]:
        """The parts of it, net of the probes; or those of the benchmark that polls."""
        parts: dict[metrics.Account, float] = {}
        for row in self._table.filter(transport=transport, kind=kind).to_dicts():
            if account := metrics.Account.parse(row["metric"]):
                parts[account] = parts.get(account, 0.0) + row["value"]
        return parts


def measure(
    testbed: Testbed,
    to: Path,
    *benchmarks: str,
    times: int = 1,
    sizes: str = "64",
    **words: object,
) -> Costs:
    """Run the plan of these benchmarks, with these words, on nodes that have pingpong."""
    text = "".join((PLAN, *(BENCHMARKS[name] for name in benchmarks))).format(
        times=times, sizes=sizes, **words
    )
    outcome = runner.run(plan_file.from_toml(text, "cost.toml"), testbed, to)
    assert not outcome.failed
    return Costs(outcome.path)
