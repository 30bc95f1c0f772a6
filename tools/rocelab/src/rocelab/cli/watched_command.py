# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab exec --watch`, its parts, and what happens to the link meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rocelab.errors import TestbedError
from rocelab.strict import quote
from rocelab.terminal import console

if TYPE_CHECKING:
    from rocelab.measure.command.request import Request
    from rocelab.measure.command.watch import Observation
    from rocelab.plans.catalog import Probe
    from rocelab.plans.plan import LinkPlan
    from rocelab.testbed.by_name import VirtualTestbed


def observation(
    *, probes: Mapping[Probe, bool], watch: bool, link: LinkPlan, faults: Path | None, out: Path
) -> Observation | None:
    """Return what is watched, None if nothing is. Raises UsageError."""
    if not (watch or any(probes.values()) or link.is_shaped or faults is not None):
        return None
    from rocelab.measure.command.watch import Observation
    from rocelab.plans import fault_file
    from rocelab.record.folder import check_out_dir
    from rocelab.strict import Table, read_toml

    read = {}
    if faults is not None:
        read = read_toml(faults, kind="plan", action="Name a file of faults.")
        fault_file.read(Table(read, quote(str(faults))[1:-1]))
    check_out_dir(out)
    chosen = tuple(str(probe) for probe, is_asked in probes.items() if is_asked)
    return Observation(chosen, link, read, out)


def run(watching: Observation, request: Request, testbed: VirtualTestbed, *, quiet: bool) -> int:
    """Run a command and print what was seen; return its status, or raise why it has none."""
    from rocelab.measure.command import watch
    from rocelab.report import build
    from rocelab.terminal import command_summary

    outcome, attached = watch.run(watching, request, testbed)
    if outcome.error:
        raise outcome.error
    if outcome.ended_by:
        raise KeyboardInterrupt(outcome.ended_by)
    build(outcome.path)
    if not quiet:
        command_summary.show(outcome.path, console.err())
        console.err().print(f"report: {outcome.path / 'report.html'}", markup=False)
    if attached.error:
        raise attached.error
    if attached.status is None:
        raise TestbedError(
            f"the command was not run: see {outcome.path}",
            cause="its nodes or its probes failed",
            action="Look at cell.json there.",
        )
    return attached.status
