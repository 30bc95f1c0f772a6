# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure one size of a cell: a client and a server, observed by the probes and the capture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from rocelab import accelerators
from rocelab.directory import Directory
from rocelab.errors import CellError, TransientError
from rocelab.measure import (
    fault_step,
    file_server,
    machine_work,
    pair,
    quick_clock,
    rdma_cm_mode,
    remote_disk,
    snaplen,
    transport_proof,
    witness,
)
from rocelab.measure.command import command_step
from rocelab.measure.command.attachment import Attachment
from rocelab.measure.counters import Counters
from rocelab.measure.probes import driver_events
from rocelab.measure.probes.probe_session import ProbeError
from rocelab.measure.probes.watched import watch
from rocelab.measure.rig import Rig
from rocelab.measure.transport_proof import Check, Proof
from rocelab.plans.benchmarks.pair_tools import TOOLS
from rocelab.plans.benchmarks.tool import End, Job, Measurement, Tool, Value
from rocelab.plans.plan import Cell
from rocelab.record import layout, rxestat_document
from rocelab.testbed.node import Completed

_T = TypeVar("_T")
_WARM_UP_ITERATIONS = 50


class ProofError(CellError):
    """Counters and capture contradict the transport in the cell's name."""


@dataclass(frozen=True)
class Step:
    """One measured size; `check` decides whether its numbers may be used."""

    record: Mapping[str, Any]
    """Its entry in cell.json."""
    proof: Proof
    probe: tuple[Check, ...]
    values: Mapping[int, tuple[Value, ...]]
    """What was measured, by size."""
    passes: Mapping[str, Step] = field(default_factory=dict)
    """Those before it, such as one without probes, by the name of their folder."""

    def after(self, passes: Mapping[str, Step]) -> Step:
        """Return this step with the passes before it; times are of the one without probes."""
        record = {**self.record, **{name: done.record for name, done in passes.items()}}
        values = passes[layout.TIMING].values if layout.TIMING in passes else self.values
        return replace(self, record=record, values=values, passes=passes)

    def check(self, cell: str) -> None:
        """Raise ProofError or ProbeError when the numbers must not be used."""
        for name, done in self.passes.items():
            done.check(f"{cell}, pass {name}")
        size = self.record["size"]
        place = cell if size is None else f"{cell}, {size} bytes"
        if not self.proof.ok:
            raise ProofError(
                f"{place}: not proven to have used {self.proof.transport}: {self.proof.failures()}",
                cause="packets took another path or were lost, or others used the link",
                action="Look at wire.pcap and cell.json in the cell's folder.",
            )
        if wrong := transport_proof.failures(self.probe):
            raise ProbeError(
                f"{place}: {wrong}",
                cause="the probe missed packets, so its stage times do not represent all of them",
                action="Run it again, with fewer or smaller messages if it happens often.",
            )


def warm_up(cell: Cell, rig: Rig, ends: tuple[End, End]) -> tuple[Value, ...]:
    """Run the first size once, briefly and without recording it, to fill caches.

    Returns what it measured, which is good for a time limit only; nothing if it cannot be read.
    Raises what `measure` raises.
    """
    tool, job = TOOLS[cell.test.tool], _job(cell, cell.benchmark.sizes[0], rig, ends)
    if tool.remote_disk or cell.benchmark.command:
        return ()  # each disk is warmed up when it is there; a user says how often a command runs
    if tool.loader and accelerators.of(rig.testbed.accelerator).counts_instructions:
        tool = replace(tool, client=tool.loader)  # a second of sending warms nothing there
    short = _short(job)
    environment = quick_clock.environment(tool, rig.testbed.accelerator)
    limit = cell.benchmark.timeout
    with _ready(tool, short, cell, rig) as ready:
        try:
            done = pair.run(
                tool, ready, *_pair(tool, cell, rig.nodes), timeout=limit, environment=environment
            )
        except TransientError:
            return ()  # the step itself is measured again then
        try:
            return tool.parse(ready, done.stdout).values
        except CellError:
            return ()


