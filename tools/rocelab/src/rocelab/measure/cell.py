# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure one cell: all sizes of one benchmark over one transport, once."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocelab import accelerators
from rocelab.errors import (
    CellError,
    RocelabError,
    StallError,
    TestbedError,
    TransientError,
)
from rocelab.measure import pair_step
from rocelab.measure.adaptive_timeout import AdaptiveTimeout
from rocelab.measure.command.attachment import Attachment
from rocelab.measure.mpi import mpi_step
from rocelab.measure.pair_step import ProofError
from rocelab.measure.probes.probe_session import ProbeError
from rocelab.measure.rig import Rig
from rocelab.plans.catalog import Probe
from rocelab.plans.plan import Cell
from rocelab.plans.steps import steps_of
from rocelab.record import layout
from rocelab.record.folder import now
from rocelab.testbed.interface import Testbed
from rocelab.testbed.node import Node

_DEATH_TIMEOUT = 20.0
"""Seconds after a node stops answering within which the testbed notices that it died."""
_POLL_INTERVAL = 0.1


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
    timing_pass: bool | None = None,
    warm: bool = False,
    timeout: AdaptiveTimeout | None = None,
    on_step: Callable[[int], None] = lambda _: None,
    attached: Attachment | None = None,
) -> Outcome:
    """Measure a cell into `folder`; return errors in the outcome instead of raising them.

    `observe` names the probes to run; in a cell without verbs only rxecpu sees anything. With
    `warm`, run the benchmark once before without recording it, to fill caches and to translate
    code under emulation. With `timing_pass`, measure each step that a probe watches without
    it too; None: where clocks tell real time. `timeout` knows earlier cells of its kind, and learns
    more. `attached`: a user's command has the streams of this process.
    """
    timeout = timeout or AdaptiveTimeout()
    started = now()
    steps: list[Mapping[str, Any]] = []
    error: RocelabError | None = None
    size: int | None = None
    died = False
    try:
        rig = rig.first(cell.benchmark.nodes, cell.transport)
        one = (
            _mpi_step(cell, rig, timeout)
            if cell.benchmark.mpi
            else _pair_step(cell, rig, timeout, attached, warm=warm)
        )
        left = list(steps_of(cell.benchmark))
        tries = 0
        passes = _passes(cell, rig, observe, timing_pass)
        while left:
            sizes = left.pop(0)
            size = sizes[0] if len(sizes) == 1 else None
            on_step(sizes[-1])
            into = folder / layout.step(size)
            into.mkdir()
            try:
                done = _all(passes, one, sizes, into, observe)
            except StallError:
                if len(sizes) == 1:
                    raise
                # the smaller ones were fast enough: each gets an mpirun of its own
                shutil.rmtree(into)
                left = [(each,) for each in sizes] + left
                continue
            except TransientError as passing:
                tries += 1
                if tries >= passing.tries:
                    raise
                shutil.rmtree(into)
                left.insert(0, sizes)
                continue
            tries = 0
            steps.append(done.record)
            done.check(cell.name)
            for each, values in done.values.items():
                timeout.learn(each, values)
    except CellError as caught:
        error, died = _unless_dead(rig.testbed, caught)
    except TestbedError as caught:
        error, died = _post_mortem(rig.testbed, caught)
    if error is not None:
        rig.forget()
    record = {
        "cell": cell.name,
        "tool": cell.benchmark.tool,
        "test": cell.benchmark.test,
        "transport": cell.transport.name,
        "repetition": cell.repetition,
        "program": cell.test.program,
        "status": "ok" if error is None else "error",
        "error": None if error is None else _error_record(error, size),
        "started": started,
        "ended": now(),
        "client": rig.nodes[0].name,
        "server": rig.nodes[1].name,
        "steps": steps,
    }
    return Outcome(record, error, died)


