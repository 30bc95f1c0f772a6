# SPDX-License-Identifier: GPL-2.0-or-later
"""perftest (`ib_write_lat`, `ib_send_bw`, …): command lines and output.

Formats: REPORT_FMT, REPORT_FMT_LAT, print_report_lat and print_report_bw in perftest's
src/perftest_parameters.{h,c}, version 25.01 ("6.24"). We run latency tests with `-U` and compute
every figure from the raw samples, because the summary line omits the two worst samples and
computes its standard deviation from whole microseconds.
"""

from __future__ import annotations

import re

from rocelab import metrics
from rocelab.plans.benchmarks.tool import (
    End,
    Job,
    Measurement,
    Passing,
    Tool,
    Value,
    bad_output,
    number,
    positive,
)
from rocelab.plans.catalog import Kind, Test
from rocelab.stats.summary import mean, median, nearest_rank, sample_stdev

_MTU = re.compile(r"^[ \t]*+Mtu[ \t]*+:[ \t]*+(\d{3,4})\[B\]", re.MULTILINE)
_SAMPLE = re.compile(r"^(\d+), (\S+)$")
# from 26.01 on with the status in words: "Failed status-transport retry counter exceeded (12)"
_FAILED = re.compile(r"Failed status(?: |-[^\n()]{0,100}\()(\d{1,3})\b", re.ASCII)
_MIB = float(1 << 20)
PROC_STAT = "proc_stat"
"""The kind of a CPU utilization computed from the ticks in /proc/stat (docs/howto/cpu.md)."""
_LONGEST_SAMPLE_US = 1e9
"""perftest subtracts unsigned cycle counters: if one runs backwards, the sample is huge."""
_CONNECTION_TRIES = 10
"""As many as perftest means to make; each fails before anything is measured."""
_CLOCK_TRIES = 3
"""Each takes as long as the measurement."""


def server(job: Job) -> tuple[str, ...]:
    """Return the server's command line."""
    depth = () if job.rx_depth is None else ("-r", str(job.rx_depth))
    return (*_common(job, job.server), *depth)


def client(job: Job) -> tuple[str, ...]:
    """Return the command line of the client, which measures."""
    raw = ("-U",) if job.test.quantity == "latency" else ()
    return (*_common(job, job.client), *raw, job.server.ipv4)


def _common(job: Job, end: End) -> tuple[str, ...]:
    # atomics have one size and no option for it
    size = () if job.test.name.startswith("atomic") else ("-s", str(job.size))
    mtu = () if job.path_mtu is None or end.rdma_cm else ("-m", str(job.path_mtu))
    # perftest reads /proc/stat only in tests that run for a duration
    length = ("-D", str(job.seconds), "--cpu_util") if job.cpu_util else ("-n", str(job.iterations))
    events = ("-e",) if job.events else ()
    # without a GID, InfiniBand addresses the peer by its LID
    gid = ("-x", str(end.gid_index)) if end.gid_index >= 0 else ()
    by_cm = ("-R",) if end.rdma_cm or job.retry_count is not None else ()
    asked = {"--tclass": job.traffic_class, "--sl": job.service_level}
    # only rdma_cm takes a number of retries; otherwise it is 7, which rxe takes as unlimited
    retries = () if job.retry_count is None else (f"--retry_count={job.retry_count}",)
    priority = tuple(f"{name}={value}" for name, value in asked.items() if value is not None)
    return (
        *(
            job.test.program,
            "-F",
            "-d",
            end.device,
            "-i",
            str(end.port),
            *gid,
            *by_cm,
            *priority,
            *retries,
        ),
        *("-p", str(job.tcp_port), *length, *events),
        *("-u", str(job.qp_timeout), *mtu, *size),
    )


def parse(job: Job, stdout: str) -> Measurement:
    """Parse the results of one run. Raises CellError."""
    match = _MTU.search(stdout)
    if match is None:
        bad_output(job, "no line with the MTU")
    # over iWARP TCP divides the messages, whatever perftest prints
    path_mtu = None if job.server.rdma_cm else int(match[1])
    if path_mtu is not None and job.path_mtu not in (None, path_mtu):
        bad_output(job, f"its MTU is {path_mtu}, not {job.path_mtu}")
    row = _summary(job, stdout)
    values = _latency(job, stdout, row) if job.test.quantity == "latency" else _bandwidth(job, row)
    # an atomic's eight bytes travel in its header, not as payload
    messages = int(row[1])
    payload = 0 if job.test.name.startswith("atomic") else messages * job.size
    # in a run for a duration, what was sent before and after it is not counted
    ways = 2 if job.test.kind is Kind.ONE_WAY_HALF_RTT else 1
    sent = 0 if job.cpu_util else messages * ways
    return Measurement(values, payload, messages=messages, path_mtu=path_mtu, sent=sent)


def passing(status: int, output: str) -> Passing | None:
    """Say what failed, if a client failed for a reason that may pass.

    A server listens twice with rdma_cm: for the addresses, then for the benchmark. A client that
    comes between means to try ten times within about a second (rdma_cm_client_connection() in
    perftest 4.5 and later). That is too short for a server whose machine waits for a processor, and
    perftest 25.01 crashes at its second try (SIGSEGV).

    A client compares its processor's clock with the time of day for a moment. If other work
    disturbs that, it takes 0 for the clock's rate (sample_get_cpu_mhz()), and bandwidths are 0.
    """
    if status and "RDMA_CM_EVENT_REJECTED" in output and completion_error(output) is None:
        return Passing(
            "rdma_cm did not connect the client",
            "Run it again: the server's machine was slow, or its server had ended.",
            _CONNECTION_TRIES,
        )
    if "Correlation coefficient r^2" in output:
        return Passing(
            "it could not measure its processor's clock",
            "Run it again, with less other work on the client's machine.",
            _CLOCK_TRIES,
        )
    return None


