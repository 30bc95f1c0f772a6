# SPDX-License-Identifier: GPL-2.0-or-later
"""fio on a disk in the other node's memory, over NVMe-oF or NFS: command line and output.

The server is the kernel of the second node (rocelab.measure.remote_disk). fio reads or writes so
many blocks as the plan has iterations, past the client's page cache. Format: fio's JSON output,
version 3.39 (stat.c), times in ns. Percentiles are of its histogram, whose buckets are at most
1/64 wide.
"""

from __future__ import annotations

from typing import Any, Final

from rocelab import json_text, metrics
from rocelab.plans.benchmarks.tool import (
    Argv,
    Job,
    Measurement,
    Tool,
    Value,
    bad_output,
    number,
    positive,
)

DISK: Final = "disk"
"""In the step's folder on the client: a link to the disk, or to the file, of the other node."""
DISK_MIB: Final = 64
"""Its size; larger than a block of any size that a plan may have."""
_PERCENTILES: Final = {"p50": "50.000000", "p99": "99.000000"}
_SHORTEST_MS: Final = 100
"""fio counts the time of a job in ms: below, IOPS and bandwidth would be off by 1 % or more."""


def access(job: Job) -> str:
    """How the blocks are accessed, as fio's `rw` names it: read, write, randread or randwrite."""
    return job.test.name.partition("_")[2]


def client(job: Job) -> Argv:
    """Return fio's command line."""
    options = {
        "name": job.test.name,
        "filename": f"{job.folder}/{DISK}",
        "rw": access(job),
        "bs": str(job.size),
        "size": f"{DISK_MIB}m",
        "io_size": str(job.size * job.iterations),
        "iodepth": str(job.depth),
        "ioengine": "libaio",
        "direct": "1",
        # only root may drop a disk's cache, and what is direct has none
        "invalidate": "0",
        "allow_file_create": "0",
        # an emulated processor's cycle counter is no clock
        "clocksource": "clock_gettime",
        "lat_percentiles": "1",
        "clat_percentiles": "0",
        "percentile_list": ":".join(text.partition(".")[0] for text in _PERCENTILES.values()),
        "output-format": "json",
    }
    named = (f"--{name}={value}" for name, value in options.items())
    # with a map of the blocks it would begin a second round where each was accessed once
    return ("fio", "--thread", "--norandommap", *named)


def parse(job: Job, stdout: str) -> Measurement:
    """Parse the results of one job. Raises CellError."""
    done = _job(job, stdout)
    way, other = ("read", "write") if access(job).endswith("read") else ("write", "read")
    side = _table(job, done, way)
    size = job.size * job.iterations
    for label, printed, expected in (
        ("its error", done.get("error"), 0),
        (f"its number of {way}s", side.get("total_ios"), job.iterations),
        (f"its bytes of {way}s", side.get("io_bytes"), size),
        (f"its number of {other}s", _table(job, done, other).get("total_ios"), 0),
    ):
        if number(job, label, printed) != expected:
            bad_output(job, f"{label} is {printed!a:.40}, not {expected}")
    values = [*_latency(job, _table(job, side, "lat_ns"))]
    took = positive(job, "its runtime", side.get("runtime"))
    if took >= _SHORTEST_MS:
        kind = job.test.kind
        values += [
            Value(metrics.BANDWIDTH, kind, size / took * 1e3, "bytes/s"),
            Value(metrics.MESSAGE_RATE, kind, job.iterations / took * 1e3, "1/s"),
        ]
    return Measurement(tuple(values), size, messages=job.iterations, sent=job.iterations)


def _latency(job: Job, times: dict[str, Any]) -> list[Value]:
    """Return the latency from the submission of a request to its completion."""
    samples = number(job, "its number of samples", times.get("N"))
    if samples != job.iterations:
        bad_output(job, f"its latency is of {samples:.0f} samples")
    percentiles = _table(job, times, "percentile")
    figures = {
        "mean": positive(job, "its mean latency", times.get("mean")),
        "min": positive(job, "its least latency", times.get("min")),
        "max": positive(job, "its largest latency", times.get("max")),
        "stdev": number(job, "its standard deviation", times.get("stddev")),
        **{
            name: positive(job, f"its {name}", percentiles.get(text))
            for name, text in _PERCENTILES.items()
        },
    }
    if not figures["min"] <= figures["mean"] <= figures["max"]:
        bad_output(job, "its mean latency is not between the least and the largest")
    kind = job.test.kind
    return [
        *(Value(metrics.Latency(name).name, kind, each, "ns") for name, each in figures.items()),
        Value(metrics.Latency("samples").name, kind, samples, "1"),
    ]


def _job(job: Job, stdout: str) -> dict[str, Any]:
    """Return the entry of the one job, of this job's options."""
    try:
        document = json_text.parse_any(stdout)
    except (ValueError, RecursionError):
        bad_output(job, "fio's output is not JSON")
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list) or len(jobs) != 1 or not isinstance(jobs[0], dict):
        bad_output(job, "fio's output is not of one job")
    options = _table(job, jobs[0], "job options")
    for name, expected in (
        ("rw", access(job)),
        ("bs", str(job.size)),
        ("iodepth", str(job.depth)),
    ):
        if options.get(name) != expected:
            bad_output(job, f"its {name} is {options.get(name)!a:.40}, not {expected}")
    return jobs[0]


def _table(job: Job, where: dict[str, Any], name: str) -> dict[str, Any]:
    table = where.get(name)
    if not isinstance(table, dict):
        bad_output(job, f"fio's output has no {name!r}")
    return table


FIO = Tool(None, client, parse, remote_disk=True)
