# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab ab`: does a change of the driver make packets costlier or cheaper, and where?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from rocelab.cli import options
from rocelab.cli.hosts import hosts_of
from rocelab.cli.run import Lines
from rocelab.errors import ExitCode, UsageError
from rocelab.plans.catalog import Provider
from rocelab.terminal import console

if TYPE_CHECKING:
    from rocelab.plans.plan import Plan
    from rocelab.plans.side import Side
    from rocelab.record.driver_check import Check


@click.command()
@click.argument("base", help="What to compare with.", metavar="BASE")
@click.argument("change", help="What is judged against it.", metavar="CHANGE")
@click.option(
    "--plan", default="ab", help="What to measure: a built-in plan or a TOML file.", metavar="PLAN"
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1, max=99),
    help="Rounds per side; by default as the plan says: twice where "
    "instructions are counted, else 15 times.",
    metavar="N",
)
@click.option(
    "--threshold",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Exit with 1 if a stage, or a message in kernel cycles, costs more by more than this.",
    metavar="PERCENT",
)
@click.option(
    "--inventory",
    type=options.PATH,
    help="Measure on the first hosts of this TOML file, not on virtual machines.",
    metavar="FILE",
)
@options.plan_commands
@options.comparison_out
@options.icount
@click.option(
    "--bisect",
    is_flag=True,
    help="Find the first patch of CHANGE that goes beyond the threshold (BASE is good, "
    "CHANGE with all of its patches is bad).",
)
@click.option(
    "--check",
    is_flag=True,
    help="Run rdma-core's tests on both sides and send them hostile frames: is it right?",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead (docs/formats/ab.md).")
def ab(
    base: str,
    change: str,
    plan: str,
    rounds: int | None,
    threshold: float,
    inventory: Path | None,
    commands: bool,
    out: Path,
    icount: bool,
    bisect: bool,
    check: bool,
    as_json: bool,
) -> None:
    """Say whether a change of the driver makes packets costlier, where, and by how much.

    A side is a folder of patches on top of the driver's series, a variant (instrumented, events,
    delay), tree:REPOSITORY@COMMIT, parameter:NAME=VALUE, sysctl:NAME=VALUE, mtu:BYTES or
    line:LINE, or several joined with +. Both are built and loaded in turn on the same virtual
    machines. Emulated ones count instructions, which repeat exactly, but for stages whose rounds
    show that they do not; in real time the rounds are paired, and the kernel's cycles are compared,
    too, if the processor counts them. With --inventory both are loaded in turn on prepared hosts,
    which get back the driver that they had. The folder in --out has the runs, ab.json and the
    figure ab.svg. Exits with 1 if a stage or the kernel costs more by more than --threshold, if the
    driver counts more lost, repeated or refused packets, or if --check finds a difference, a
    complaint of the kernel or a dead node.
    """
    console.say("reading the plan")
    from rocelab.compare.driver_change import judge
    from rocelab.measure import comparison
    from rocelab.measure.command import permission
    from rocelab.measure.testbed_for_plan import move_plan
    from rocelab.plans import plan_file, side
    from rocelab.record import drivers_folder
    from rocelab.record.folder import check_out_dir
    from rocelab.report import ab_figure
    from rocelab.terminal import ab_tables

    if inventory and icount:
        raise UsageError(
            "--icount cannot be used with --inventory",
            cause="only emulated machines count their instructions",
            action="Leave out one of them.",
        )
    if not math.isfinite(threshold):
        raise UsageError(
            f"--threshold {threshold} is no percentage",
            cause="nothing can be compared with it",
            action="Give a number.",
        )
    provider = Provider.SSH if inventory else None
    chosen = move_plan(plan_file.load(plan), provider, icount=icount, native=False)
    first, second = side.parse(base), side.parse(change)
    permission.check(chosen, permitted=commands)  # before drivers are built
    hosts = hosts_of(chosen, inventory)
    _check_sides(chosen, (first, second), check=check)
    check_out_dir(out)
    if check:
        from rocelab.measure import driver_check

        driver_check.require_programs(chosen, (first, second))  # not after minutes of measuring
    with comparison.against(
        *(first, chosen, hosts, console.say),
        judge=judge,
        out=out,
        rounds=rounds,
        commands=commands,
        progress=Lines(),
    ) as compared:
        if bisect:
            second, patch = comparison.first_beyond(
                lambda step: compared.answer(step).is_beyond(threshold), second
            )
        answer = compared.answer(second)
    # its machines are down now, and leave their memory to those of the check
    checked = _check(chosen, (first, second)) if check else None
    sentence = ab_tables.sentence(answer, checked)
    beyond = answer.beyond(threshold)
    document = {
        **ab_tables.document(answer, first.text, second.text, compared.runs),
        "sentence": sentence,
        **({"check": checked.document()} if checked else {}),
        "threshold_percent": threshold,
        "beyond": len(beyond),
        **({"first": patch} if bisect else {}),
    }
    drivers_folder.write(compared.folder, "ab", document, ab_figure.of(answer, sentence))
    if as_json:
        console.print_json(document)
    else:
        console.out().print(ab_tables.render(answer, first.text, second.text, beyond, checked))
        if bisect:
            result = f"first beyond the threshold: {patch}" if patch else "nothing to bisect"
            console.out().print(console.clean(result), markup=False)
        console.out().print(str(compared.folder), markup=False)
    good = not answer.is_beyond(threshold) and (checked is None or checked.is_good)
    raise Exit(int(ExitCode.OK if good else ExitCode.FINDINGS))


def _check(plan: Plan, sides: tuple[Side, Side]) -> Check:
    from rocelab.measure import driver_check, driver_turns

    built = driver_turns.drivers(plan, sides, console.say)
    return driver_check.check(plan, sides, built, console.say)


def _check_sides(plan: Plan, sides: tuple[Side, Side], *, check: bool) -> None:
    """Raise UsageError unless plan and sides can be measured where the plan runs."""
    from rocelab.measure import driver_turns, host_turns

    if not plan.testbed.provider.own_hosts:
        driver_turns.check(plan)
        return
    host_turns.check(plan, sides)
    if check:
        raise UsageError(
            "--check does not run on hosts of your own",
            cause="hostile frames, and a wrong driver, can crash them",
            action="Check the sides on virtual machines: leave out --inventory.",
        )