def _short(job: Job) -> Job:
    return replace(job, iterations=min(job.iterations, _WARM_UP_ITERATIONS), seconds=1)


def measure(
    cell: Cell,
    size: int,
    rig: Rig,
    ends: tuple[End, End],
    *,
    into: Path,
    observe: Sequence[str],
    timeout: int,
    attached: Attachment | None = None,
) -> Step:
    """Measure one size; write raw output, capture and stages into the folder `into`.

    `attached`: a user's command has the streams of this process. Raises StallError when the client
    takes longer than `timeout` seconds, TransientError when it is worth another try, CellError when
    there is no result, TestbedError when a node does not answer.
    """
    tool = TOOLS[cell.test.tool]
    nodes = _pair(tool, cell, rig.nodes)
    capture, frame_bytes = into / layout.WIRE_CAPTURE, snaplen.choose(cell, (size,))
    environment = quick_clock.environment(tool, rig.testbed.accelerator)
    # a pass of a part of the seconds, too, which are too few for parts of their own
    counts = cell.benchmark.message_cost
    alone_is_unknown = accelerators.of(rig.testbed.accelerator).is_real_time

    def keep(end: str, done: Completed) -> None:
        (into / layout.output(end)).write_text(done.stdout, "utf-8")
        (into / layout.errors(end)).write_text(done.stderr, "utf-8")

    with _ready(tool, _job(cell, size, rig, ends), cell, rig) as job:
        before = rig.all_counters()
        with (
            fault_step.faulty(rig, cell, ends[1].device) as link,
            driver_events.record(rig.nodes, into, cell.benchmark.faults),
            rig.testbed.capture(capture, snaplen=frame_bytes) as captured,
            watch(
                *(rig.probes, rig.nodes, cell.transport, [end.device for end in ends]),
                (tool.client(job), tool.server_argv(job)),
                into,
                observe,
            ),
            rig.one_clock(),
        ):
            must_fail = cell.benchmark.measures_its_end
            work: dict[str, machine_work.Work] = {}
            others: dict[str, float] | None = {} if alone_is_unknown else None
            ran, own = job, {}
            if cell.benchmark.command:
                done, took = command_step.run(
                    *(tool, job, rig), timeout=timeout, into=into, attached=attached
                )
                ran = replace(job, wall_ns=took)
                own = {"exit_status": done.returncode, "wall_ns": took}
            else:
                done = pair.run(
                    *(tool, job, *nodes),
                    timeout=timeout,
                    keep=keep,
                    must_fail=must_fail,
                    environment=environment,
                    around=machine_work.count_work(rig.nodes, work, others) if counts else None,
                )
            fault_step.drain(link, rig)
            moved = rig.settle(before)
        same = {"sha256": file_server.verify(tool.transfer, job, *nodes)} if tool.transfer else {}
    results = Measurement((), 0) if must_fail else tool.parse(ran, done.stdout)
    fault_step.place_faults(link, capture, rig)
    seen = witness.count(capture, captured, rig.testbed.control_ports)
    proven = transport_proof.prove(
        cell.transport,
        moved,
        seen,
        results,
        lost=captured.lost,
        altered=link.altered,
        managed=fault_step.count_cm_packets(capture) if cell.benchmark.ends_with_error else None,
        own_tcp=cell.benchmark.command is not None,
        parts_early=tool.rdma_cm or cell.benchmark.command is not None,
    )
    checks = tuple(probe_checks(moved, into))
    names = [node.name for node in rig.nodes]
    record = {
        "size": size,
        "client": list(tool.client(job)),
        "server": list(tool.server_argv(job)),
        **({"environment": list(environment)} if environment else {}),
        "ends": {name: asdict(end) for name, end in zip(names, ends, strict=True)},
        "path_mtu": results.path_mtu,
        **same,
        **_work_document(work, results.sent),
        **({"others": others} if others else {}),
        **own,
        "counters": {name: c.as_json() for name, c in moved.items()},
        **witness.record(frame_bytes, captured, seen),
        "proof": {**asdict(proven), "ok": proven.ok},
        "probe": [asdict(check) for check in checks],
        **fault_step.record(link, into, rig, moved, done if must_fail else None),
    }
    return Step(record, proven, checks, {size: results.values})


