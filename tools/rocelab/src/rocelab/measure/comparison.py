# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure changes of the driver against one base, or several drivers; find the first bad patch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from rocelab import accelerators
from rocelab.errors import UsageError
from rocelab.measure import driver_turns
from rocelab.measure.driver_turns import Machines, Say, Sides, Turns
from rocelab.measure.host_turns import Hosts, OnHosts
from rocelab.measure.progress import Progress
from rocelab.plans.plan import Plan
from rocelab.plans.side import Side
from rocelab.record import drivers_folder
from rocelab.stats import bisect
from rocelab.testbed.artifacts import Driver
from rocelab.testbed.changed_driver import files
from rocelab.testbed.ssh.inventory import Host

D = TypeVar("D")
"""A driver that is ready to be loaded."""


class Answer(Protocol):
    """What the runs of both sides say."""

    @property
    def accelerator(self) -> str:
        """Of the machines."""


A = TypeVar("A", bound=Answer)
Judge = Callable[[Sequence[Path], Sequence[Path]], A]
"""Makes the answer of the run folders of base and change."""


class Comparison(Generic[D, A]):
    """A base, its machines, and the changes that were measured against it, each once."""

    def __init__(
        self,
        machines: Turns[D],
        plan: Plan,
        base: Side,
        *,
        judge: Judge[A],
        out: Path,
        rounds: int | None,
        commands: bool,
        progress: Progress,
    ) -> None:
        self._machines, self._plan, self._base = machines, plan, base
        self._commands = commands
        self._judge, self._out, self._rounds, self._progress = judge, out, rounds, progress
        self._answers: dict[Side, tuple[A, Sides]] = {}
        self.folder = out
        self.runs: dict[str, list[str]] = {}
        """The runs behind the last answer, by side."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._machines.down()

    def answer(self, change: Side) -> A:
        """Return what a change does to the base."""
        if change not in self._answers:
            self._answers[change] = self._measure(change)
        answer, sides = self._answers[change]
        self.runs = {
            "base": [path.name for path in sides.base],
            "change": [path.name for path in sides.change],
        }
        return answer

    def _measure(self, change: Side) -> tuple[A, Sides]:
        sides = (self._base, change)
        built = self._machines.drivers(sides)
        if not self._answers:
            self._machines.begin(self._base)  # machines that cannot boot leave nothing
            self.folder = drivers_folder.create(self._out, "ab")
        runs = driver_turns.measure(
            *(self._plan, sides, built, self._machines),
            out=self.folder,
            rounds=self._rounds,
            commands=self._commands,
            progress=self._progress,
            known=self._runs_of_the_base(),
        )
        return self._judge(runs.base, runs.change), runs

    def _runs_of_the_base(self) -> Sequence[Path]:
        """Runs that need not be repeated: those that counted instructions."""
        for answer, sides in self._answers.values():
            if accelerators.of(answer.accelerator).counts_instructions:
                return sides.base
        return ()


def against(
    base: Side,
    plan: Plan,
    hosts: Sequence[Host],
    say: Say,
    *,
    judge: Judge[A],
    out: Path,
    rounds: int | None,
    commands: bool,
    progress: Progress,
) -> Comparison[Driver, A] | Comparison[OnHosts, A]:
    """Return a comparison on the plan's machines: on `hosts` if they are the user's own.

    With `commands`, the plan's own commands may run there.
    """
    if plan.testbed.provider.own_hosts:
        return Comparison(
            *(Hosts(plan, hosts, say), plan, base),
            judge=judge,
            out=out,
            rounds=rounds,
            commands=commands,
            progress=progress,
        )
    return Comparison(
        *(Machines(plan, say), plan, base),
        judge=judge,
        out=out,
        rounds=rounds,
        commands=commands,
        progress=progress,
    )


def one_by_one(
    plan: Plan,
    sides: Sequence[Side],
    say: Say,
    *,
    out: Path,
    rounds: int | None,
    progress: Progress,
) -> tuple[Path, list[tuple[Driver, tuple[Path, ...]]]]:
    """Measure drivers one after the other: each kernel has machines of its own.

    Returns the folder, and the driver and the runs of each side. One that cannot be built ends it
    before anything is measured, and machines that cannot boot leave nothing.
    """
    built = driver_turns.drivers(plan, sides, say)
    folder = out
    measured: list[tuple[Driver, tuple[Path, ...]]] = []
    for number, (side, driver) in enumerate(zip(sides, built, strict=True), start=1):
        with Machines(plan, say) as machines:
            machines.begin(side)
            if not measured:
                folder = drivers_folder.create(out, "lines")
            runs = driver_turns.measure_one(
                *(plan, side, driver, machines),
                name=f"driver{number}",
                out=folder,
                rounds=rounds,
                progress=progress,
            )
        measured.append((driver, runs))
    return folder, measured


def first_beyond(is_beyond: Callable[[Side], bool], bad: Side) -> tuple[Side, str]:
    """Return the side with the fewest of the patches that is beyond a threshold, and the last.

    Where all patches together are not, or none are enough, that side and the empty text. Raises
    UsageError for a side without patches.
    """
    patches = files(bad.patches)
    if not patches:
        raise UsageError(
            "--bisect needs patches",
            cause=f"{bad.text!a} names none",
            action="Give a folder with the patches of the series as CHANGE.",
        )
    steps = [
        replace(bad, patches=tuple(patches[:count]), text=f"{bad.text}, {count} of {len(patches)}")
        for count in range(len(patches) + 1)
    ]
    for end in (steps[-1], steps[0]):
        if is_beyond(end) is not (end is steps[-1]):
            return end, ""
    count = bisect.first(len(patches), lambda number: is_beyond(steps[number]))
    return steps[count], patches[count - 1].name
