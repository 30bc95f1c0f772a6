# SPDX-License-Identifier: GPL-2.0-or-later
"""SKaMPI 5 and 6 as found on the nodes: its input file and its output.

The input has one measurement per size, named by the size, because some measurements report the size
of a rank's whole buffer instead. A line of results has the loop's variable and its value, the size
(except for a barrier), the mean, its standard error, the repetitions, and the mean of each rank.
Times are in microseconds. SKaMPI's parser.y has the grammar.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from rocelab import metrics
from rocelab.plans.benchmarks.mpi.suite import (
    VERSION,
    MpiJob,
    Source,
    Suite,
    Sweep,
    bad_output,
    version_facts,
)
from rocelab.plans.benchmarks.tool import Argv, Value

INPUT = "rocelab.ski"
_ROUNDS = 10
"""Round trips in one repetition of the ping-pong."""
_FEWEST = 8
_ENOUGH = 0.1
"""Relative standard error of the mean at which SKaMPI stops repeating a size."""
_CALLS = {
    "latency": f"Pingpong_Send_Recv(count, MPI_CHAR, 0, {_ROUNDS})",
    "bcast": "Bcast(count, MPI_CHAR, 0)",
    "scatter": "Scatter(count, MPI_CHAR, count, MPI_CHAR, 0)",
    "gather": "Gather(count, MPI_CHAR, count, MPI_CHAR, 0)",
    "reduce": "Reduce(count, MPI_FLOAT, MPI_SUM, 0)",
    "allreduce": "Allreduce(count, MPI_FLOAT, MPI_SUM)",
    "allgather": "Allgather(count, MPI_CHAR, count, MPI_CHAR)",
    "alltoall": "Alltoall(count, MPI_CHAR, count, MPI_CHAR)",
    "barrier": "Barrier()",
}
_VERSION = re.compile(rf"^# SKaMPI Version v?({VERSION}(?: rev\. [0-9a-f]{{1,40}})?)", re.MULTILINE)
_BEGIN = re.compile(r'^# begin result "([\w-]+)"[^\n]*\n([^\n]*)', re.MULTILINE)
_NUMBER = r"\d{1,15}(?:\.\d{1,15})?"
_ROW = re.compile(rf"^\s*(?:[a-z]+\s*=\s*\d+\s+)+({_NUMBER}(?:\s+{_NUMBER})*)\s*$", re.ASCII)


def argv(_: MpiJob) -> Argv:
    """Return the command that each rank runs in the folder of the input file."""
    return ("skampi", "-i", INPUT)


def files(job: MpiJob) -> dict[str, str]:
    """Return the input file."""
    largest = max(1, *job.sizes) * job.mpi.ranks * 2
    lines = [
        f"set_min_repetitions({min(_FEWEST, job.iterations)})",
        f"set_max_repetitions({job.iterations})",
        f"set_max_relative_standard_error({_ENOUGH})",
        f"set_skampi_buffer({-(-largest // 1024)}kb)",
    ]
    for size in job.sizes:
        count = size // job.test.element
        lines += [
            f'begin measurement "{_name(job, size)}"',
            f"for count = {count} to {count} do",
            f"measure {_ranks(job)} : {_CALLS[job.test.name]}",
            "od",
            "end measurement",
        ]
    return {INPUT: "\n".join(lines) + "\n"}


def _name(job: MpiJob, size: int) -> str:
    return f"{job.test.name}-{size}"


def _ranks(job: MpiJob) -> str:
    """Return a communicator of all ranks, or of a pair with a rank in each half of the nodes."""
    ranks = job.mpi.ranks
    return f"comm2(0, {ranks // 2})" if job.test.name == "latency" else f"comm({ranks})"


def parse(job: MpiJob, stdout: str) -> Sweep:
    """Parse the output; keep the requested sizes. Raises CellError."""
    version = _VERSION.search(stdout)
    if version is None:
        bad_output(job, "no heading of SKaMPI")
    blocks = {match[1]: match[2] for match in _BEGIN.finditer(stdout)}
    rows = {size: _row(job, size, blocks.get(_name(job, size), "")) for size in job.sizes}
    rounds = _ROUNDS if job.test.name == "latency" else 1
    # every message crosses the link between two nodes, and every collective at least once
    done = {size: int(row[2]) * rounds for size, row in rows.items()}
    return Sweep(
        {size: _values(job, size, row) for size, row in rows.items()},
        payload_bytes=sum(size * count for size, count in done.items()),
        messages=sum(done.values()),
        facts=version_facts(version[1], tested=r"[56]\."),
    )


def _row(job: MpiJob, size: int, block: str) -> Sequence[float]:
    """Return mean, standard error, repetitions, and the means of the ranks."""
    match = _ROW.match(block)
    if match is None:
        bad_output(job, f"no line for {size} bytes")
    numbers = [float(word) for word in match[1].split()]
    if job.test.name != "barrier":
        del numbers[0]  # the size as SKaMPI counts it
    ranks = 2 if job.test.name == "latency" else job.mpi.ranks
    if len(numbers) != 3 + ranks:
        bad_output(job, f"{len(numbers)} numbers at {size} bytes, of {ranks} ranks")
    return numbers


def _values(job: MpiJob, size: int, row: Sequence[float]) -> tuple[Value, ...]:
    if not math.isfinite(row[0]) or row[0] <= 0:
        bad_output(job, f"at {size} bytes it says {row[0]}")
    kind = job.test.kind
    if job.test.name == "latency":  # it times the whole round trip
        return (Value(metrics.LATENCY, kind, row[0] * 1e3 / 2, "ns"),)
    return (
        Value(metrics.LATENCY, kind, row[0] * 1e3, "ns"),
        Value(metrics.FASTEST_RANK, kind, min(row[3:]) * 1e3, "ns"),
        Value(metrics.SLOWEST_RANK, kind, max(row[3:]) * 1e3, "ns"),
    )


SKAMPI = Suite(
    argv,
    parse,
    files=files,
    source=Source(
        "SKaMPI",
        "Build it with the nodes' mpicc and put `skampi` into /usr/local/bin; or say "
        'tool = "mpibench" with method = "skampi".',
    ),
)
