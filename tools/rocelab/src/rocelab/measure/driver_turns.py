# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure two sides of a comparison in turn, on the same machines: one run folder for each turn."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from rocelab import accelerators
from rocelab.errors import CellError, ExitCode, RocelabError, UsageError
from rocelab.measure import runner
from rocelab.measure.progress import Progress
from rocelab.plans.plan import Plan
from rocelab.plans.side import Side
from rocelab.testbed import artifacts, by_name, changed_driver, lease
from rocelab.testbed.artifacts import Driver
from rocelab.testbed.by_name import VirtualTestbed
from rocelab.testbed.interface import Testbed
from rocelab.testbed.node import Node
from rocelab.testbed.node.endpoint import machines
from rocelab.testbed.node.prepare_node import offer_roce_v1, prepare
from rocelab.testbed.package_image import Packages
from rocelab.testbed.preparation import Payload
from rocelab.testbed.qemu.state_folder import State

Say = Callable[[str], None]
_Key = tuple[str, int]
"""What makes a machine of its own necessary: the kernel line and the MTU of the link."""


@dataclass(frozen=True)
class Sides:
    """What was measured: the run folders of each side, in the order of the rounds."""

    base: tuple[Path, ...]
    change: tuple[Path, ...]


D = TypeVar("D")


class Turns(Protocol[D]):
    """Machines on which the drivers of sides are loaded in turn; `D` is a built driver."""

    def drivers(self, sides: Sequence[Side]) -> list[D]:
        """Return each side's driver, built if necessary."""

    def begin(self, side: Side) -> None:
        """Make the machines of a side ready, so that what prevents it is known early."""

    def carrying(self, side: Side, driver: D) -> AbstractContextManager[Testbed]:
        """Yield the side's machines with its driver and settings; the latter are undone."""

    def down(self) -> None:
        """Leave the machines as they were found."""


def check(plan: Plan) -> None:
    """Raise UsageError unless the plan can be measured on virtual machines."""
    if plan.testbed.provider.own_hosts or plan.testbed.native:
        raise UsageError(
            "this exchanges the driver of virtual machines only",
            cause="the plan runs on hosts of your own",
            action="Choose provider veth or qemu in the plan.",
        )
    check_stages(plan)


def check_stages(plan: Plan) -> None:
    """Raise UsageError unless the plan measures stages."""
    if not plan.rxe or "rxestat" not in plan.probes:
        raise UsageError(
            "the plan measures no stages of rxe",
            cause="it has no transport of rxe, or not the probe rxestat",
            action='Add rxe-v2 to its transports and "rxestat" to its probes.',
        )


def drivers(plan: Plan, sides: Sequence[Side], say: Say) -> list[Driver]:
    """Return each side's driver, built if necessary."""
    built = []
    for side in sides:
        if side.is_built:
            say(f"building the driver of {side.text}")
        built.append(driver(side, side.line or plan.testbed.line, say))
    return built


def driver(side: Side, line: str, say: Say) -> Driver:
    """Return a side's driver for a kernel line, built here if necessary."""
    if not side.is_built:
        return artifacts.driver(line, side.variant)
    return changed_driver.build(
        line, side.variant, patches=side.patches, tree=side.tree, commit=side.commit, say=say
    )


class Machines:
    """The machines of all sides; a side with another kernel or MTU has its own."""

    def __init__(self, plan: Plan, say: Say) -> None:
        self._plan = plan
        self._say = say
        self._up: dict[_Key, VirtualTestbed] = {}
        self._locks = ExitStack()

    def __enter__(self) -> Machines:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def down(self) -> None:
        """Stop all machines."""
        while self._up:
            _, testbed = self._up.popitem()
            testbed.down()
        self._locks.close()

    def drivers(self, sides: Sequence[Side]) -> list[Driver]:
        """Return each side's driver, built if necessary."""
        return drivers(self._plan, sides, self._say)

    def begin(self, side: Side) -> None:
        """Boot a side's machines, if necessary."""
        self.of(side)

    def of(self, side: Side) -> VirtualTestbed:
        """Return a side's machines, booted if necessary, with the probes on them."""
        where = self._plan.testbed
        key = (side.line or where.line, side.mtu or where.mtu)
        if key not in self._up:
            line, mtu = key
            name = f"ab-{os.getpid()}-{len(self._up)}"
            self._locks.enter_context(State(name).hold())
            made = by_name.up(
                name,
                provider=where.provider,
                line=line,
                mtu=mtu,
                icount=where.icount,
                lockstep=where.lockstep,
                emulation=where.emulated_as,
                nodes=where.nodes,
                switches=where.switches or 0,
                packages=Packages(self._plan.packages),
                payload=Payload.of_line(line),
                lifeline=True,
                say=self._say,
            )
            self._up[key] = made
        return self._up[key]

    @contextmanager
    def carrying(self, side: Side, driver: Driver) -> Iterator[VirtualTestbed]:
        """Yield the side's machines with its driver and settings; the latter are undone."""
        testbed = self.of(side)
        prepare(testbed.nodes, driver, (), side.parameters)
        with ExitStack() as stack:
            for machine in machines(testbed.nodes):
                stack.enter_context(sysctls(machine, side.sysctls))
            if self._plan.roce_v1:
                offer_roce_v1(testbed.nodes)
            yield testbed


