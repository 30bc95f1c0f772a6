# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a plan: every cell once, in order, each completely on disk before the next begins."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from rocelab import accelerators
from rocelab.conditions import system_error
from rocelab.errors import (
    ExitCode,
    RocelabError,
    TestbedError,
    UsageError,
    code_of_signal,
)
from rocelab.measure import environment, results
from rocelab.measure.adaptive_timeout import AdaptiveTimeout
from rocelab.measure.cell import measure
from rocelab.measure.command import permission
from rocelab.measure.command.attachment import Attachment
from rocelab.measure.mpi import optional_suites
from rocelab.measure.probes.loaded_probes import LoadedProbes
from rocelab.measure.probes.programs import programs_of
from rocelab.measure.progress import Estimate, NullProgress, Progress
from rocelab.measure.rig import Rig
from rocelab.plans.plan import Cell, Plan
from rocelab.record.folder import RunFolder, now
from rocelab.testbed.interface import HasVirtualClock, Testbed
from rocelab.testbed.shaping import shape
from rocelab.testbed.slurm import allocation
from rocelab.version import VERSION

_MAX_DEATHS = 2
"""The run stops when a node has died in this many consecutive cells."""


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended. Finished cells are on disk in any case."""

    path: Path
    """The run folder."""
    status: str
    """`complete`, `interrupted` or `stopped`."""
    ok: int
    failed: tuple[str, ...]
    """Names of the cells that failed; their cell.json says why."""
    missing: int
    """Cells that never ran."""
    error: RocelabError | None = None
    """Why the run stopped, if it did."""
    ended_by: str = ""
    """`Ctrl-C` or a signal's name, if the run was interrupted."""

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of `rocelab run`."""
        if self.error is not None:
            return self.error.exit_code
        if self.status == "interrupted":
            return code_of_signal(self.ended_by)
        return ExitCode.CELL if self.failed else ExitCode.OK


def run(
    plan: Plan,
    testbed: Testbed,
    out_dir: Path,
    *,
    resume: Path | None = None,
    progress: Progress | None = None,
    remake: Callable[[], Testbed] | None = None,
    one_of_several: bool = False,
    attached: Attachment | None = None,
    commands: bool = False,
) -> RunOutcome:
    """Run `plan` on `testbed` into a new folder in `out_dir`, or continue the run in `resume`.

    A resumed run follows the plan in its own run.json, keeps the cells that succeeded, and runs the
    failed and missing ones. When a node dies, its cell fails; `remake`, if given, must then return
    a working testbed, and without it the run stops. A plan with `fresh` machines takes one from
    `remake` for each repetition after the first. Ctrl-C ends the run; the outcome says so, and
    nothing is raised. `commands`: the plan's own may run on real machines. `attached`: the user's
    command that the plan is for has the streams of this process. A run that is `one_of_several` has
    its repetitions in the others, so nothing warns that it has few.

    Raises UsageError when the folder cannot be used, or when a resumed run was measured on a
    different testbed.
    """
    progress = progress or NullProgress()
    described = _describe(testbed)
    if resume is None:
        permission.check(plan, permitted=commands)
        plan, lacking = optional_suites.leave_out_missing(plan, testbed.nodes)
        meta = _new_meta(plan, described) | ({"left_out": lacking} if lacking else {})
        folder = RunFolder.create(out_dir, plan, meta)
    else:
        folder = RunFolder.open(resume)
        plan = folder.plan()
        permission.check(plan, permitted=commands)
        meta = folder.meta()
        _refuse_other_testbed(meta, described)
    try:
        with folder.hold():
            warnings = () if one_of_several else plan.warnings()
            one = _Run(folder, plan, meta, progress, remake, attached)
            return one.execute(testbed, warnings)
    except KeyboardInterrupt as interrupt:
        # before its first cell, or while it ended
        _note_interrupt(folder, _what_ended(interrupt))
        raise


class _Run:
    def __init__(
        self,
        folder: RunFolder,
        plan: Plan,
        meta: dict[str, Any],
        progress: Progress,
        remake: Callable[[], Testbed] | None,
        attached: Attachment | None,
    ) -> None:
        self._folder = folder
        self._plan = plan
        self._meta = meta
        self._progress = progress
        self._remake = remake
        self._attached = attached
        self._estimate = Estimate()
        self._warm: set[tuple[str, ...]] = set()
        self._timeouts: dict[tuple[str, str], AdaptiveTimeout] = defaultdict(AdaptiveTimeout)
        self._deaths = 0

    def execute(self, testbed: Testbed, warnings: Sequence[str]) -> RunOutcome:
        cells = self._plan.cells()
        pending = [cell for cell in cells if self._status(cell) != "ok"]
        status, ended_by = "complete", ""
        error: RocelabError | None = None
        try:
            self._meta |= {"status": "running", "reason": "", "ended": None}
            self._folder.write_meta(self._meta)
            self._announce(cells, pending, warnings)
            self._cells(testbed, cells, pending)
        except KeyboardInterrupt as interrupt:
            status, ended_by = "interrupted", _what_ended(interrupt)
            if error := allocation.why_ended(ended_by):
                status, ended_by = "stopped", ""
        except RocelabError as caught:
            status, error = "stopped", caught
        except OSError as caught:
            status, error = "stopped", self._cannot_write(caught)
        return self._finish(cells, status, error, ended_by)

    def _announce(
        self, cells: tuple[Cell, ...], pending: list[Cell], warnings: Sequence[str]
    ) -> None:
        self._progress.run_started(
            self._folder.name, cells=len(cells), finished=len(cells) - len(pending)
        )
        for warning in warnings:
            self._progress.note(warning)
        for lacking in self._meta.get("left_out", ()):
            self._progress.note(f"left out: {lacking}")

    def _cells(self, testbed: Testbed, cells: tuple[Cell, ...], pending: list[Cell]) -> None:
        used = False
        for left in self._per_boot(pending):
            if used:
                testbed = self._boot()
            used = True
            while left:
                died = self._run_until_death(testbed, cells, left)
                if died is not None and (left or self._remake is None):
                    testbed = self._remade(died)
                    self._warm.clear()

    def _per_boot(self, pending: list[Cell]) -> list[list[Cell]]:
        """Divide the cells among boots: one a repetition if the plan asks for fresh machines."""
        if not self._plan.testbed.fresh:
            return [list(pending)]
        return [list(cells) for _, cells in groupby(pending, key=lambda cell: cell.repetition)]

    def _boot(self) -> Testbed:
        """Return a new testbed for the next repetition. Raises TestbedError if there is none."""
        if self._remake is None:
            raise TestbedError(
                "the plan boots machines for each repetition, and this testbed stays up",
                cause="it was not made for this run",
                action=f"Continue with `rocelab run --resume {self._folder.path}`.",
            )
        self._progress.note("booting machines for the next repetition")
        self._warm.clear()
        return self._remake()

    def _run_until_death(
        self, testbed: Testbed, cells: tuple[Cell, ...], left: list[Cell]
    ) -> RocelabError | None:
        """Run cells and remove them from `left`; stop and return the error when a node dies."""
        link = self._plan.testbed.link
        hurry = testbed.hurry if isinstance(testbed, HasVirtualClock) else nullcontext
        with shape(testbed.nodes, link), LoadedProbes(programs_of(cells), hurry) as probes:
            rig = Rig.on(testbed, link, pinned=self._plan.testbed.is_pinned, probes=probes)
            while left:
                cell = left.pop(0)
                self._progress.cell_started(cell, number=cells.index(cell) + 1)
                died = self._cell(rig, cell, left)
                if died is not None:
                    return died
        return None

    def _cell(self, rig: Rig, cell: Cell, rest: list[Cell]) -> RocelabError | None:
        """Run one cell and put it into the run folder; return the error if a node died."""
        began = time.monotonic()
        part = self._folder.begin(cell)
        kind = (cell.test.program, cell.transport.name)
        # where instructions are counted, what counts is that the program was read from the disk
        warmth = kind[:1] if _counts(rig.testbed) else kind
        outcome = measure(
            cell,
            rig,
            part,
            observe=self._plan.observe,
            timing_pass=self._plan.timing_pass,
            warm=warmth not in self._warm,
            timeout=self._timeouts[kind],
            on_step=lambda size: self._progress.step_started(cell, size=size),
            attached=self._attached,
        )
        self._folder.commit(cell, outcome.record)
        seconds = time.monotonic() - began
        if outcome.error is None:
            self._warm.add(warmth)
            self._estimate.add(cell, seconds)
        self._deaths = self._deaths + 1 if outcome.node_died else 0
        self._progress.cell_finished(
            cell, error=outcome.error, seconds=seconds, left=self._estimate.seconds_left(rest)
        )
        return outcome.error if outcome.node_died else None

    def _remade(self, died: RocelabError) -> Testbed:
        """Return a new testbed. Raises TestbedError when that is not possible or not useful."""
        if self._remake is None or self._deaths >= _MAX_DEATHS:
            raise TestbedError(
                died.what,
                cause=died.cause,
                action=f"Continue with `rocelab run --resume {self._folder.path}`.",
            ) from died
        self._progress.note("that testbed ended; making a new testbed")
        return self._remake()

    def _finish(
        self, cells: tuple[Cell, ...], status: str, error: RocelabError | None, ended_by: str
    ) -> RunOutcome:
        reason = error.what if error else ended_by
        self._meta |= {"status": status, "reason": reason, "ended": now()}
        try:
            self._folder.sweep()
            self._folder.write_meta(self._meta)
            results.rebuild(self._folder.path)
        except OSError as caught:
            status, error = "stopped", error or self._cannot_write(caught)
        except RocelabError:
            # what stopped the run is nearer to the cause
            if error is None:
                raise
        states = {cell.name: self._status(cell) for cell in cells}
        return RunOutcome(
            path=self._folder.path,
            status=status,
            ok=sum(state == "ok" for state in states.values()),
            failed=tuple(name for name, state in states.items() if state == "error"),
            missing=sum(state is None for state in states.values()),
            error=error,
            ended_by=ended_by,
        )

    def _cannot_write(self, caught: OSError) -> RocelabError:
        return system_error(
            caught,
            f"cannot write to {self._folder.path}",
            action=f"Fix that, then `rocelab run --resume {self._folder.path}`.",
        )

    def _status(self, cell: Cell) -> str | None:
        record = self._folder.record(cell.name)
        if record is None:
            return None
        return "ok" if record.get("status") == "ok" else "error"


def _counts(testbed: Testbed) -> bool:
    """Whether instructions are counted, and caches of the processor have no part in it."""
    return accelerators.of(testbed.accelerator).counts_instructions


def _what_ended(interrupt: KeyboardInterrupt) -> str:
    """`Ctrl-C`, or the name of the signal that made it."""
    return str(interrupt) or "Ctrl-C"


def _note_interrupt(folder: RunFolder, ended_by: str) -> None:
    meta = folder.meta()
    if meta["status"] == "killed":
        folder.write_meta(meta | {"status": "interrupted", "reason": ended_by, "ended": now()})


def _describe(testbed: Testbed) -> dict[str, Any]:
    return {
        "accelerator": testbed.accelerator,
        "testbed": testbed.environment(),
        "nodes": environment.describe(testbed.nodes),
    }


def _new_meta(plan: Plan, described: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rocelab": VERSION,
        "status": "running",
        "reason": "",
        "started": now(),
        "ended": None,
        "plan": plan.to_dict(),
        "cells": [cell.name for cell in plan.cells()],
        **described,
    }


def _refuse_other_testbed(meta: Mapping[str, Any], described: Mapping[str, Any]) -> None:
    """Refuse to mix numbers from different kernels, drivers or machines in one run."""
    before, after = _identity(meta), _identity(described)
    for fact, value in after.items():
        if before.get(fact) != value:
            raise UsageError(
                f"this is not the testbed of the run: {fact} was {before.get(fact)!a:.60}, "
                f"and is {value!a:.60}",
                cause="the kernel, the driver or the machine has changed since the run began",
                action="Start a new run.",
            )


def _identity(described: Mapping[str, Any]) -> dict[str, Any]:
    identity = {"accelerator": described.get("accelerator")}
    nodes = described.get("nodes")
    for name, node in (nodes if isinstance(nodes, dict) else {}).items():
        facts = node if isinstance(node, dict) else {}
        for key, label in (("kernel", "kernel"), ("cpu", "CPU"), ("driver", "driver")):
            identity[f"{label} of {name}"] = facts.get(key)
    return identity
