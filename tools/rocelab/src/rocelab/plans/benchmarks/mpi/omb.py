# SPDX-License-Identifier: GPL-2.0-or-later
"""OSU Micro-Benchmarks 5.4 to 7 as found on the nodes: command lines and output.

The output has a heading with test and version, comments, and a table by size. The columns differ by
test and options; the last comment names them, separated by two or more spaces (print_header in
util/).
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
from rocelab.plans.catalog import PAIR_TESTS, Kind

_HEADING = re.compile(
    rf"^# OSU MPI(?:-[A-Z]+)? (?P<title>.+?) Test v(?P<version>{VERSION})\s*$", re.MULTILINE
)
_COLUMNS = re.compile(r"^# (?P<names>(?:Size|Avg Latency\(us\)).*)$")
_SIZE = "Size"
_VALIDATION = "Validation"
_METRICS = {
    "Latency (us)": metrics.LATENCY,
    "Avg Latency(us)": metrics.LATENCY,
    "Min Latency(us)": metrics.FASTEST_RANK,
    "Max Latency(us)": metrics.SLOWEST_RANK,
}
_RATES = ("Bandwidth (MB/s)", "MB/s")
_WINDOW = 64
_ALL_PAIRS = ("multi_lat", "mbw_mr")
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


def argv(job: MpiJob) -> Argv:
    """Return the command that each rank runs. Sizes double from the smallest to the largest.

    With -f, collectives also print the fastest and the slowest rank.
    """
    warmup = _warm_up(job)
    sizes = () if job.test.name == "barrier" else ("-m", f"{min(job.sizes)}:{max(job.sizes)}")
    full = ("-f",) if job.test.kind is Kind.COLLECTIVE else ()
    return (job.test.program, "-i", str(job.iterations), "-x", str(warmup), *full, *sizes)


def _warm_up(job: MpiJob) -> int:
    return max(1, job.iterations // 10)


def _message_count(job: MpiJob) -> int:
    """Data messages of one size: a ping-pong has two, a window 64 in each direction (`-W`).

    So in these versions, where `-i` and `-x` are for large messages, too.
    """
    each = {"bw": _WINDOW, "mbw_mr": _WINDOW, "bibw": 2 * _WINDOW}.get(job.test.name, 2)
    pairs = job.mpi.ranks // 2 if job.test.name in _ALL_PAIRS else 1
    return pairs * each * (job.iterations + _warm_up(job))


def parse(job: MpiJob, stdout: str) -> Sweep:
    """Parse the output; keep the requested sizes. Raises CellError."""
    headings = list(_HEADING.finditer(stdout))
    if len(headings) != 1:
        bad_output(job, f"{len(headings)} headings of an OSU benchmark")
    (heading,) = headings
    if heading["title"] != _TITLES[job.test.name]:
        bad_output(job, f"its heading says {heading['title']!a:.60}")
    rows = _rows(job, stdout[heading.end() :])
    missing = [size for size in job.sizes if size not in rows]
    if missing:
        bad_output(job, f"no line for {missing[0]} bytes")
    # every message crosses the link between two nodes, and every collective at least once
    return Sweep(
        {size: _values(job, size, rows[size]) for size in job.sizes},
        payload_bytes=job.iterations * sum(job.sizes),
        messages=job.iterations * len(job.sizes),
        facts=version_facts(heading["version"], tested=r"[5-7]\."),
        sent=dict.fromkeys(job.sizes, _message_count(job)) if job.test.name in PAIR_TESTS else {},
    )


def _rows(job: MpiJob, text: str) -> dict[int, dict[str, float]]:
    """Return size → column → number."""
    rows = {}
    columns: list[str] = []
    for line in text.splitlines():
        named = _COLUMNS.match(line)
        if named is not None:
            columns = re.split(r"\s{2,}", named["names"].strip())
            continue
        words = line.split()
        if not columns or len(words) != len(columns):
            continue
        row = dict(zip(columns, words, strict=True))
        if row.pop(_VALIDATION, "Pass") != "Pass":
            bad_output(job, f"the data of {row.get(_SIZE, '0')!a:.20} bytes arrived corrupted")
        try:
            numbers = {name: float(word) for name, word in row.items()}
        except ValueError:
            continue  # a message of a library
        size = numbers.get(_SIZE, 0.0)
        if size.is_integer():
            rows[int(size)] = numbers
    return rows


def _values(job: MpiJob, size: int, row: dict[str, float]) -> tuple[Value, ...]:
    kind = job.test.kind

    def value(metric: str, column: str, scale: float, unit: str) -> Value:
        number = row[column]
        if not math.isfinite(number) or number <= 0:
            bad_output(job, f"at {size} bytes its {column} is {number}")
        return Value(metric, kind, number * scale, unit)

    if job.test.quantity == "latency":
        values = [value(m, column, 1e3, "ns") for column, m in _METRICS.items() if column in row]
    else:
        values = [value(metrics.BANDWIDTH, c, 1e6, "bytes/s") for c in _RATES if c in row]
        if "Messages/s" in row:
            values.append(value(metrics.MESSAGE_RATE, "Messages/s", 1, "1/s"))
        else:
            rates = [each.value / max(size, 1) for each in values]
            values += (Value(metrics.MESSAGE_RATE, kind, rate, "1/s") for rate in rates)
    if not values:
        bad_output(job, f"its columns are {list(row)!a:.60}")
    return tuple(values)


OMB = Suite(
    argv,
    parse,
    source=Source(
        "OSU Micro-Benchmarks",
        "Build them (mvapich.cse.ohio-state.edu/benchmarks) with the nodes' mpicc and "
        "`make install` with --prefix=/usr/local; or say "
        'tool = "mpibench" with method = "osu".',
    ),
)
