# SPDX-License-Identifier: GPL-2.0-or-later
"""Watch a user's command: a run of a single cell, whose command has this process's streams."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rocelab.measure import runner
from rocelab.measure.command.attachment import Attachment
from rocelab.measure.command.request import Request
from rocelab.measure.runner import RunOutcome
from rocelab.plans import packages, plan_file
from rocelab.plans.plan import UNSHAPED, LinkPlan, Plan
from rocelab.testbed.by_name import VirtualTestbed

NAME = "exec"
"""Of the plan."""
_FOREVER = 86_400
"""Seconds; the most that a plan can say."""


@dataclass(frozen=True)
class Observation:
    """What is watched, and what happens to the link meanwhile."""

    probes: tuple[str, ...] = ()
    link: LinkPlan = UNSHAPED
    faults: Mapping[str, Any] = field(default_factory=dict)
    """As in a plan's `[testbed.faults]`."""
    out: Path = Path("runs")

    def plan(self, request: Request, testbed: VirtualTestbed) -> Plan:
        """Return the plan of the run. Raises UsageError."""
        spec, ready = testbed.spec, request.ready
        values = {"tcp": ready.port, "rdma_cm": ready.port, "line": ready.line}
        value = values.get(ready.by, f"{ready.seconds:g}")
        command = {
            "client": list(request.argv),
            "server": list(request.server),
            "ready": "" if ready.by == "any" else f"{ready.by}:{value}",
            "may_fail": True,
        }
        link = {
            "rate_mbit": self.link.rate_mbit,
            "delay_us": self.link.delay_us,
            "loss_ppm": self.link.loss_ppm,
        }
        faults = {"faults": list(self.faults)} if self.faults else {}
        return plan_file.from_dict(
            {
                "plan": {
                    "name": NAME,
                    "repetitions": 1,
                    "transports": [request.transport.name],
                    "probes": list(self.probes),
                    "timing_pass": False,
                },
                "testbed": {
                    "provider": str(spec.provider),
                    "line": spec.line,
                    "mtu": spec.nodes[0].mtu,
                    "nodes": len(testbed.nodes),
                    "switches": spec.switches,
                    # a plan cannot name files
                    "packages": [
                        each for each in spec.packages if re.fullmatch(packages.NAME, each)
                    ],
                    "link": link,
                    "faults": self.faults,
                },
                "benchmark": [
                    {
                        "tool": "command",
                        "test": "time",
                        "timeout": int(request.seconds or _FOREVER),
                        "command": command,
                        **faults,
                    }
                ],
            },
            "exec",
        )


def run(
    watch: Observation, request: Request, testbed: VirtualTestbed
) -> tuple[RunOutcome, Attachment]:
    """Run the command of a request into a run folder, and return how both ended.

    Raises what rocelab.measure.runner.run raises.
    """
    attached = Attachment(request)
    plan = watch.plan(request, testbed)
    outcome = runner.run(plan, testbed, watch.out, attached=attached, one_of_several=True)
    return outcome, attached
