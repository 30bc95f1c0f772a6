# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure one cell: all sizes of one benchmark over one transport, once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocelab.bench.plan import Cell
from rocelab.errors import CellError, RocelabError, TestbedError
from rocelab.node import Node
from rocelab.provider.base import Testbed
from rocelab.run import step
from rocelab.run.folder import now
from rocelab.run.mpi import step as mpi_step
from rocelab.run.probe_process import ProbeError
from rocelab.run.rig import Rig
from rocelab.run.step import ProofError

_DIES_WITHIN = 20.0
"""Seconds from a node's silence until its death is known."""
_LOOK_AGAIN_AFTER = 0.1


@dataclass(frozen=True)
class Outcome:
    """How a cell ended; `record` becomes its cell.json."""

    record: Mapping[str, Any]
    error: RocelabError | None
    node_died: bool = False


def measure(
    cell: Cell,
    rig: Rig,
    folder: Path,
    *,
    observe: Sequence[str] = (),
    warm: bool = False,
    on_step: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Measure a cell into `folder`; whatever goes wrong is in the outcome, never raised.

    `observe` names the probes to run; in a cell without verbs only rxecpu has something
    to see. `warm` runs the benchmark once before, unrecorded, so that caches and translations are
    warm.
    """
    started = now()
    steps: list[Mapping[str, Any]] = []
    error: RocelabError | None = None
    size: int | None = None
    died = False
    try:
        rig = rig.first(cell.benchmark.nodes, cell.transport.by)
        one = _mpi_step(cell, rig) if cell.benchmark.mpi else _pair_step(cell, rig, warm=warm)
        for sizes in cell.benchmark.steps():
            size = sizes[0] if len(sizes) == 1 else None
            on_step(sizes[-1])
            into = folder / step.folder_name(size)
            into.mkdir()
            done = one(sizes, into, observe)
            steps.append(done.record)
            done.check(cell.name)
    except CellError as caught:
        error = caught
    except TestbedError as caught:
        error, died = _post_mortem(rig.testbed, caught)
    record = {
        "cell": cell.name,
        "tool": cell.benchmark.tool,
        "test": cell.benchmark.test,
        "transport": cell.transport.name,
        "repetition": cell.repetition,
        "program": cell.test.program,
        "status": "ok" if error is None else "error",
        "error": None if error is None else _told(error, size),
        "started": started,
        "ended": now(),
        "client": rig.nodes[0].name,
        "server": rig.nodes[1].name,
        "steps": steps,
    }
    return Outcome(record, error, died)


_Measure = Callable[[tuple[int, ...], Path, Sequence[str]], step.Step]
"""Sizes of the step, its folder, the probes."""


def _pair_step(cell: Cell, rig: Rig, *, warm: bool) -> _Measure:
    """A tool with a client and a server: one size in a step."""
    ends = rig.ends(cell.transport)
    if warm:
        step.warm_up(cell, rig, ends)

    def one(sizes: tuple[int, ...], into: Path, observe: Sequence[str]) -> step.Step:
        return step.measure(cell, sizes[0], rig, ends, into=into, observe=observe)

    return one


def _mpi_step(cell: Cell, rig: Rig) -> _Measure:
    """An MPI suite, which warms itself up."""

    def one(sizes: tuple[int, ...], into: Path, observe: Sequence[str]) -> step.Step:
        return mpi_step.measure(cell, sizes, rig, into=into, observe=observe)

    return one


def _post_mortem(testbed: Testbed, error: TestbedError) -> tuple[RocelabError, bool]:
    """Whether a node died, with its last words; else the error as it was.

    A node stops answering a moment before its death is known, so a silent one is waited for.
    """
    deadline = time.monotonic() + _DIES_WITHIN
    while True:
        try:
            testbed.alive()
        except TestbedError as dead:
            return dead, True
        if all(_answers(node) for node in testbed.nodes):
            return error, False
        if time.monotonic() > deadline:
            return error, True
        time.sleep(_LOOK_AGAIN_AFTER)


def _answers(node: Node) -> bool:
    try:
        node.run(("true",), timeout=30)
    except TestbedError:
        return False
    return True


def _told(error: RocelabError, size: int | None) -> dict[str, Any]:
    """An error as cell.json keeps it."""
    kinds = ((ProofError, "proof"), (ProbeError, "probe"), (CellError, "benchmark"))
    kind = next((name for of, name in kinds if isinstance(error, of)), "testbed")
    return {
        "what": error.what,
        "cause": error.cause,
        "action": error.action,
        "size": size,
        "kind": kind,
    }
