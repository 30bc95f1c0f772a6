# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab run`: carry out a plan and report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rocelab.cli.hosts import File, select_hosts
from rocelab.cli.testbed import DEFAULT
from rocelab.errors import RocelabError, UsageError
from rocelab.plans.catalog import Provider
from rocelab.terminal import console

if TYPE_CHECKING:
    from rocelab.measure.runner import RunOutcome
    from rocelab.plans.plan import Cell, Plan


class _Lines:
    """A run's progress (rocelab.measure.progress.Progress), one line per cell."""

    def __init__(self) -> None:
        self._cells = 0
        self._number = 0

    def run_started(self, run: str, *, cells: int, kept: int) -> None:
        self._cells = cells
        done = f", {kept} already finished" if kept else ""
        console.say(f"run {run}: {cells} cells{done}")

    def cell_started(self, cell: Cell, *, number: int) -> None:
        del cell
        self._number = number

    def step_started(self, cell: Cell, *, size: int) -> None:
        # in a log, a line that overwrites itself is noise
        if sys.stderr.isatty():
            text = f"cell {self._number}/{self._cells} {cell.name}: {size} bytes"
            console.err().print(f"\r\x1b[K{text:.79}", end="\r", markup=False)

    def cell_finished(
        self, cell: Cell, *, error: RocelabError | None, seconds: float, left: float | None
    ) -> None:
        if sys.stderr.isatty():
            console.err().print("\r\x1b[K", end="")
        verdict = f"error: {error.what}" if error else "ok"
        rest = f", about {max(1, round(left / 60))} min left" if left and left > 5 else ""
        place = f"cell {self._number}/{self._cells}"
        console.say(f"{place} {cell.name}: {verdict} ({seconds:.0f} s{rest})")

    def note(self, text: str) -> None:
        console.say(text)


def _interrupted(outcome: RunOutcome) -> RocelabError:
    return RocelabError(
        f"interrupted by {outcome.ended_by}",
        cause=f"the finished cells are kept ({outcome.ok} are good); the one that ran is not",
        action=f"Continue with `rocelab run --resume {outcome.path}`.",
    )


def carry_out(
    plan: Plan,
    *,
    out: Path,
    name: str,
    inventory: Path | None,
    nodes: list[str] | None = None,
    resume: Path | None = None,
) -> RunOutcome:
    """Run a plan, write the report and print the tables.

    `nodes` names hosts of the inventory, for provider ssh. Exits with the run's exit code when
    there is nothing to report on.
    """
    from rocelab.measure.run_plan import run_plan
    from rocelab.report import build
    from rocelab.terminal import run_tables

    hosts = select_hosts(inventory, nodes) if plan.testbed.provider == Provider.SSH else ()
    outcome = run_plan(plan, out=out, name=name, progress=_Lines(), hosts=hosts, resume=resume)
    if outcome.error:
        console.show_error(outcome.error)
    if outcome.ended_by:
        console.show_error(_interrupted(outcome))
    if not outcome.ok and not outcome.failed:
        raise typer.Exit(int(outcome.exit_code))
    console.say("writing the report")
    build(outcome.path)
    run_tables.show(outcome.path, console.out())
    if outcome.missing or outcome.failed:
        console.say(f"to continue: rocelab run --resume {outcome.path}")
    return outcome


def run(
    plan: Annotated[
        str | None,
        typer.Argument(help="A built-in plan such as `demo`, or a TOML file.", metavar="PLAN"),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Continue this run with its own plan; keep its finished cells.", metavar="RUN"
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where to put the run folder.", metavar="DIR")] = Path(
        "runs"
    ),
    name: Annotated[
        str, typer.Option(help="Use this testbed if it is up and fits the plan.", metavar="NAME")
    ] = DEFAULT,
    provider: Annotated[
        Provider | None, typer.Option(help="Where to run, instead of the plan's provider.")
    ] = None,
    icount: Annotated[
        bool,
        typer.Option("--icount", help="Emulate and count instructions, even where KVM works."),
    ] = False,
    inventory: File = None,
    on_this_machine: Annotated[
        bool,
        typer.Option(
            "--native", help="Run provider veth on this machine, without a VM; needs root."
        ),
    ] = False,
) -> None:
    """Carry out a plan and report.

    Uses a testbed that is up (`rocelab up`) and fits the plan, or boots one and takes it down
    afterwards. With provider ssh it uses the first hosts of the inventory. A finished cell is kept
    even if a later one fails. Prints tables; the last line on stdout is the report's path.
    """
    from rocelab.measure.testbed_for_plan import move_plan
    from rocelab.plans import plan_file
    from rocelab.record import folder

    if (plan is None) == (resume is None):
        raise UsageError(
            "give either a PLAN or --resume RUN",
            cause="a run has one plan, and a run that continues has its own",
            action=f"Built-in plans: {', '.join(plan_file.built_in())}.",
        )
    if resume and (provider or icount or on_this_machine):
        raise UsageError(
            "--resume takes no --provider, --icount or --native",
            cause="a run continues on the testbed that it began on",
            action=f"Run `rocelab run --resume {resume}`.",
        )
    chosen = (
        folder.plan_of(resume)
        if resume
        else move_plan(plan_file.load(plan or ""), provider, icount=icount, native=on_this_machine)
    )
    outcome = carry_out(chosen, out=out, name=name, inventory=inventory, resume=resume)
    console.out().print(str(outcome.path / "report.html"), markup=False)
    raise typer.Exit(int(outcome.exit_code))
