# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab run`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rocelab.bench import plan_file
from rocelab.bench.plan import Cell, Plan
from rocelab.cli import console
from rocelab.cli.hosts import File
from rocelab.cli.hosts import chosen as chosen_hosts
from rocelab.cli.testbed import DEFAULT, Provider, prepare_nodes
from rocelab.errors import RocelabError, UsageError
from rocelab.node.prepare import offer_roce_v1
from rocelab.provider import testbeds
from rocelab.provider.qemu.state import State
from rocelab.provider.ssh import testbed as remote
from rocelab.provider.testbeds import AnyTestbed, PassingTestbed, VirtualTestbed
from rocelab.provider.veth import native

if TYPE_CHECKING:
    from rocelab.run.runner import RunOutcome


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


def _up(plan: Plan, name: str, inventory: Path | None, nodes: list[str] | None) -> AnyTestbed:
    where = plan.testbed
    if where.provider == "ssh":
        hosts = chosen_hosts(inventory, nodes)
        console.say(f"logging in to {' and '.join(host.name for host in hosts[: where.nodes])}")
        testbed: AnyTestbed = remote.up(hosts, needs_driver=plan.rxe, nodes=where.nodes)
        return _offering(plan, testbed)
    if where.native:
        testbed = native.up(
            mtu=where.mtu,
            verbs=plan.rxe,
            nodes=where.nodes,
            switches=where.switches or 0,
            say=console.say,
        )
        return _offering(plan, testbed)
    virtual = testbeds.up(
        name,
        provider="veth" if where.provider == "veth" else "qemu",
        line=where.line,
        mtu=where.mtu,
        icount=where.icount,
        nodes=where.nodes,
        switches=where.switches or 0,
        lifeline=True,
        say=console.say,
    )
    prepare_nodes(virtual, where.line)
    return _offering(plan, virtual)


def _offering(plan: Plan, testbed: AnyTestbed) -> AnyTestbed:
    """The testbed, its devices offering what the plan's transports need."""
    try:
        if plan.roce_v1:
            offer_roce_v1(testbed.nodes)
    except BaseException:
        if isinstance(testbed, PassingTestbed):
            testbed.down()
        raise
    return testbed


def elsewhere(plan: Plan, provider: Provider | None, icount: bool, native: bool) -> Plan:
    """The plan as the options change it: the same benchmarks on another testbed."""
    if native and (icount or provider not in (None, Provider.VETH)):
        raise UsageError(
            "--native has both ends on this machine itself: no other --provider, no --icount",
            action="leave one of them out",
        )
    if icount and provider not in (None, Provider.VETH):
        raise UsageError(
            f"--icount counts the instructions of one machine, and --provider {provider} has two",
            action="leave one of them out",
        )
    asked = provider.value if provider else plan.testbed.provider
    chosen = "veth" if icount or native else asked
    counting = icount or (plan.testbed.icount and chosen == "veth" and not native)
    here = native or (plan.testbed.native and chosen == "veth" and not icount)
    # what is between hosts of one's own is there, whatever a plan for another place asks for
    if chosen == "ssh":
        between = plan.testbed.switches if plan.testbed.provider == "ssh" else None
    else:
        between = plan.testbed.switches or 0
    where = replace(plan.testbed, provider=chosen, icount=counting, native=here, switches=between)
    if where.lacks_switch:
        raise UsageError(
            f"{where.nodes} nodes need a switch, and the plan has none: its hosts have their own",
            action="say switches = 1 in a copy of the plan",
        )
    return replace(plan, testbed=where)


def _fitting(plan: Plan, name: str) -> VirtualTestbed | None:
    """The named testbed, when it is up and is what the plan asks for."""
    if plan.testbed.native or plan.testbed.provider == "ssh" or not State(name).alive():
        return None
    testbed = testbeds.attach(name)
    spec, asked = testbed.spec, plan.testbed
    found = (spec.provider, spec.line, spec.nodes[0].mtu, spec.accelerator == "icount")
    there = (spec.ends >= asked.nodes, spec.switches)
    if (found, there) != (
        (asked.provider, asked.line, asked.mtu, asked.icount),
        (True, asked.switches),
    ):
        console.say(
            f"testbed {name} does not fit the plan's provider, line, MTU, icount, nodes or "
            "switches; booting another"
        )
        return None
    testbed.alive()
    _offering(plan, testbed)
    return testbed


def carry_out(
    plan: Plan,
    *,
    out: Path,
    name: str,
    inventory: Path | None,
    nodes: list[str] | None = None,
    resume: Path | None = None,
) -> RunOutcome:
    """Carry out a plan on its testbed, write the report and print the tables.

    `nodes` are hosts of the inventory, for provider ssh. Leaves by the run's exit code when there
    is nothing to report on.
    """
    from rocelab.report import build
    from rocelab.run import runner, summary

    own = f"run-{os.getpid()}"
    found = _fitting(plan, name)
    testbed = found or _up(plan, own, inventory, nodes)
    mine = None if found else testbed

    def remake() -> AnyTestbed:
        nonlocal mine
        if mine:
            mine.down()
        mine = _up(plan, own, inventory, nodes)
        return mine

    try:
        outcome = runner.run(
            plan,
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
    build(outcome.path)
    summary.show(outcome.path, console.out)
    if outcome.missing or outcome.failed:
        console.say(f"to go on: rocelab run --resume {outcome.path}")
    return outcome


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
    provider: Annotated[
        Provider | None, typer.Option(help="Run the plan there instead of where it says.")
    ] = None,
    icount: Annotated[
        bool,
        typer.Option("--icount", help="Count instructions, with provider veth in one machine."),
    ] = False,
    inventory: File = None,
    on_this_machine: Annotated[
        bool,
        typer.Option("--native", help="Provider veth on this machine itself, as root."),
    ] = False,
) -> None:
    """Carry out a plan, and report.

    Boots the plan's testbed and takes it down afterwards, unless one that fits is up (`rocelab
    up`); with provider ssh it runs on the first hosts of the inventory. Every finished cell
    is kept, whatever happens to the next one. Ends with a table, and the path of the report as
    the last line on stdout.
    """
    from rocelab.run import folder

    if (plan is None) == (resume is None):
        raise UsageError(
            "give either a PLAN or --resume RUN",
            action=f"built-in plans: {', '.join(plan_file.built_in())}",
        )
    if resume and (provider or icount or on_this_machine):
        raise UsageError(
            "a run goes on where it began: --resume takes no --provider, --icount or --native"
        )
    chosen = (
        folder.plan_of(resume)
        if resume
        else elsewhere(plan_file.load(plan or ""), provider, icount, on_this_machine)
    )
    outcome = carry_out(chosen, out=out, name=name, inventory=inventory, resume=resume)
    console.out.print(str(outcome.path / "report.html"), markup=False)
    raise typer.Exit(int(outcome.exit_code))
