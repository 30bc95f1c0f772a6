# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure one step of an MPI cell: one mpirun, watched from inside and outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath

from rocelab.bench.mpi import recipe
from rocelab.bench.mpi.recipe import Place
from rocelab.bench.mpi.suite import MpiJob, Suite
from rocelab.bench.mpi.suites import SUITES
from rocelab.bench.plan import Cell
from rocelab.bench.tool import Measurement
from rocelab.errors import CellError
from rocelab.node import Completed, Node
from rocelab.node.endpoint import machine_of, machines
from rocelab.run import frames, proof, snaplen
from rocelab.run.mpi import launch
from rocelab.run.rig import Rig
from rocelab.run.step import Step, observed, probed, timed

_TO_ITSELF = 32
"""Packets by which a rank connects to itself, at most: without shared memory, which is forbidden
where all ends are on one machine, UCX takes verbs for that too. Seven were seen."""
OUTPUT = "mpirun.out"
"""Where mpirun's standard output lies in a step's folder."""


def job_of(cell: Cell, sizes: tuple[int, ...]) -> MpiJob:
    """What a step of an MPI cell runs."""
    mpi = cell.benchmark.mpi
    if mpi is None:
        raise CellError(f"{cell.name} is no MPI cell")
    return MpiJob(cell.test, sizes, cell.benchmark.iterations, mpi)


def said(suite: Suite, folder: Path) -> str:
    """What the suite left to be read in a step's folder. Raises OSError, UnicodeError."""
    return (folder / (suite.report or OUTPUT)).read_text("utf-8")


def _fetch(node: Node, path: str, into: Path) -> None:
    """Keep a report that the first rank has written. Raises CellError when there is none."""
    done = node.run(("cat", path), check=False)
    if done.returncode:
        raise CellError(
            f"{PurePosixPath(path).name} was not written",
            cause="the benchmark stopped early",
            action="Look at mpirun.out and mpirun.err in the cell's folder.",
        )
    (into / PurePosixPath(path).name).write_text(done.stdout, "utf-8")


def measure(
    cell: Cell, sizes: tuple[int, ...], rig: Rig, *, into: Path, observe: Sequence[str]
) -> Step:
    """Measure these sizes in one mpirun; output, capture and stages go into the folder `into`.

    Raises as rocelab.run.step.measure.
    """
    job, suite = job_of(cell, sizes), SUITES[cell.test.tool]
    places = rig.places(cell.transport)
    settings = settings_of(cell, rig, places)
    control = rig.testbed.control
    capture, kept = into / "wire.pcap", snaplen.of(cell, sizes)

    def keep(done: Completed) -> None:
        (into / OUTPUT).write_text(done.stdout, "utf-8")
        (into / "mpirun.err").write_text(done.stderr, "utf-8")

    with launch.prepared(rig.nodes, settings, suite.files(job)) as there:
        program = (launch.find(suite, job, rig.nodes, there), *suite.argv(job)[1:])
        before = rig.counters()
        with (
            rig.testbed.capture(capture, snaplen=kept),
            observed(
                rig,
                [place.device for place in places],
                into,
                observe if cell.transport.is_rxe else (),
            ),
            timed(rig, (program,), into, observe),
        ):
            launch.run(
                program,
                job.mpi,
                rig.nodes,
                there,
                control=control,
                timeout=cell.benchmark.timeout,
                keep=keep,
            )
            moved = rig.settled(before)
        if suite.report:
            _fetch(machine_of(rig.nodes[0]), f"{there}/{suite.report}", into)
    found = suite.parse(job, said(suite, into))
    seen = frames.count(capture)
    judged = proof.judge(
        cell.transport,
        moved,
        seen,
        Measurement((), found.payload_bytes, found.messages),
        to_themselves=_TO_ITSELF * job.mpi.ranks if len(machines(rig.nodes)) == 1 else 0,
    )
    checks = tuple(probed(moved, into))
    names = [node.name for node in rig.nodes]
    record = {
        "size": sizes[0] if len(sizes) == 1 else None,
        "sizes": list(sizes),
        "mpi": {
            "program": list(program),
            "settings": dict(zip(names, settings, strict=True)),
            "job": recipe.for_job(job.mpi, control, "agent"),
            **found.facts,
        },
        "ends": {name: asdict(place) for name, place in zip(names, places, strict=True)},
        "path_mtu": None,
        "counters": {name: c.as_json() for name, c in moved.items()},
        "capture": snaplen.record(kept),
        "frames": asdict(seen),
        "proof": {**asdict(judged), "ok": judged.ok},
        "probe": [asdict(check) for check in checks],
    }
    return Step(record, judged, checks)


def settings_of(cell: Cell, rig: Rig, places: Sequence[Place]) -> list[dict[str, str]]:
    """Settings of the ranks of each node. Raises CellError."""
    alone = len(machines(rig.nodes)) == 1
    mpi = cell.benchmark.mpi
    if alone and mpi is not None and mpi.ranks_per_node > 1 and cell.transport.family == "verbs":
        raise CellError(
            f"{mpi.ranks_per_node} ranks would share a device of this machine",
            cause="what they say to each other would go round in the driver, and not over the link",
            action="Give the testbed as many nodes as ranks, or use machines of their own.",
        )
    return [recipe.for_node(cell.transport, place, one_machine=alone) for place in places]