@contextmanager
def sysctls(machine: Node, settings: Sequence[tuple[str, str]]) -> Iterator[None]:
    """Set these on a machine for as long as the context lasts, or its lease."""
    before = []
    try:
        for name, value in settings:
            now = machine.root.run(["sysctl", "-n", name]).stdout.strip()
            if "\n" in now:
                raise UsageError(
                    f"{name} is not one sysctl",
                    cause="it names a group of them",
                    action="Write a separate sysctl:NAME=VALUE for each.",
                )
            lease.at_end(machine, ("sysctl", "-q", "-w", f"{name}={now}"))
            before.append((name, now))
            machine.root.run(["sysctl", "-q", "-w", f"{name}={value}"])
        yield
    finally:
        for name, value in reversed(before):
            machine.root.run(["sysctl", "-q", "-w", f"{name}={value}"], check=False)


def rounds_of(plan: Plan, testbed: Testbed, asked: int | None) -> int:
    """Return how often each side is measured: as asked, or as the plan says for that clock."""
    if asked:
        return asked
    return (plan.where_counted() if _counts(testbed) else plan).repetitions


def _counts(testbed: Testbed) -> bool:
    return accelerators.of(testbed.accelerator).counts_instructions


def base_first(seed: int, number: int) -> bool:
    """Say whether a round begins with the base; half of the rounds do, by the seed."""
    # a hash, because `random` may differ in another version of Python
    return hashlib.sha256(f"{seed}:{number}".encode()).digest()[0] % 2 == 0


def measure(
    plan: Plan,
    sides: tuple[Side, Side],
    built: Sequence[D],
    made: Turns[D],
    *,
    out: Path,
    rounds: int | None,
    progress: Progress,
    known: Sequence[Path] = (),
    commands: bool = False,
) -> Sides:
    """Measure base and change in seeded turns. Run folders go into `out`.

    `known` are runs of the base that need not be repeated, as counts of instructions do not.
    `commands`: the plan's own may run on hosts. Raises CellError if a cell fails: a comparison of
    what is left would mislead.
    """
    runs: tuple[list[Path], list[Path]] = (list(known), [])
    number, total = 1, 1
    while number <= total:
        order = (0, 1) if base_first(plan.seed, number) else (1, 0)
        for which in order:
            if which == 0 and known:
                continue
            name = ("base", "change")[which]
            with made.carrying(sides[which], built[which]) as testbed:
                total = rounds_of(plan, testbed, rounds)
                progress.note(f"round {number} of {total}: {name}, {sides[which].text}")
                runs[which].append(_once(plan, name, number, testbed, out, progress, commands))
        number += 1
    return Sides(tuple(runs[0]), tuple(runs[1]))


def measure_one(
    plan: Plan,
    side: Side,
    driver: Driver,
    made: Machines,
    *,
    name: str,
    out: Path,
    rounds: int | None,
    progress: Progress,
) -> tuple[Path, ...]:
    """Measure one side several times. Run folders go into `out`. Raises as `measure` does."""
    runs: list[Path] = []
    total = 1
    with made.carrying(side, driver) as testbed:
        while len(runs) < total:
            total = rounds_of(plan, testbed, rounds)
            number = len(runs) + 1
            progress.note(f"round {number} of {total}: {side.text}")
            runs.append(_once(plan, name, number, testbed, out, progress))
    return tuple(runs)


def _once(
    plan: Plan,
    name: str,
    number: int,
    testbed: Testbed,
    out: Path,
    progress: Progress,
    commands: bool = False,
) -> Path:
    where = plan.testbed
    if isinstance(testbed, VirtualTestbed):
        where = replace(where, line=testbed.spec.line, mtu=testbed.spec.nodes[0].mtu)
    fitted = plan.where_counted() if _counts(testbed) else plan
    once = replace(fitted, name=name, repetitions=1, seed=plan.seed + number, testbed=where)
    outcome = runner.run(
        once, testbed, out, progress=progress, one_of_several=True, commands=commands
    )
    if outcome.ended_by:
        raise KeyboardInterrupt(outcome.ended_by)
    if outcome.error is not None:
        raise outcome.error
    if outcome.exit_code is not ExitCode.OK:
        raise _failure(outcome)
    return outcome.path


def _failure(outcome: runner.RunOutcome) -> RocelabError:
    return CellError(
        f"{', '.join(outcome.failed)} failed",
        cause="the change breaks it, or the benchmark itself failed",
        action=f"See `rocelab show {outcome.path}`.",
    )
