# SPDX-License-Identifier: GPL-2.0-or-later
"""OSU Micro-Benchmarks 5 to 7 as found on the nodes: command lines and output.

The output is a heading that names test and version, comments, and a table by size, whose columns
differ by test: print_header in its util/ folder.
"""

from __future__ import annotations

import math
import re

from rocelab.bench.mpi.suite import MpiJob, Suite, Sweep, bad_output
from rocelab.bench.tool import Argv, Value

_HEADING = re.compile(r"^# OSU MPI (?P<title>.+?) Test v(?P<version>\d[\w.]*)\s*$", re.MULTILINE)
_ROW = re.compile(r"^\s*(\d+)((?:\s+\d[\d.]*)+)\s*$")
_TITLES = {
    "latency": "Latency",
    "multi_lat": "Multi Latency",
    "bw": "Bandwidth",
    "bibw": "Bi-Directional Bandwidth",
    "mbw_mr": "Multiple Bandwidth / Message Rate",
    "bcast": "Broadcast Latency",
    "scatter": "Scatter Latency",
    "gather": "Gather Latency",
    "reduce": "Reduce Latency",
    "allreduce": "Allreduce Latency",
    "allgather": "Allgather Latency",
    "alltoall": "All-to-All Personalized Exchange Latency",
    "reduce_scatter": "Reduce_scatter Latency",
    "barrier": "Barrier Latency",
}
TESTS = tuple(_TITLES)


def argv(job: MpiJob) -> Argv:
    """The command that each rank runs: its sizes double from the smallest to the largest."""
    warmup = max(1, job.iterations // 10)
    sizes = () if job.test.name == "barrier" else ("-m", f"{min(job.sizes)}:{max(job.sizes)}")
    return (job.test.program, "-i", str(job.iterations), "-x", str(warmup), *sizes)


def parse(job: MpiJob, stdout: str) -> Sweep:
    """Figures of the sizes that were asked for. Raises CellError."""
    headings = list(_HEADING.finditer(stdout))
    if len(headings) != 1:
        bad_output(job, f"{len(headings)} headings of an OSU benchmark")
    (heading,) = headings
    if heading["title"] != _TITLES[job.test.name]:
        bad_output(job, f"its heading says {heading['title']!a:.60}")
    rows: dict[int, tuple[float, ...]] = {}
    for line in stdout[heading.end() :].splitlines():
        found = _ROW.match(line)
        if job.test.name == "barrier" and re.fullmatch(r"\s*\d[\d.]*\s*", line):
            rows[0] = (float(line),)
        elif found is not None:
            rows[int(found[1])] = tuple(map(float, found[2].split()))
    missing = [size for size in job.sizes if size not in rows]
    if missing:
        bad_output(job, f"no line for {missing[0]} bytes")
    # between two nodes each message, and each collective whatever its algorithm, crosses once
    return Sweep(
        {size: _values(job, size, rows[size]) for size in job.sizes},
        payload_bytes=job.iterations * sum(job.sizes),
        messages=job.iterations * len(job.sizes),
        facts={"version": heading["version"]},
    )


def _values(job: MpiJob, size: int, row: tuple[float, ...]) -> tuple[Value, ...]:
    if not row or not math.isfinite(row[0]) or row[0] <= 0:
        bad_output(job, f"at {size} bytes it says {row[:1]}")
    kind = job.test.kind
    if job.test.quantity == "latency":
        values = [Value("latency.mean", kind, row[0] * 1e3, "ns")]
        if len(row) >= 3:  # with -f: average, smallest and largest of the ranks
            values.append(Value("latency.rank_min", kind, row[1] * 1e3, "ns"))
            values.append(Value("latency.rank_max", kind, row[2] * 1e3, "ns"))
        return tuple(values)
    rate = row[1] if job.test.name == "mbw_mr" and len(row) > 1 else row[0] * 1e6 / max(size, 1)
    return (
        Value("bandwidth", kind, row[0] * 1e6, "bytes/s"),
        Value("message_rate", kind, rate, "1/s"),
    )


OMB = Suite(argv, parse)