def _passes(
    cell: Cell, rig: Rig, observe: Sequence[str], timing_pass: bool | None
) -> tuple[str, ...]:
    """The passes of each step before its own: without probes, and with fewer messages.

    Probes would be in the times, so each step is timed without them first. What a benchmark with
    faults is asked, when each packet was sent again, is in its records.
    """
    watched = observe if cell.transport.is_rxe else [p for p in observe if p == Probe.RXECPU]
    if cell.has_message_cost and cell.sleeps:
        return layout.PASSES if watched else (layout.HALF, layout.EIGHTH)
    if timing_pass is None:
        timing_pass = accelerators.of(rig.testbed.accelerator).is_real_time
    timed = watched and timing_pass and not cell.benchmark.faults
    return (
        *((layout.TIMING,) if timed else ()),
        *((layout.EIGHTH_WATCHED,) if watched and cell.has_message_cost else ()),
    )


def _all(
    passes: Sequence[str],
    one: _Measure,
    sizes: tuple[int, ...],
    into: Path,
    observe: Sequence[str],
) -> pair_step.Step:
    """Measure a step in each of the passes, and then itself."""
    done = {}
    for name in passes:
        (into / name).mkdir()
        watch = observe if name == layout.EIGHTH_WATCHED else ()
        done[name] = one(sizes, into / name, watch, layout.PARTS.get(name, 1))
    return one(sizes, into, observe, 1).after(done)


_Measure = Callable[[tuple[int, ...], Path, Sequence[str], int], pair_step.Step]
"""Measures a step: its sizes, its folder, the probes, and what its messages are divided by."""


def _pair_step(
    cell: Cell, rig: Rig, timeout: AdaptiveTimeout, attached: Attachment | None, *, warm: bool
) -> _Measure:
    """Return the measurement of a tool with a client and a server: one size per step."""
    ends = rig.ends(cell.transport)
    if warm:
        timeout.learn(cell.benchmark.sizes[0], pair_step.warm_up(cell, rig, ends))

    def one(
        sizes: tuple[int, ...], into: Path, observe: Sequence[str], part: int
    ) -> pair_step.Step:
        limit = timeout.limit(cell.benchmark, sizes, by_time=cell.is_timed)
        return pair_step.measure(
            *(cell.with_part(part), sizes[0], rig, ends),
            into=into,
            observe=observe,
            timeout=limit,
            attached=attached,
        )

    return one


def _mpi_step(cell: Cell, rig: Rig, timeout: AdaptiveTimeout) -> _Measure:
    """Return the measurement of an MPI suite; these warm up by themselves."""

    def one(
        sizes: tuple[int, ...], into: Path, observe: Sequence[str], part: int
    ) -> pair_step.Step:
        limit = timeout.limit(cell.benchmark, sizes, by_time=False)
        return mpi_step.measure(
            cell.with_part(part), sizes, rig, into=into, observe=observe, timeout=limit
        )

    return one


def _unless_dead(testbed: Testbed, error: CellError) -> tuple[RocelabError, bool]:
    """Find out whether a benchmark failed because its testbed ended, as a Slurm job may."""
    try:
        testbed.alive()
    except TestbedError as dead:
        return dead, True
    return error, False


def _post_mortem(testbed: Testbed, error: TestbedError) -> tuple[RocelabError, bool]:
    """Find out whether a node died; return that error, or else the original one.

    A node stops answering shortly before the testbed notices its death, so we wait for one that
    does not answer.
    """
    deadline = time.monotonic() + _DEATH_TIMEOUT
    while True:
        try:
            testbed.alive()
        except TestbedError as dead:
            return dead, True
        if all(_answers(node) for node in testbed.nodes):
            return error, False
        if time.monotonic() > deadline:
            return error, True
        time.sleep(_POLL_INTERVAL)


def _answers(node: Node) -> bool:
    try:
        node.run(("true",), timeout=30)
    except TestbedError:
        return False
    return True


def _error_record(error: RocelabError, size: int | None) -> dict[str, Any]:
    """Return an error as stored in cell.json."""
    kinds = (
        *((ProofError, "proof"), (ProbeError, "probe")),
        *((StallError, "stall"), (CellError, "benchmark")),
    )
    kind = next((name for cls, name in kinds if isinstance(error, cls)), "testbed")
    return {
        "what": error.what,
        "cause": error.cause,
        "action": error.action,
        "size": size,
        "kind": kind,
    }
