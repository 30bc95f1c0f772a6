# SPDX-License-Identifier: GPL-2.0-or-later
"""ucx_perftest (UCX over TCP and verbs): command lines and CSV output, as of 1.13 and 1.18.

Format: print_progress in src/tools/perf/perftest.c. Its MB are 2^20 bytes, its bandwidth has two
digits behind the point and its rate none: the rate is the less rounded.
"""

from __future__ import annotations

import re

from rocelab import metrics
from rocelab.plans.benchmarks import ucx
from rocelab.plans.benchmarks.tool import (
    End,
    Job,
    Measurement,
    Tool,
    Value,
    bad_output,
    number,
    positive,
)

_HEAD = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr"
_ROW = re.compile(r"^ *\d+(?:,\d+(?:\.\d+)?){7}\n", re.MULTILINE | re.ASCII)
_MIB = float(1 << 20)
_WARM_UP = 10
_MPI_MODE = "-P"


def server(job: Job) -> tuple[str, ...]:
    """Return the server's command line; it serves one client."""
    return _common(job, job.server)


def client(job: Job) -> tuple[str, ...]:
    """Return the command line of the client, which measures."""
    asked = ("-t", job.test.name, "-s", str(job.size), "-n", str(job.iterations))
    return (*_common(job, job.client), *asked, "-w", str(_WARM_UP), "-f", "-v", job.server.ipv4)


def _common(job: Job, end: End) -> tuple[str, ...]:
    where: tuple[str, ...] = ("UCX_TLS=tcp", f"UCX_NET_DEVICES={end.netdev}")
    if end.device:
        # rc_verbs sets up its connections by UD
        where = (
            *("UCX_TLS=rc_verbs,ud_verbs:aux", "=".join(ucx.OVER_IPV4)),
            f"UCX_NET_DEVICES={end.device}:{end.port}",
        )
    gid = (f"UCX_IB_GID_INDEX={end.gid_index}",) if end.gid_index >= 0 else ()
    return (
        *("env", *where, *gid),
        *("ucx_perftest", "-p", str(job.tcp_port)),
        # one that is built with MPI would wait for it
        *((_MPI_MODE, "0") if _MPI_MODE in end.options else ()),
    )


def parse(job: Job, stdout: str) -> Measurement:
    """Parse the final row. Raises CellError."""
    rows = _ROW.findall(stdout)
    if _HEAD not in stdout or not rows:
        bad_output(job, "no final row below its heading")
    iterations, _, _, latency, _, bandwidth, _, rate = rows[-1].strip().split(",")
    if int(iterations) != job.iterations:
        bad_output(job, f"results are for {iterations} messages")
    kind = job.test.kind
    if job.test.quantity == "latency":
        messages = 2 * job.iterations
        value = positive(job, "overall_lat", latency) * 1e3
        values: tuple[Value, ...] = (Value(metrics.LATENCY, kind, value, "ns"),)
    else:
        messages = job.iterations
        per_second = positive(job, "overall_mr", rate)
        rate = per_second * job.size
        if abs(rate - number(job, "overall_bw", bandwidth) * _MIB) > 0.006 * _MIB + job.size:
            bad_output(job, "its bandwidth and its message rate disagree")
        values = (
            Value(metrics.BANDWIDTH, kind, rate, "bytes/s"),
            Value(metrics.MESSAGE_RATE, kind, per_second, "1/s"),
        )
    return Measurement(values, messages * job.size, messages=messages)


UCX_PERFTEST = Tool(server, client, parse, optional=(_MPI_MODE,))
