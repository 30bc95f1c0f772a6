# SPDX-License-Identifier: GPL-2.0-or-later
"""HPC Challenge 1.4 and 1.5 (Debian's hpcc) as found on the nodes: its input file and its report.

hpcc reads and writes files with fixed names in its working folder. The report ends with a section
of `name=value` lines. hpcc's README and HPL's TUNING document the input file.
"""

from __future__ import annotations

import math
import re

from rocelab import metrics
from rocelab.plans.benchmarks.mpi.suite import MpiJob, Source, Suite, Sweep, bad_output
from rocelab.plans.benchmarks.tool import Argv, Value

INPUT, REPORT = "hpccinf.txt", "hpccoutf.txt"
_SHORT, _LONG = 8, 2_000_000
"""Message sizes in bytes with which hpcc measures latency and bandwidth."""
_BEGIN, _END = "\nBegin of Summary section.\n", "\nEnd of Summary section."
_FAILED = re.compile(
    r"^[ \t]*+([1-9]\d*+) tests completed and failed residual checks", re.MULTILINE
)

# (size, metric, name in the summary, to our unit, our unit)
_FIGURES: tuple[tuple[int, str, str, float, str], ...] = (
    (0, "hpl.time", "HPL_time", 1e9, "ns"),
    (0, "hpl.rate", "HPL_Tflops", 1e12, "1/s"),
    (0, "ptrans.bandwidth", "PTRANS_GBs", 1e9, "bytes/s"),
    (0, "random_access.rate", "MPIRandomAccess_GUPs", 1e9, "1/s"),
    (0, "fft.rate", "MPIFFT_Gflops", 1e9, "1/s"),
    # these two send nothing: where transports differ in them, something else differed
    (0, "dgemm.rate", "StarDGEMM_Gflops", 1e9, "1/s"),
    (0, "stream_triad.bandwidth", "StarSTREAM_Triad", 1e9, "bytes/s"),
    (_SHORT, "ping_pong.latency", "AvgPingPongLatency_usec", 1e3, "ns"),
    (_SHORT, "natural_ring.latency", "NaturallyOrderedRingLatency_usec", 1e3, "ns"),
    (_SHORT, "random_ring.latency", "RandomlyOrderedRingLatency_usec", 1e3, "ns"),
    (_LONG, "ping_pong.bandwidth", "AvgPingPongBandwidth_GBytes", 1e9, "bytes/s"),
    (_LONG, "natural_ring.bandwidth", "NaturallyOrderedRingBandwidth_GBytes", 1e9, "bytes/s"),
    (_LONG, "random_ring.bandwidth", "RandomlyOrderedRingBandwidth_GBytes", 1e9, "bytes/s"),
)


def argv(_: MpiJob) -> Argv:
    """Return the command that each rank runs in the folder of the input file."""
    return ("hpcc",)


def files(job: MpiJob) -> dict[str, str]:
    """Return the input file: one matrix of the plan's order, the rest as in hpcc's example.

    The first word of a line is a setting; the line's number says which one.
    """
    order = int(job.mpi.problem)
    rows = max(p for p in range(1, math.isqrt(job.mpi.ranks) + 1) if job.mpi.ranks % p == 0)
    settings = (
        ("HPL.out", "file of results"),
        (8, "to a file"),
        *((1, "orders"), (order, "N"), (1, "blocks"), (80 if order >= 800 else 40, "NB")),
        *((0, "ranks by row"), (1, "grids"), (rows, "P"), (job.mpi.ranks // rows, "Q")),
        (16.0, "threshold"),
        *((1, "panel factorisations"), (2, "right"), (1, "stopping criteria"), (4, "NBMIN")),
        *((1, "panels"), (2, "NDIV"), (1, "recursive factorisations"), (1, "Crout")),
        *((1, "broadcasts"), (1, "ring, modified"), (1, "depths of look-ahead"), (1, "depth")),
        *((2, "swap: mixed"), (64, "its threshold"), (0, "L1 transposed"), (0, "U transposed")),
        *((1, "equilibration"), (8, "alignment")),
    )
    lines = ("HPLinpack input", "by rocelab", *(f"{value} {label}" for value, label in settings))
    return {INPUT: "\n".join(lines) + "\n"}


def parse(job: MpiJob, report: str) -> Sweep:
    """Parse a report. Raises CellError."""
    _, begin, rest = f"\n{report}".partition(_BEGIN)
    summary, end, _ = rest.partition(_END)
    if not (begin and end):
        bad_output(job, "no summary in its report")
    facts = dict(line.split("=", 1) for line in summary.splitlines() if "=" in line)
    expected = {"Success": "1", "CommWorldProcs": str(job.mpi.ranks), "HPL_N": job.mpi.problem}
    for name, value in expected.items():
        if facts.get(name) != value:
            bad_output(job, f"its {name} is {facts.get(name)!a:.40}, not {value}")
    if failed := _FAILED.search(report):
        bad_output(job, f"{failed[1]} of its tests computed a wrong result")
    values: dict[int, list[Value]] = {}
    for size, metric, theirs, scale, unit in _FIGURES:
        number = _number(facts.get(theirs, "")) * scale
        if number > 0:  # what it left out is -1
            figure = Value(metrics.Application(metric).name, job.test.kind, number, unit)
            values.setdefault(size, []).append(figure)
    if 0 not in values:
        bad_output(job, "no figure in its summary")
    version = ".".join(facts.get(f"Version{part}", "?") for part in ("Major", "Minor", "Micro"))
    return Sweep(
        {size: tuple(some) for size, some in values.items()},
        # at least one long ping-pong between the nodes, and a loop of eight short ones
        payload_bytes=2 * _LONG,
        messages=2 * 8,
        facts={"version": version},
    )


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return -1.0
    return number if math.isfinite(number) else -1.0


HPCC = Suite(
    argv,
    parse,
    files=files,
    report=REPORT,
    source=Source("HPC Challenge", "apt-get install hpcc"),
)
