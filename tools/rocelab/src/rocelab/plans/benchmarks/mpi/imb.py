# SPDX-License-Identifier: GPL-2.0-or-later
"""Intel MPI Benchmarks 2018 to 2021 as found on the nodes (IMB-MPI1): command lines and output.

The output has a block per benchmark: its name, the number of processes, a heading with the names
of the columns, and a line per size (user's guide, chapter "Output"). A megabyte is 10^6 bytes.
"""

from __future__ import annotations

import math
import re

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

_VERSION = re.compile(
    rf"^#\s+Intel ?(?:\(R\)|®)? MPI Benchmarks v?({VERSION})[^,\n]{{0,40}}, MPI-1 part",
    re.MULTILINE,
)
_BLOCK = re.compile(r"^# Benchmarking (\S+)\s*\n# #processes = (\d+)", re.MULTILINE)
_NAMES = {
    "latency": "PingPong",
    "bw": "Uniband",
    "bibw": "Biband",
    "bcast": "Bcast",
    "scatter": "Scatter",
    "gather": "Gather",
    "reduce": "Reduce",
    "allreduce": "Allreduce",
    "allgather": "Allgather",
    "alltoall": "Alltoall",
    "reduce_scatter": "Reduce_scatter",
    "barrier": "Barrier",
}
_REPETITIONS = "#repetitions"


def argv(job: MpiJob) -> Argv:
    """Return the command that each rank runs. IMB measures powers of two."""
    low, high = (max(size, 1).bit_length() - 1 for size in (min(job.sizes), max(job.sizes)))
    sizes = () if job.test.name == "barrier" else ("-msglog", f"{low}:{max(low + 1, high)}")
    return (
        *("IMB-MPI1", "-npmin", str(job.mpi.ranks), "-iter", str(job.iterations)),
        *("-iter_policy", "off", *sizes, _NAMES[job.test.name]),
    )


def parse(job: MpiJob, stdout: str) -> Sweep:
    """Parse the output; keep the requested sizes. Raises CellError."""
    version = _VERSION.search(stdout)
    if version is None:
        bad_output(job, "no heading of the Intel MPI Benchmarks")
    rows = _rows(job, stdout)
    missing = [size for size in job.sizes if size not in rows]
    if missing:
        bad_output(job, f"no line for {missing[0]} bytes")
    # every message crosses the link between two nodes, and every collective at least once
    done = [int(rows[size][_REPETITIONS]) for size in job.sizes]
    return Sweep(
        {size: _values(job, rows[size], size) for size in job.sizes},
        payload_bytes=sum(n * size for n, size in zip(done, job.sizes, strict=True)),
        messages=sum(done),
        facts=version_facts(version[1], tested=r"20(18|19|2[01])"),
    )


def _rows(job: MpiJob, stdout: str) -> dict[int, dict[str, float]]:
    """Return size → column → number from the block of the job's benchmark and process count."""
    name = _NAMES[job.test.name]
    pair = job.test.name == "latency"
    ranks = 2 if pair else job.mpi.ranks
    ends = [b.end() for b in _BLOCK.finditer(stdout) if (b[1], int(b[2])) == (name, ranks)]
    if not ends:
        bad_output(job, f"no results of {name} with {ranks} processes")
    return dict(_table(stdout[ends[0] :].splitlines()))


def _table(lines: list[str]) -> list[tuple[int, dict[str, float]]]:
    columns: list[str] = []
    rows = []
    for line in lines:
        words = line.split()
        if _REPETITIONS in words:
            columns = words
        elif columns and len(words) == len(columns):
            try:
                row = dict(zip(columns, map(float, words), strict=True))
            except ValueError:
                break
            rows.append((int(row.get("#bytes", 0)), row))
        elif columns and not words:
            break
    return rows


def _values(job: MpiJob, row: dict[str, float], size: int) -> tuple[Value, ...]:
    kind = job.test.kind
    keys = (
        {metrics.LATENCY: "t[usec]"}
        if "t[usec]" in row
        else {
            metrics.LATENCY: "t_avg[usec]",
            metrics.FASTEST_RANK: "t_min[usec]",
            metrics.SLOWEST_RANK: "t_max[usec]",
        }
    )
    scale, unit = 1e3, "ns"
    if job.test.quantity == "bandwidth":
        keys, scale, unit = {metrics.BANDWIDTH: "Mbytes/sec"}, 1e6, "bytes/s"
    values = []
    for metric, key in keys.items():
        number = row.get(key, math.nan) * scale
        if not math.isfinite(number) or number <= 0:
            bad_output(job, f"no {key} at {size} bytes")
        values.append(Value(metric, kind, number, unit))
    if "Msg/sec" in row:
        values.append(Value(metrics.MESSAGE_RATE, kind, row["Msg/sec"], "1/s"))
    return tuple(values)


IMB = Suite(
    argv,
    parse,
    source=Source(
        "Intel MPI Benchmarks",
        "Build IMB-MPI1 with the nodes' mpicxx (github.com/intel/mpi-benchmarks) and put it into "
        '/usr/local/bin; or say tool = "mpibench" with method = "imb".',
    ),
)
