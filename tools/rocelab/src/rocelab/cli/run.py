# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab run`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from rocelab.bench import plan_file
from rocelab.bench.plan import Cell, Plan
from rocelab.cli import console
from rocelab.cli.testbed import DEFAULT, prepare_nodes
from rocelab.errors import RocelabError, UsageError
from rocelab.provider.qemu import testbed as qemu
from rocelab.provider.qemu.state import State


class _Lines:
    """A run's progress (rocelab.run.progress.Progress), a line a cell."""

    def __init__(self) -> None:
        self._cells = 0
        self._number = 0

    def run_started(self, run: str, *, cells: int, kept: int) -> None:
        self._cells = cells
        done = f", {kept} finished before" if kept else ""
        console.say(f"run {run}: {cells} cells{done}")

    def cell_started(self, cell: Cell, *, number: int) -> None:
        del cell
        self._number = number

    def step_started(self, cell: Cell, *, size: int) -> None:
        # a line that overwrites itself would be noise in a log
        if sys.stderr.isatty():
            text = f"cell {self._number}/{self._cells} {cell.name}: {size} bytes"
            console.err.print(f"\r\x1b[K{text:.79}", end="\r", markup=False)

    def cell_finished(
        self, cell: Cell, *, error: RocelabError | None, seconds: float, left: float | None
    ) -> None:
        if sys.stderr.isatty():
            console.err.print("\r\x1b[K", end="")
        verdict = f"error: {error.what}" if error else "ok"
        rest = f", about {max(1, round(left / 60))} min left" if left and left > 5 else ""
        place = f"cell {self._number}/{self._cells}"
        console.say(f"{place} {cell.name}: {verdict} ({seconds:.0f} s{rest})")

    def note(self, text: str) -> None:
        console.say(text)


def _up(plan: Plan, name: str) -> qemu.QemuTestbed:
    where = plan.testbed
    testbed = qemu.up(name, line=where.line, mtu=where.mtu, lifeline=True, say=console.say)
    prepare_nodes(testbed, where.line)
    return testbed


def _fitting(plan: Plan, name: str) -> qemu.QemuTestbed | None:
    """The named testbed, when it is up and is what the plan asks for."""
    if not State(name).alive():
        return None
    testbed = qemu.attach(name)
    spec = testbed.spec
    if (spec.line, spec.nodes[0].mtu) != (plan.testbed.line, plan.testbed.mtu):
        console.say(f"testbed {name} does not fit the plan's line or MTU; booting another")
        return None
    testbed.alive()
    return testbed


def run(
    plan: Annotated[
        str | None,
        typer.Argument(
            help="A plan's name, as `demo`, or the path of a TOML file.", metavar="PLAN"
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Go on with this run: its own plan, its finished cells kept.", metavar="RUN"
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where run folders go.", metavar="DIR")] = Path("runs"),
    name: Annotated[
        str, typer.Option(help="Use this testbed if it is up and fits.", metavar="NAME")
    ] = DEFAULT,
) -> None:
    """Carry out a plan, and report.

    Boots the plan's testbed and takes it down afterwards, unless one that fits is up (`rocelab
    up`). Every finished cell is kept, whatever happens to the next one. Ends with a table, and
    the path of the report as the last line on stdout.
    """
    from rocelab.report import build
    from rocelab.run import folder, runner, summary

    if (plan is None) == (resume is None):
        raise UsageError(
            "give either a PLAN or --resume RUN",
            action=f"built-in plans: {', '.join(plan_file.built_in())}",
        )
    chosen = folder.plan_of(resume) if resume else plan_file.load(plan or "")
    own = f"run-{os.getpid()}"
    found = _fitting(chosen, name)
    testbed = found or _up(chosen, own)
    mine = None if found else testbed

    def remake() -> qemu.QemuTestbed:
        nonlocal mine
        if mine:
            mine.down()
        mine = _up(chosen, own)
        return mine

    try:
        outcome = runner.run(
            chosen,
            testbed,
            out,
            resume=resume,
            progress=_Lines(),
            remake=remake if mine else None,
        )
    finally:
        if mine:
            mine.down()
    if outcome.error:
        console.show_error(outcome.error)
    if not outcome.ok and not outcome.failed:
        raise typer.Exit(int(outcome.exit_code))
    console.say("writing the report")
    page = build(outcome.path)
    summary.show(outcome.path, console.out)
    if outcome.missing or outcome.failed:
        console.say(f"to go on: rocelab run --resume {outcome.path}")
    console.out.print(str(page), markup=False)
    raise typer.Exit(int(outcome.exit_code))
