# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab study list | show | run | report`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from rocelab.cli import options
from rocelab.cli.hosts import hosts_of, select_hosts
from rocelab.cli.options import DEFAULT
from rocelab.cli.run import carry_out
from rocelab.errors import UsageError
from rocelab.limits import MAX_MTU, MAX_REPETITIONS, MAX_SWITCHES, MIN_MTU
from rocelab.plans.catalog import TRANSPORTS, Provider
from rocelab.terminal import console

if TYPE_CHECKING:
    from rocelab.plans.plan import Plan
    from rocelab.record.read import Run

app = options.Group(
    name="study",
    help="Published studies: run their plans and check their claims.",
)

_study = click.argument("study", metavar="NAME", help="A study, such as `gaiser2010`.")


@app.command("list")
def list_() -> None:
    """List the studies."""
    from rocelab.studies import library
    from rocelab.terminal import study_answers

    console.out().print(study_answers.overview([library.study(name) for name in library.NAMES]))


@app.command()
@_study
def show(
    study: str,
) -> None:
    """Print a study: question, setting, figures, plans, claims, checks."""
    from rocelab.studies import library
    from rocelab.terminal import study_answers

    plans = [library.plan(study, quick=quick) for quick in (False, True)]
    console.out().print(study_answers.whole(library.study(study), plans))


@app.command()
@_study
@click.option("--quick", is_flag=True, help="Small: 2 ranks, up to 16 KiB, two emulated nodes.")
@click.option(
    "--nodes",
    help="Hosts of the inventory, such as `a,b`; by ssh unless --provider is slurm.",
    metavar="NAMES",
)
@click.option("--transports", help="Only these of the plan, such as `tcp,rxe-v1`.", metavar="NAMES")
@click.option(
    "--switches",
    type=click.IntRange(min=0, max=MAX_SWITCHES),
    help="Switches between the nodes: created, or for your own hosts those in place.",
    metavar="N",
)
@click.option(
    "--mtu",
    type=click.IntRange(min=MIN_MTU, max=MAX_MTU),
    help="MTU of the link, instead of the study's own.",
    metavar="BYTES",
)
@click.option(
    "--boots",
    type=click.IntRange(min=2, max=MAX_REPETITIONS),
    help="Repetitions, each on virtual machines booted for it.",
    metavar="N",
)
@options.inventory
@click.option(
    "--provider", type=options.OneOf(Provider), help="Where to run, instead of the plan's provider."
)
@options.run_out
@click.option(
    "--testbed",
    default=DEFAULT,
    help="Use this testbed if it is up and fits the plan.",
    metavar="NAME",
)
def run(
    study: str,
    quick: bool,
    nodes: str | None,
    transports: str | None,
    switches: int | None,
    mtu: int | None,
    boots: int | None,
    inventory: Path | None,
    provider: Provider | None,
    out: Path,
    testbed: str,
) -> None:
    """Carry out a study's plan, report, and check its claims.

    The full plan is for your own hosts; --quick takes minutes on the embedded testbed. Adapter
    transports are left out by default if the inventory names no adapter. For a claim about what a
    switch adds, run with --switches 0, run again with --switches 1, then use `study report
    --beside`. Continue an interrupted run with `rocelab run --resume RUN`. The last line on stdout
    is the report's path.
    """
    console.say("reading the plan")
    from rocelab.measure.testbed_for_plan import move_plan
    from rocelab.strict import join_values
    from rocelab.studies import library, other_testbed

    plan = library.plan(study, quick=quick)
    if nodes is not None:
        provider = provider or Provider.SSH
        if not provider.own_hosts or (provider == Provider.SLURM and inventory is None):
            raise UsageError(
                f"--nodes names hosts of the inventory, but --provider is {provider}",
                cause="only provider ssh, and slurm with --inventory, have named hosts",
                action="Leave out --provider, use --provider ssh, or write an inventory of the "
                "job's nodes: `rocelab hosts slurm >hosts.toml`.",
            )
    if provider is not None and not provider.own_hosts:
        plan = other_testbed.on_nodes(plan, library.study(study), 2)
    plan = move_plan(plan, provider, icount=False, native=False)
    if boots is not None:
        if plan.testbed.provider.own_hosts:
            raise UsageError(
                "--boots takes virtual machines, and the plan runs on hosts of your own",
                cause="rocelab does not boot them",
                action="Add --quick, or --provider qemu.",
            )
        plan = plan.with_boots(boots)
    if mtu is not None:
        plan = other_testbed.at_mtu(plan, mtu)
    if switches is not None:
        plan = replace(plan, testbed=replace(plan.testbed, switches=switches))
    names = nodes.split(",") if nodes is not None else []
    if names:
        plan = other_testbed.on_nodes(
            plan, library.study(study), len(select_hosts(inventory, names))
        )
    if transports is not None:
        plan = _only(plan, transports.split(","))
    elif adapters := [name for name in plan.transports if TRANSPORTS[name].by == "adapter"]:
        hosts = hosts_of(plan, inventory, names)
        if not any(host.verbs for host in hosts):
            why = "no host of the inventory has a `verbs` device"
            console.err().print(f"left out: {join_values(adapters)}: {why}", markup=False)
            plan = _only(plan, [name for name in plan.transports if name not in adapters])
    outcome = carry_out(plan, out=out, name=testbed, inventory=inventory, nodes=names)
    _answer(*_load(outcome.path))
    console.out().print(str(outcome.path / "report.html"), markup=False)
    raise Exit(int(outcome.exit_code))