def _work_document(work: Mapping[str, machine_work.Work], sent: int) -> dict[str, Any]:
    """What cell.json has of the work of each machine, and how many messages it was for."""
    if not work:
        return {}
    steps = {name: done.step_ns for name, done in work.items() if done.step_ns}
    return {
        "sent": sent,
        "work_ns": {name: done.ns for name, done in work.items()},
        **({"work_step_ns": steps} if steps else {}),
    }


def job_of(
    cell: Cell, size: int, *, tcp_port: int = 0, ends: tuple[End, End] = (End(""), End(""))
) -> Job:
    """What a step of a cell runs; without a port and ends, enough to parse its output."""
    return Job(
        test=cell.test,
        size=size,
        iterations=cell.benchmark.iterations_of(size),
        seconds=cell.benchmark.seconds,
        qp_timeout=cell.benchmark.qp_timeout,
        tcp_port=tcp_port,
        client=ends[0],
        server=ends[1],
        path_mtu=cell.benchmark.path_mtu,
        cpu_util=cell.benchmark.cpu_util,
        events=cell.benchmark.events,
        traffic_class=cell.benchmark.traffic_class,
        service_level=cell.benchmark.service_level,
        by_count=not cell.is_timed,
        depth=cell.benchmark.depth or 1,
        retry_count=cell.benchmark.retry_count,
        rx_depth=cell.benchmark.rx_depth,
        command=cell.benchmark.command,
    )


def _job(cell: Cell, size: int, rig: Rig, ends: tuple[End, End]) -> Job:
    tool = TOOLS[cell.test.tool]
    client, server = (
        replace(end, options=rig.options(node, cell.test.tool, tool.optional))
        for node, end in zip(_pair(tool, cell, rig.nodes), _pair(tool, cell, ends), strict=True)
    )
    port = tool.port or next(rig.tcp_ports)
    return job_of(cell, size, tcp_port=port, ends=(client, server))


def _pair(tool: Tool, cell: Cell, nodes: Sequence[_T]) -> tuple[_T, _T]:
    """The nodes that run the client and the server, or what stands for them in their order."""
    first, second = nodes[:2]
    return (second, first) if tool.transfer and tool.transfer.swaps(cell.test) else (first, second)


@contextmanager
def _ready(tool: Tool, job: Job, cell: Cell, rig: Rig) -> Iterator[Job]:
    """Set up what the job needs on its nodes, and yield the job."""
    nodes = _pair(tool, cell, rig.nodes)
    if tool.remote_disk:
        with remote_disk.prepare(job, cell.transport, *nodes) as ready:
            pair.run(tool, _short(ready), *nodes, timeout=cell.benchmark.timeout)
            yield ready
        return
    if cell.benchmark.command or (tool.rdma_cm and job.client.device):
        ends = (job.client, job.server)
        with rdma_cm_mode.for_v1(nodes, ends, cell.transport):
            yield job
        return
    if tool.transfer is None:
        yield job
        return
    with file_server.prepare(tool.transfer, job, cell.transport, *nodes) as ready:
        yield ready


def probe_checks(moved: Mapping[str, Counters], folder: Path) -> list[Check]:
    """Compare what rxestat saw with what the driver counted, on every node where it ran."""
    with Directory.open(folder) as step:
        return [
            check
            for node, counted in moved.items()
            if step.exists(rxestat_document.file_name(node))
            for check in transport_proof.check_probe(
                node, rxestat_document.read(step, node), counted
            )
        ]