def completion_error(output: str) -> int | None:
    """Return the status of the work completion that ended a client (enum ibv_wc_status)."""
    failed = _FAILED.search(output)
    return int(failed[1]) if failed else None


def _summary(job: Job, stdout: str) -> list[str]:
    """Return the fields of the line below the last heading `#bytes #iterations …`."""
    lines = stdout.splitlines()
    headings = [i for i, line in enumerate(lines) if line.startswith(" #bytes")]
    if not headings:
        bad_output(job, "no table of results")
    below = [line.split() for line in lines[headings[-1] + 1 :] if line.strip()]
    fields = 9 if job.test.quantity == "latency" else 6 if job.cpu_util else 5
    if not below or len(below[0]) != fields:
        bad_output(job, "no complete line of results")
    row = below[0]
    done = re.fullmatch(r"[1-9]\d{0,11}", row[1], re.ASCII)
    is_complete = done if job.cpu_util else row[1] == str(job.iterations)
    if row[0] != str(job.size) or not is_complete:
        bad_output(job, f"results are for {row[0]!a:.20} bytes and {row[1]!a:.20} iterations")
    return row


def _latency(job: Job, stdout: str, row: list[str]) -> tuple[Value, ...]:
    samples = sorted(_samples(job, stdout))
    # `-n N` stamps N posts: N-1 intervals between them
    if len(samples) != job.iterations - 1:
        bad_output(job, f"{len(samples)} raw samples for {job.iterations} iterations")
    smallest = positive(job, "t_min", row[2])
    if abs(smallest - samples[0] / 1e3) > 0.01 + smallest * 1e-4:
        bad_output(job, "raw samples and summary disagree")
    figures = {
        "mean": mean(samples),
        "min": samples[0],
        "p50": median(samples),
        "p99": nearest_rank(samples, 0.99),
        "max": samples[-1],
        "stdev": sample_stdev(samples),
    }
    kind = job.test.kind
    return (
        *(
            Value(metrics.Latency(name).name, kind, number, "ns")
            for name, number in figures.items()
        ),
        Value(metrics.Latency("samples").name, kind, len(samples), "1"),
    )


def _samples(job: Job, stdout: str) -> list[float]:
    """Return the samples in ns, in order: the first block under `#, usec`."""
    lines = iter(stdout.splitlines())
    for line in lines:
        if line.startswith("#, "):
            if line.strip() != "#, usec":
                bad_output(job, f"raw samples are in {line[3:]!a:.20}, not in usec")
            break
    else:
        bad_output(job, "no raw samples")
    samples: list[float] = []
    for line in lines:
        match = _SAMPLE.match(line)
        if match is None or int(match[1]) != len(samples) + 1:
            break
        sample = positive(job, "a raw sample", match[2])
        if sample > _LONGEST_SAMPLE_US:
            bad_output(job, "the cycle counter ran backwards")
        samples.append(sample * 1e3)
    return samples


def round_trips(test: Test, stdout: str) -> list[float]:
    """Return the times from each post to the next, ns, of a latency test's output; [] if none.

    With `-U`, `-n N` prints N-1 of them, a ping-pong's halved.
    """
    match = re.search(r"^#, usec\s*$\n((?:^\d+, \S+$\n?)*)", stdout, re.MULTILINE)
    times = 2 if test.kind is Kind.ONE_WAY_HALF_RTT else 1
    try:
        halves = [float(line.split(", ")[1]) for line in match[1].splitlines()] if match else []
    except ValueError:
        return []
    fit = all(0 < half <= _LONGEST_SAMPLE_US for half in halves)
    return [half * 1e3 * times for half in halves] if fit else []


def _bandwidth(job: Job, row: list[str]) -> tuple[Value, ...]:
    """Compute bandwidth and message rate from the less rounded of perftest's two figures.

    perftest prints MiB/s in steps of 0.01 and million messages per second in steps of 10^-6: at
    3,000 messages of 64 bytes the first keeps two digits, at 30 of 1 MiB the second does.
    """
    from_mib = number(job, "BW average", row[3]) * _MIB
    from_rate = number(job, "MsgRate", row[4]) * 1e6 * job.size
    step_mib, step_rate = 0.005 * _MIB, 0.5 * job.size
    if abs(from_mib - from_rate) > (step_mib + step_rate) * 1.01:
        bad_output(job, "its bandwidth and its message rate disagree")
    bandwidth = from_mib if step_mib < step_rate else from_rate
    if bandwidth == 0:
        bad_output(job, "its bandwidth is zero")
    kind = job.test.kind
    used: tuple[Value, ...] = ()
    if job.cpu_util:
        percent = number(job, "CPU_Util", row[5])
        if percent > 100:
            bad_output(job, f"its CPU_Util is {percent}")
        used = (Value(metrics.CPU_UTILIZATION, PROC_STAT, percent / 100, "1"),)
    count = Value(metrics.MESSAGE_RATE, kind, bandwidth / job.size, "1/s")
    if kind is Kind.ROUND_TRIP:
        return (count, *used)  # round trips of eight bytes are counted, not a stream
    return (Value(metrics.BANDWIDTH, kind, bandwidth, "bytes/s"), count, *used)


PERFTEST = Tool(server, client, parse, passing=passing, times_its_clock=True)
