# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab run`: carry out a plan and report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit

from rocelab.cli import options
from rocelab.cli.hosts import hosts_of
from rocelab.cli.options import DEFAULT
from rocelab.errors import RocelabError, UsageError
from rocelab.plans.catalog import Provider
from rocelab.terminal import console

if TYPE_CHECKING:
    from rocelab.measure.runner import RunOutcome
    from rocelab.plans.forecast import Forecast
    from rocelab.plans.plan import Cell, Plan


class Lines:
    """A run's progress (rocelab.measure.progress.Progress), one line per cell."""

    def __init__(self, *, each_step: bool = False) -> None:
        self._each_step = each_step
        self._cells = 0
        self._number = 0

    def run_started(self, run: str, *, cells: int, finished: int) -> None:
        self._cells = cells
        done = f", {finished} already finished" if finished else ""
        console.say(f"run {run}: {cells} cells{done}")

    def cell_started(self, cell: Cell, *, number: int) -> None:
        del cell
        self._number = number

    def step_started(self, cell: Cell, *, size: int) -> None:
        text = f"cell {self._number}/{self._cells} {cell.name}: {size} bytes"
        if self._each_step:
            console.say(text)
        elif console.redraws():
            console.err().print(f"\r\x1b[K{text:.79}", end="\r", markup=False)

    def cell_finished(
        self, cell: Cell, *, error: RocelabError | None, seconds: float, left: float | None
    ) -> None:
        if console.redraws() and not self._each_step:
            console.err().print("\r\x1b[K", end="")
        verdict = f"error: {error.what}" if error else "ok"
        rest = f", about {max(1, round(left / 60))} min left" if left and left > 5 else ""
        place = f"cell {self._number}/{self._cells}"
        console.say(f"{place} {cell.name}: {verdict} ({seconds:.0f} s{rest})")

    def note(self, text: str) -> None:
        console.say(text)


def carry_out(
    plan: Plan,
    *,
    out: Path,
    name: str,
    inventory: Path | None,
    nodes: Sequence[str] = (),
    resume: Path | None = None,
    each_step: bool = False,
    tables: bool = True,
    commands: bool = False,
) -> RunOutcome:
    """Run a plan, write the report and print the tables, unless without `tables`.

    `nodes` names hosts of the inventory, for provider ssh. Exits with the run's exit code when
    there is nothing to report on, or no report can be written because of what stopped the run.
    """
    from rocelab.measure.run_plan import run_plan
    from rocelab.report import build
    from rocelab.terminal import run_tables

    hosts = hosts_of(plan, inventory, nodes)
    outcome = run_plan(
        plan,
        out=out,
        name=name,
        progress=Lines(each_step=each_step),
        hosts=hosts,
        resume=resume,
        commands=commands,
    )
    if outcome.error:
        console.show_error(outcome.error)
    if outcome.ended_by:
        console.show_interruption(
            outcome.ended_by,
            results=f"the finished cells ({outcome.ok} are good); the one that ran is not",
            advice=f"continue with `rocelab run --resume {outcome.path}`",
        )
    reported = bool(outcome.ok or outcome.failed)
    if reported:
        console.say("writing the report")
        try:
            build(outcome.path)
            if tables:
                run_tables.show(outcome.path, console.out())
        except RocelabError:
            if outcome.error is None:
                raise
            reported = False  # what stopped the run was said, and is nearer to the cause
    if (outcome.missing or outcome.failed) and not outcome.ended_by:
        console.say(f"to continue: rocelab run --resume {outcome.path}")
    if not reported:
        raise Exit(int(outcome.exit_code))
    return outcome


def _outcome_document(outcome: RunOutcome) -> dict[str, Any]:
    return {
        "schema": "rocelab.run_outcome/1",
        "run": str(outcome.path),
        "report": str(outcome.path / "report.html"),
        "status": outcome.status,
        "ok": outcome.ok,
        "failed": list(outcome.failed),
        "missing": outcome.missing,
        "exit_code": int(outcome.exit_code),
    }


def _forecast(plan: Plan, out: Path, *, repeated: bool, as_json: bool) -> None:
    """Print what the plan will do; how often, and how much, may depend on the accelerator."""
    from rocelab.plans.forecast import Forecast
    from rocelab.record import earlier_cells

    cases: dict[str, tuple[Plan, bool | None]] = {"": (plan, None)}
    if repeated and plan.where_counted() != plan:
        if plan.testbed.icount:
            cases = {"": (plan.where_counted(), True)}
        elif not plan.testbed.provider.own_hosts and not plan.testbed.native:
            cases = {"with KVM": (plan, False), "emulated": (plan.where_counted(), True)}
    forecasts = {
        case: Forecast.of(one, earlier_cells.seconds(out, counted=counted))
        for case, (one, counted) in cases.items()
    }
    if as_json:
        console.print_json(
            {
                "schema": "rocelab.dry_run/1",
                "plan": plan.name,
                "cases": [{"case": case, **asdict(one)} for case, one in forecasts.items()],
            }
        )
        return
    for case, one in forecasts.items():
        console.out().print(f"{plan.name}{f', {case}' if case else ''}:", markup=False)
        for line in _forecast_lines(one, out):
            console.out().print(f"  {console.clean(line)}", markup=False)
    for name in next(iter(forecasts.values())).cells:
        console.out().print(name, markup=False)


