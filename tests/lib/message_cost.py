# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of a message of the ping-pong of 64 bytes, measured on nodes of a test."""

from __future__ import annotations

from pathlib import Path

from rocelab import metrics
from rocelab.measure import runner
from rocelab.plans import plan_file
from rocelab.record import read
from rocelab.testbed.interface import Testbed

PLAN = """
[plan]
name = "{name}"
repetitions = 1
transports = {transports}
probes = {probes}
[[benchmark]]
tool = "pingpong"
test = "latency"
sizes = [64]
iterations = {count}
qp_timeout = 21
message_cost = true
"""


class Costs:
    """The cost of a message in one run, of both nodes together."""

    def __init__(self, run: Path) -> None:
        self._table = read.results(run)

    def of(self, transport: str, metric: str, kind: str) -> float:
        found = self._table.filter(transport=transport, metric=metric, kind=kind)
        assert sorted(found["node"]) == ["n1", "n2"]
        return float(found["value"].sum())

    def accounts(self, transport: str) -> dict[metrics.Account, float]:
        """The parts of it, net of the probes."""
        parts: dict[metrics.Account, float] = {}
        for row in self._table.filter(transport=transport, kind=metrics.MARGINAL).to_dicts():
            if account := metrics.Account.parse(row["metric"]):
                parts[account] = parts.get(account, 0.0) + row["value"]
        return parts


def measured(testbed: Testbed, to: Path, **words: object) -> Costs:
    """Run the plan with these words on nodes that have pingpong."""
    outcome = runner.run(plan_file.from_toml(PLAN.format(**words), "cost.toml"), testbed, to)
    assert not outcome.failed
    return Costs(outcome.path)
