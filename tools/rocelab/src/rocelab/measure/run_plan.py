# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a plan on a testbed that is up, or on one made for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rocelab.measure import runner, testbed_for_plan
from rocelab.measure.progress import Progress
from rocelab.measure.runner import RunOutcome
from rocelab.plans.plan import Plan
from rocelab.record.folder import RunFolder, check_out_dir
from rocelab.testbed.by_name import AnyTestbed
from rocelab.testbed.ssh.inventory import Host


def run_plan(
    plan: Plan,
    *,
    out: Path,
    name: str,
    progress: Progress,
    hosts: Sequence[Host] = (),
    resume: Path | None = None,
) -> RunOutcome:
    """Run a plan, or continue the run in `resume`, and return how it ended.

    Uses testbed `name` if it is up and fits the plan. Otherwise makes a testbed, makes another one
    if a node dies, and takes it down at the end. `hosts` are those of the inventory, for provider
    ssh. Raises what rocelab.measure.runner.run raises.
    """
    # before minutes go by to make a testbed
    if resume is None:
        check_out_dir(out)
    else:
        RunFolder.open(resume)
    own_name = f"run-{os.getpid()}"
    found = testbed_for_plan.running(plan, name, progress.note)
    own: AnyTestbed | None = None

    def remake() -> AnyTestbed:
        nonlocal own
        if own:
            own.down()
        own = testbed_for_plan.make(plan, own_name, hosts, progress.note)
        return own

    try:
        return runner.run(
            plan,
            found or remake(),
            out,
            resume=resume,
            progress=progress,
            remake=None if found else remake,
        )
    finally:
        if own:
            own.down()
