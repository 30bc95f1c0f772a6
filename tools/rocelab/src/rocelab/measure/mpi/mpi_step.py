# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure one step of an MPI cell: one mpirun, observed by the probes and the capture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath

from rocelab import accelerators, limits
from rocelab.directory import Directory
from rocelab.errors import CellError
from rocelab.measure import snaplen, transport_proof, witness
from rocelab.measure.mpi import launch
from rocelab.measure.pair_step import Step, probe_checks
from rocelab.measure.probes.watched import watch
from rocelab.measure.rig import Rig
from rocelab.plans.benchmarks.mpi import recipe
from rocelab.plans.benchmarks.mpi.recipe import Place
from rocelab.plans.benchmarks.mpi.suite import MpiJob, Suite
from rocelab.plans.benchmarks.mpi.suites import SUITES
from rocelab.plans.benchmarks.tool import Measurement
from rocelab.plans.catalog import Probe
from rocelab.plans.plan import Cell
from rocelab.record import layout
from rocelab.testbed.interface import StartsRanks
from rocelab.testbed.node import Completed, Node
from rocelab.testbed.node.endpoint import machine_of, machines

_TO_ITSELF = 32
"""The most packets by which a rank connects to itself, within the driver. UCX does so where it may
use no shared memory, because all ends are on one machine, and UCX 1.13 (Debian 12) does so
everywhere: seven packets in our measurements."""
OUTPUT = layout.output("mpirun")
"""The file in a step's folder that has mpirun's standard output."""


def job_of(cell: Cell, sizes: tuple[int, ...]) -> MpiJob:
    """Return the job that a step of an MPI cell runs."""
    mpi = cell.benchmark.mpi
    if mpi is None:
        raise CellError(f"{cell.name} is not an MPI cell")
    return MpiJob(cell.test, sizes, cell.benchmark.iterations_of(sizes[0]), mpi)


def read_output(suite: Suite, step: Directory) -> str:
    """Read the suite's output or report from a step's folder. Raises OSError, UnicodeError."""
    return step.read(suite.report or OUTPUT, limit=limits.MAX_RAW_BYTES).decode("utf-8")


def _fetch(node: Node, path: str, into: Path) -> None:
    """Copy the report of the first rank into a folder. Raises CellError if it is missing."""
    done = node.run(("cat", path), check=False)
    if done.returncode:
        raise CellError(
            f"the benchmark did not write its report {PurePosixPath(path).name}",
            cause="it stopped early",
            action="Look at mpirun.out and mpirun.err in the cell's folder.",
        )
    (into / PurePosixPath(path).name).write_text(done.stdout, "utf-8")


def measure(
    cell: Cell,
    sizes: tuple[int, ...],
    rig: Rig,
    *,
    into: Path,
    observe: Sequence[str],
    timeout: int,
) -> Step:
    """Measure these sizes in one mpirun; write output, capture and stages into the folder `into`.

    Raises what rocelab.measure.pair_step.measure raises.
    """
    # the join tells from these why messages differ; then the driver's events cost more anyway
    each = cell.transport.is_rxe and Probe.RXEDUMP in observe
    job, suite = replace(job_of(cell, sizes), each=each), SUITES[cell.test.tool]
    places = rig.places(cell.transport)
    settings = settings_of(cell, rig, places)
    control, starter = rig.testbed.control, _starter(rig, job.mpi.ranks_per_node)
    capture, frame_bytes = into / layout.WIRE_CAPTURE, snaplen.choose(cell, sizes)

    ports: set[int] = set(rig.testbed.control_ports)

    def keep(done: Completed) -> None:
        ports.update(launch.control_ports(done))
        (into / OUTPUT).write_text(done.stdout, "utf-8")
        (into / layout.errors("mpirun")).write_text(done.stderr, "utf-8")

    with launch.prepare(rig.nodes, settings, suite.files(job)) as folder:
        program = (launch.find(suite, job, rig.nodes, folder), *suite.argv(job)[1:])
        before = rig.all_counters()
        with (
            rig.testbed.capture(capture, snaplen=frame_bytes) as captured,
            watch(
                *(rig.probes, rig.nodes, cell.transport, [place.device for place in places]),
                (program,),
                into,
                observe,
            ),
        ):
            launch.run(
                program,
                job.mpi,
                rig.nodes,
                folder,
                control=control,
                timeout=timeout,
                launch_seconds=accelerators.of(rig.testbed.accelerator).mpi_launch_seconds,
                keep=keep,
                starter=starter,
            )
            moved = rig.settle(before)
        if suite.report:
            _fetch(machine_of(rig.nodes[0]), f"{folder}/{suite.report}", into)
    with Directory.open(into) as step:
        results = suite.parse(job, read_output(suite, step))
    seen = witness.count(capture, captured, ports)
    proof = transport_proof.prove(
        cell.transport,
        moved,
        seen,
        Measurement((), results.payload_bytes, results.messages),
        lost=captured.lost,
        max_loopback=_TO_ITSELF * job.mpi.ranks,
    )
    checks = tuple(probe_checks(moved, into))
    names = [node.name for node in rig.nodes]
    record = {
        "size": sizes[0] if len(sizes) == 1 else None,
        "sizes": list(sizes),
        "mpi": {
            "program": list(program),
            "settings": dict(zip(names, settings, strict=True)),
            "job": launch.job_settings(job.mpi, "agent", control),
            "launcher": " ".join(starter[1]) if starter else "mpirun",
            **results.facts,
        },
        "ends": {name: asdict(place) for name, place in zip(names, places, strict=True)},
        "path_mtu": None,
        "counters": {name: c.as_json() for name, c in moved.items()},
        **witness.record(frame_bytes, captured, seen),
        "proof": {**asdict(proof), "ok": proof.ok},
        "probe": [asdict(check) for check in checks],
    }
    return Step(record, proof, checks, results.values)


def _starter(rig: Rig, ranks_per_node: int) -> launch.Starter | None:
    if not isinstance(rig.testbed, StartsRanks):
        return None
    return rig.testbed.rank_starter(len(rig.nodes), ranks_per_node)


def settings_of(cell: Cell, rig: Rig, places: Sequence[Place]) -> list[dict[str, str]]:
    """Return the settings of the ranks on each node. Raises CellError."""
    one_machine = len(machines(rig.nodes)) == 1
    mpi, verbs = cell.benchmark.mpi, cell.transport.family == "verbs"
    if one_machine and verbs and mpi is not None and mpi.ranks_per_node > 1:
        raise CellError(
            f"{mpi.ranks_per_node} ranks would share a device of this machine",
            cause="messages between them would loop back in the driver and not cross the link",
            action="Give the testbed as many nodes as ranks, or use separate machines.",
        )
    return [
        recipe.for_node(
            cell.transport,
            place,
            one_machine=one_machine,
            traffic_class=cell.benchmark.traffic_class,
            service_level=cell.benchmark.service_level,
        )
        for place in places
    ]
