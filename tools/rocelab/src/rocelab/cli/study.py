# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab study list | show | run | report`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rocelab.bench.catalog import TRANSPORTS
from rocelab.bench.plan import Plan
from rocelab.bench.plan_file import MOST_SWITCHES
from rocelab.cli import console
from rocelab.cli.hosts import File
from rocelab.cli.hosts import chosen as chosen_hosts
from rocelab.cli.run import carry_out, elsewhere
from rocelab.cli.testbed import DEFAULT, Provider
from rocelab.errors import UsageError
from rocelab.strict import listed, shown
from rocelab.studies import library, spread

if TYPE_CHECKING:
    from rocelab.report.runfolder import Run

app = typer.Typer(
    name="study",
    help="Published studies: their plans to run, their claims as checks.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="A study, as `gaiser2010`.", metavar="NAME")]


@app.command("list")
def list_() -> None:
    """Name the studies."""
    from rocelab.studies import view

    console.out.print(view.overview([library.study(name) for name in library.NAMES]))


@app.command()
def show(name: Name) -> None:
    """Print a study: question, setting, published figures, plans, claims and their checks."""
    from rocelab.studies import view

    plans = [library.plan(name, quick=quick) for quick in (False, True)]
    console.out.print(view.whole(library.study(name), plans))


@app.command()
def run(
    study: Name,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small: 2 ranks, to 16 KiB, on two emulated nodes.")
    ] = False,
    nodes: Annotated[
        str | None,
        typer.Option(help="Hosts of the inventory, as `a,b`: provider ssh.", metavar="NAMES"),
    ] = None,
    transports: Annotated[
        str | None,
        typer.Option(help="Only these of the plan, as `tcp,rxe-v1`.", metavar="NAMES"),
    ] = None,
    switches: Annotated[
        int | None,
        typer.Option(
            help="Between the nodes: made there, or, of hosts of your own, what is there.",
            min=0,
            max=MOST_SWITCHES,
            metavar="N",
        ),
    ] = None,
    inventory: File = None,
    provider: Annotated[
        Provider | None, typer.Option(help="Run the plan there instead of where it says.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where run folders go.", metavar="DIR")] = Path("runs"),
    testbed: Annotated[
        str, typer.Option(help="Use this testbed if it is up and fits.", metavar="NAME")
    ] = DEFAULT,
) -> None:
    """Carry out a study's plan, report, and answer its claims.

    In full size on hosts of your own; with --quick on the embedded testbed, in minutes. Without
    --transports, those of adapters are left out where the inventory names no adapter. Where a
    claim is about what a switch adds: once with --switches 0 and once with 1, then `study report`
    with --beside. Go on with an interrupted run by `rocelab run --resume RUN`. The report is the
    last line on stdout.
    """
    plan = library.plan(study, quick=quick)
    if nodes is not None:
        if provider not in (None, Provider.SSH):
            raise UsageError("--nodes are hosts of the inventory: provider ssh, no other")
        provider = Provider.SSH
    plan = elsewhere(plan, provider, icount=False, native=False)
    if switches is not None:
        plan = replace(plan, testbed=replace(plan.testbed, switches=switches))
    names = None if nodes is None else nodes.split(",")
    if names is not None:
        plan = spread.over(len(chosen_hosts(inventory, names)), plan, library.study(study))
    if transports is not None:
        plan = _only(plan, transports.split(","))
    elif adapters := [name for name in plan.transports if TRANSPORTS[name].by == "adapter"]:
        hosts = chosen_hosts(inventory, names) if plan.testbed.provider == "ssh" else ()
        if not any(host.verbs for host in hosts):
            why = "no host of the inventory names a `verbs` device"
            console.err.print(f"left out: {listed(adapters)}: {why}", markup=False)
            plan = _only(plan, [name for name in plan.transports if name not in adapters])
    outcome = carry_out(plan, out=out, name=testbed, inventory=inventory, nodes=names)
    _answer(*_loaded(outcome.path))
    console.out.print(str(outcome.path / "report.html"), markup=False)
    raise typer.Exit(int(outcome.exit_code))


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A run's folder.", metavar="RUN")],
    beside: Annotated[
        Path | None,
        typer.Option(
            help="A run of the same study through more or fewer switches, for what one adds.",
            metavar="RUN",
        ),
    ] = None,
) -> None:
    """Answer a study's claims from a run, and write its report anew.

    Reads the results alone. Published figures stand beside measured ones in the report, and never
    beside emulated ones.
    """
    from rocelab.report import build

    found, study = _loaded(run)
    other, others = (None, study) if beside is None else _loaded(beside)
    if others != study:
        raise UsageError(
            f"{beside} answers {others}, and {run} answers {study}",
            action="Give two runs of one study.",
        )
    page = build(run, beside)
    _answer(found, study, other)
    console.out.print(str(page), markup=False)


def _loaded(path: Path) -> tuple[Run, str]:
    """A run, and the name of the study whose claims it answers."""
    from rocelab.report import runfolder

    run = runfolder.load(path)
    return run, _study_of(run, path)


def _answer(run: Run, name: str, beside: Run | None = None) -> None:
    from rocelab.report.study import answered, apart
    from rocelab.studies import view

    study = library.study(name)
    unlike = [] if beside is None else apart(run, beside)
    console.out.print(view.answered(study, answered(study, run, beside), unlike))


def _study_of(run: Run, path: Path) -> str:
    name = run.plan.text("study")
    if not name:
        raise UsageError(
            f"the run in {path} answers no study",
            cause="its plan names none",
            action=f'Run a study, or say study = "{library.NAMES[0]}" in the plan.',
        )
    return name


def _only(plan: Plan, wanted: list[str]) -> Plan:
    """The plan over these of its transports alone. Raises UsageError."""
    for name in wanted:
        if name not in plan.transports:
            raise UsageError(
                f"the study's plan has no transport {shown(name)}",
                action=f"choose from {listed(plan.transports)}",
            )
    chosen = tuple(name for name in TRANSPORTS if name in wanted)
    benchmarks = tuple(
        replace(b, transports=tuple(t for t in b.transports if t in chosen))
        for b in plan.benchmarks
        if set(b.transports) & set(chosen)
    )
    return replace(plan, transports=chosen, benchmarks=benchmarks)
