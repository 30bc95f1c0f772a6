# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure one size of a cell: a pair of processes, watched from inside and outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rocelab.bench.plan import Cell
from rocelab.bench.tool import End, Job, Tool
from rocelab.bench.tools import TOOLS
from rocelab.errors import CellError
from rocelab.node import Completed
from rocelab.run import frames, packets, pair, probes, processors, proof, snaplen, stages, transfer
from rocelab.run.counters import Counters
from rocelab.run.probe_process import ProbeError
from rocelab.run.proof import Check, Proof
from rocelab.run.rig import Rig

_WARM_UP_ITERATIONS = 50


def folder_name(size: int | None) -> str:
    """A step's folder in its cell's; None: all sizes in one."""
    return "all" if size is None else str(size)


class ProofError(CellError):
    """The wire does not say what the cell's name says."""


@dataclass(frozen=True)
class Step:
    """One size, measured; whether it may be used is for `check` to say."""

    record: Mapping[str, Any]
    """What cell.json says of it."""
    proof: Proof
    probe: tuple[Check, ...]

    def check(self, cell: str) -> None:
        """Raise ProofError or ProbeError when its numbers are not what they seem."""
        size = self.record["size"]
        place = cell if size is None else f"{cell}, {size} bytes"
        if not self.proof.ok:
            raise ProofError(
                f"{place}: the wire does not say {self.proof.transport}: {self.proof.failures()}",
                cause="packets took another way or were lost, or the link had other users",
                action="Look at wire.pcap and at cell.json in the cell's folder.",
            )
        if wrong := proof.failures(self.probe):
            raise ProbeError(
                f"{place}: {wrong}",
                cause="stage times of some packets only would stand for all",
            )


def warm_up(cell: Cell, rig: Rig, ends: tuple[End, End]) -> None:
    """Run the first size once, briefly and unrecorded: caches and translations are warm then.

    Raises as `measure`.
    """
    tool, job = TOOLS[cell.test.tool], _job(cell, cell.benchmark.sizes[0], rig, ends)
    short = replace(job, iterations=min(job.iterations, _WARM_UP_ITERATIONS), seconds=1)
    with _ready(tool, short, cell, rig) as ready:
        pair.run(tool, ready, *rig.nodes[:2], timeout=cell.benchmark.timeout)


def measure(
    cell: Cell,
    size: int,
    rig: Rig,
    ends: tuple[End, End],
    *,
    into: Path,
    observe: Sequence[str],
) -> Step:
    """Measure one size; raw output, capture and stages go into the folder `into`.

    Raises CellError when it gives no result, TestbedError when a node does not answer.
    """
    tool = TOOLS[cell.test.tool]
    capture, kept = into / "wire.pcap", snaplen.of(cell, (size,))

    def keep(end: str, done: Completed) -> None:
        (into / f"{end}.out").write_text(done.stdout, "utf-8")
        (into / f"{end}.err").write_text(done.stderr, "utf-8")

    with _ready(tool, _job(cell, size, rig, ends), cell, rig) as job:
        before = rig.counters()
        with (
            rig.testbed.capture(capture, snaplen=kept),
            observed(
                rig, [end.device for end in ends], into, observe if cell.transport.is_rxe else ()
            ),
            timed(rig, (tool.client(job), tool.server(job)), into, observe),
        ):
            done = pair.run(tool, job, *rig.nodes[:2], timeout=cell.benchmark.timeout, keep=keep)
            moved = rig.settled(before)
        same = {"sha256": transfer.compared(job, *rig.nodes[:2])} if tool.transfer else {}
    found = tool.parse(job, done.stdout)
    seen = frames.count(capture)
    judged = proof.judge(cell.transport, moved, seen, found)
    checks = tuple(probed(moved, into))
    names = [node.name for node in rig.nodes]
    record = {
        "size": size,
        "client": list(tool.client(job)),
        "server": list(tool.server(job)),
        "ends": {name: asdict(end) for name, end in zip(names, ends, strict=True)},
        "path_mtu": found.path_mtu,
        **same,
        "counters": {name: c.as_json() for name, c in moved.items()},
        "capture": snaplen.record(kept),
        "frames": asdict(seen),
        "proof": {**asdict(judged), "ok": judged.ok},
        "probe": [asdict(check) for check in checks],
    }
    return Step(record, judged, checks)


def _job(cell: Cell, size: int, rig: Rig, ends: tuple[End, End]) -> Job:
    return Job(
        test=cell.test,
        size=size,
        iterations=cell.benchmark.iterations,
        seconds=cell.benchmark.seconds,
        qp_timeout=cell.benchmark.qp_timeout,
        tcp_port=next(rig.tcp_ports),
        client=ends[0],
        server=ends[1],
        path_mtu=cell.benchmark.path_mtu,
        cpu_util=cell.benchmark.cpu_util,
    )


@contextmanager
def _ready(tool: Tool, job: Job, cell: Cell, rig: Rig) -> Iterator[Job]:
    """The job, once its nodes have what it takes."""
    if tool.transfer is None:
        yield job
        return
    with transfer.prepared(tool.transfer, job, cell.transport, *rig.nodes[:2]) as ready:
        yield ready


@contextmanager
def observed(
    rig: Rig, devices: Sequence[str], folder: Path, observe: Sequence[str]
) -> Iterator[None]:
    """Those of the probes of packets that are wanted; `devices[i]` is of node i."""
    with ExitStack() as stack:
        for name, watch in (("rxestat", probes.rxestat), ("rxedump", packets.rxedump)):
            if name in observe:
                stack.enter_context(watch(rig.nodes, devices, folder))
        yield


@contextmanager
def timed(
    rig: Rig, commands: Sequence[Sequence[str]], folder: Path, observe: Sequence[str]
) -> Iterator[None]:
    """rxecpu, if it is wanted, around the benchmark alone; `commands` are the benchmark's.

    The other probes attach before, and end after.
    """
    if "rxecpu" not in observe:
        yield
        return
    programs = sorted({Path(argv[0]).name for argv in commands})
    with processors.rxecpu(rig.nodes, programs, folder):
        yield


def probed(moved: Mapping[str, Counters], folder: Path) -> list[Check]:
    """What rxestat saw against what the driver counted, at every node that it watched."""
    return [
        check
        for node, counted in moved.items()
        if (folder / stages.file_name(node)).exists()
        for check in proof.judge_probe(node, stages.read(folder / stages.file_name(node)), counted)
    ]
