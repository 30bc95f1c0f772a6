# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a plan on a testbed that is up, or on one made for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from rocelab import accelerators
from rocelab.measure import runner, testbed_for_plan
from rocelab.measure.command import permission
from rocelab.measure.progress import Progress
from rocelab.measure.runner import RunOutcome
from rocelab.plans.plan import Plan
from rocelab.record.folder import RunFolder, check_out_dir
from rocelab.testbed.by_name import AnyTestbed
from rocelab.testbed.qemu.state_folder import State
from rocelab.testbed.ssh.inventory import Host


def run_plan(
    plan: Plan,
    *,
    out: Path,
    name: str,
    progress: Progress,
    hosts: Sequence[Host] = (),
    resume: Path | None = None,
    commands: bool = False,
) -> RunOutcome:
    """Run a plan, or continue the run in `resume`, and return how it ended.

    Uses testbed `name` if it is up and fits the plan. Otherwise makes a testbed, makes another one
    if a node dies, and takes it down at the end. `hosts` are those of the inventory, for provider
    ssh; `commands`: its own ones may run there. Raises what rocelab.measure.runner.run raises.
    """
    permission.check(plan, permitted=commands)
    # before minutes go by to make a testbed
    if resume is None:
        check_out_dir(out)
    else:
        RunFolder.open(resume)
    with ExitStack() as stack:
        testbed = testbed_for_plan.running(plan, name, progress.note, stack)
        if testbed is not None:
            fitted = _with_repetitions(plan, testbed, resume)
            return runner.run(
                fitted, testbed, out, resume=resume, progress=progress, commands=commands
            )
        return _on_own_testbed(plan, out, progress, hosts, resume, stack, commands)


def _with_repetitions(plan: Plan, testbed: AnyTestbed, resume: Path | None) -> Plan:
    """Return the plan with its repetitions on that testbed; a resumed run keeps its own number."""
    counts = accelerators.of(testbed.accelerator).counts_instructions
    return plan.where_counted() if counts and resume is None else plan


def _on_own_testbed(
    plan: Plan,
    out: Path,
    progress: Progress,
    hosts: Sequence[Host],
    resume: Path | None,
    stack: ExitStack,
    commands: bool,
) -> RunOutcome:
    name = f"run-{os.getpid()}"
    stack.enter_context(State(name).hold())
    own: AnyTestbed | None = None

    def remake() -> AnyTestbed:
        nonlocal own
        if own:
            own.down()
        own = testbed_for_plan.make(plan, name, hosts, progress.note)
        return own

    try:
        made = remake()
        fitted = _with_repetitions(plan, made, resume)
        return runner.run(
            *(fitted, made, out),
            resume=resume,
            progress=progress,
            remake=remake,
            commands=commands,
        )
    finally:
        if own:
            own.down()