def _forecast_lines(one: Forecast, out: Path) -> Iterator[str]:
    from rocelab import units

    yield f"{units.plural(len(one.cells), 'cell')} with {units.plural(one.steps, 'step')}"
    text = f"at least {units.integer(one.message_bytes)} bytes of messages"
    if one.open_steps:
        text += f", and what {units.plural(one.open_steps, 'step')} send as fast as they can"
    yield text
    if one.seconds is None:
        yield f"time: unknown; {out} has no earlier run with all of these cells"
    else:
        minutes = max(1, round(one.seconds / 60))
        yield f"time: about {minutes} min, as in earlier runs in {out}, and the time to boot"


def _submit(
    chosen: Plan,
    plan: str | None,
    *,
    resume: Path | None,
    out: Path,
    inventory: Path | None,
    commands: bool,
) -> None:
    """Submit the run as a batch job, and say how to follow it."""
    from rocelab import own_process
    from rocelab.record.folder import check_out_dir
    from rocelab.testbed.slurm.submit import submit

    if chosen.testbed.provider != Provider.SLURM:
        raise UsageError(
            f"--submit needs provider slurm, and the plan's is {chosen.testbed.provider}",
            cause="only Slurm takes batch jobs",
            action="Add --provider slurm.",
        )
    check_out_dir(out)
    out = out.absolute()
    # Slurm makes no folder for the job's log
    out.mkdir(parents=True, exist_ok=True)
    words = ["--resume", str(resume.absolute())] if resume else ["--provider", "slurm"]
    if inventory:
        words += ["--inventory", str(inventory.absolute())]
    if commands:
        words.append("--commands")
    if plan is not None:
        words += ["--", str(Path(plan).absolute()) if Path(plan).is_file() else plan]
    command = (*own_process.command(), "run", "--out", str(out), *words)
    job, log = submit(command, nodes=chosen.testbed.nodes, log=out)
    lines = (
        f"submitted job {job}",
        f"its state: squeue --jobs={job}",
        f"its progress: tail -F {log}",
        f"to end it: scancel {job}",
    )
    for line in lines:
        console.out().print(console.clean(line), markup=False)


@click.command()
@click.argument(
    "plan", required=False, help="A built-in plan such as `demo`, or a TOML file.", metavar="[PLAN]"
)
@click.option(
    "--resume",
    type=options.PATH,
    help="Continue this run with its own plan; keep its finished cells.",
    metavar="RUN",
)
@options.run_out
@click.option(
    "--name",
    default=DEFAULT,
    help="Use this testbed if it is up and fits the plan.",
    metavar="NAME",
)
@click.option(
    "--provider", type=options.OneOf(Provider), help="Where to run, instead of the plan's provider."
)
@options.icount
@options.inventory
@click.option(
    "--native",
    "on_this_machine",
    is_flag=True,
    help="Run provider veth on this machine, without a VM; needs root.",
)
@options.plan_commands
@click.option(
    "--submit", "as_a_job", is_flag=True, help="With provider slurm: submit the run as a batch job."
)
@click.option("--dry-run", is_flag=True, help="Say what would run, how much it sends and how long.")
@click.option("--verbose", "-v", is_flag=True, help="Print a line for each message size.")
@click.option("--quiet", "-q", is_flag=True, help="Print only errors and the report's path.")
@options.as_json
def run(
    plan: str | None,
    resume: Path | None,
    out: Path,
    name: str,
    provider: Provider | None,
    icount: bool,
    inventory: Path | None,
    on_this_machine: bool,
    commands: bool,
    as_a_job: bool,
    dry_run: bool,
    verbose: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Carry out a plan and report.

    Uses a testbed that is up (`rocelab up`) and fits the plan, or boots one and takes it down
    afterwards. With provider ssh it uses the first hosts of the inventory, with provider slurm the
    first nodes of the job that it runs in; --submit makes that job. A finished cell is kept even if
    a later one fails. Prints tables; the last line on stdout is the report's path. With --dry-run
    it boots and measures nothing; its time comes from earlier runs in --out.
    """
    if quiet:
        if verbose:
            raise UsageError(
                "--quiet and --verbose exclude each other", action="Leave out one of them."
            )
        console.be_quiet()
    console.say("reading the plan")
    from rocelab.measure.testbed_for_plan import move_plan
    from rocelab.plans import plan_file
    from rocelab.record import folder

    if (plan is None) == (resume is None):
        raise UsageError(
            "give either a PLAN or --resume RUN",
            cause="a run has one plan, and a run that continues has its own",
            action=f"Built-in plans: {', '.join(plan_file.built_in_names())}.",
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
    if dry_run:
        _forecast(chosen, out, repeated=resume is None, as_json=as_json)
        return
    if as_a_job:
        _submit(chosen, plan, resume=resume, out=out, inventory=inventory, commands=commands)
        return
    outcome = carry_out(
        chosen,
        out=out,
        name=name,
        inventory=inventory,
        resume=resume,
        each_step=verbose,
        tables=not (quiet or as_json),
        commands=commands,
    )
    if as_json:
        console.print_json(_outcome_document(outcome))
        raise Exit(int(outcome.exit_code))
    console.out().print(str(outcome.path / "report.html"), markup=False)
    raise Exit(int(outcome.exit_code))