@app.command()
@click.argument("run", type=options.PATH, help="A run folder.", metavar="RUN")
@click.option(
    "--beside",
    type=options.PATH,
    help="The study's run through more or fewer switches, to see what one adds.",
    metavar="RUN",
)
def report(
    run: Path,
    beside: Path | None,
) -> None:
    """Check a study's claims against a run, and write its report again.

    Reads only the run folder. The report shows published figures next to measured ones, never
    next to emulated ones.
    """
    console.say(f"reading {run}")
    from rocelab.measure import results
    from rocelab.report import build

    if results.repair(run):
        console.say("results.parquet was missing or damaged: made again from the cells")
    loaded_run, study = _load(run)
    other, others = (None, study) if beside is None else _load(beside)
    if others != study:
        raise UsageError(
            f"{beside} belongs to study {others}, but {run} to {study}",
            cause="each study has claims of its own",
            action="Give two runs of the same study.",
        )
    page = build(run, beside)
    _answer(loaded_run, study, other)
    console.out().print(str(page), markup=False)


def _load(path: Path) -> tuple[Run, str]:
    """A run and the name of its study."""
    from rocelab.record import read

    run = read.load(path)
    return run, _study_of(run, path)


def _answer(run: Run, name: str, beside: Run | None = None) -> None:
    from rocelab.report.study_report import apart, judge_claims
    from rocelab.studies import library
    from rocelab.terminal import study_answers

    study = library.study(name)
    unlike = [] if beside is None else apart(run, beside)
    console.out().print(
        study_answers.render_answers(study, judge_claims(study, run, beside), unlike)
    )


def _study_of(run: Run, path: Path) -> str:
    from rocelab.studies import library

    name = run.plan.text("study")
    if not name:
        raise UsageError(
            f"the run in {path} belongs to no study",
            cause="its plan names none",
            action=f'Run a study, or set study = "{library.NAMES[0]}" in the plan.',
        )
    return name


def _only(plan: Plan, names: list[str]) -> Plan:
    """The plan with only the `names` of its transports. Raises UsageError."""
    from rocelab.strict import join_values, quote

    for name in names:
        if name not in plan.transports:
            raise UsageError(
                f"the study's plan has no transport {quote(name)}",
                cause="--transports chooses among those that the plan has",
                action=f"Choose from {join_values(plan.transports)}.",
            )
    chosen = tuple(name for name in TRANSPORTS if name in names)
    benchmarks = tuple(
        replace(b, transports=tuple(t for t in b.transports if t in chosen))
        for b in plan.benchmarks
        if set(b.transports) & set(chosen)
    )
    return replace(plan, transports=chosen, benchmarks=benchmarks)
