# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the commands of a plan may run, and what they take along: it may be a stranger's plan."""

from __future__ import annotations

from pathlib import Path

from rocelab.errors import CellError, UsageError
from rocelab.plans.plan import Plan
from rocelab.strict import quote


def check(plan: Plan, *, permitted: bool) -> None:
    """Refuse a plan whose commands would run on a real machine, unless the user permits it.

    A virtual machine has no network and shares no folder with this machine.
    """
    testbed = plan.testbed
    if permitted or not (testbed.provider.own_hosts or testbed.native):
        return
    for benchmark in plan.benchmarks:
        if benchmark.command is not None:
            where = "this machine" if testbed.native else "your hosts"
            words = " ".join(benchmark.command.client)
            raise UsageError(
                f"the plan runs commands of its own on {where}",
                cause=f"the first is {quote(words)}",
                action="Read its tables [benchmark.command], then give --commands.",
            )


def folder_of_plan(name: str) -> Path | None:
    """Return the folder that a plan's command takes along, None without one. Raises CellError.

    It is below the current folder; no link leads out.
    """
    if not name:
        return None
    here = Path.cwd().resolve()
    folder = (here / name).resolve()
    if not folder.is_relative_to(here):
        raise CellError(
            f"the command's folder {quote(name)} is not below {here}",
            cause="a plan takes along only what is below the current folder",
            action="Start rocelab in that folder, or copy it here.",
        )
    return folder
