# SPDX-License-Identifier: GPL-2.0-or-later
"""fi_pingpong (libfabric over TCP and verbs): command lines and output, as of 1.17 and 2.1.

Format: show_perf in util/pingpong.c. The time of a message has two digits behind the point.
"""

from __future__ import annotations

import re

from rocelab import metrics
from rocelab.plans.benchmarks import short_numbers
from rocelab.plans.benchmarks.tool import End, Job, Measurement, Tool, Value, bad_output, positive

_ROW = re.compile(
    r"^(?P<bytes>\S+) +(?P<sent>\S+) +=(?P<ack>\S+) +\S+ +\d+\.\d\ds +\d+\.\d\d +"
    r"(?P<usec>\d+\.\d\d) +\d+\.\d\d$",
    re.MULTILINE | re.ASCII,
)
_HEAD = "#sent"


def server(job: Job) -> tuple[str, ...]:
    """Return the server's command line; it serves one client."""
    return (*_common(job, job.server), "-B", str(job.tcp_port))


def client(job: Job) -> tuple[str, ...]:
    """Return the command line of the client, which measures."""
    return (*_common(job, job.client), "-P", str(job.tcp_port), job.server.ipv4)


def _common(job: Job, end: End) -> tuple[str, ...]:
    # else tcp takes the first interface: 1.17 ignores `-d` there, and has no option for an address
    over = (
        ("fi_pingpong", "-p", "verbs", "-d", end.device)
        if end.device
        else ("env", f"FI_TCP_IFACE={end.netdev}", "fi_pingpong", "-p", "tcp")
    )
    return (*over, "-e", "msg", "-I", str(job.iterations), "-S", str(job.size))


def parse(job: Job, stdout: str) -> Measurement:
    """Parse the row of the size. Raises CellError."""
    rows = list(_ROW.finditer(stdout))
    if _HEAD not in stdout or len(rows) != 1:
        bad_output(job, "it has no row of results, or several")
    (row,) = rows
    sent = short_numbers.count(job.iterations)
    for column, number in (("bytes", short_numbers.size(job.size)), ("sent", sent), ("ack", sent)):
        if row[column] != number:
            bad_output(job, f"results are for {row[column]} {column}")
    messages = 2 * job.iterations
    latency = positive(job, "usec/xfer", row["usec"]) * 1e3
    return Measurement(
        (Value(metrics.LATENCY, job.test.kind, latency, "ns"),),
        messages * job.size,
        messages=messages,
    )


FI_PINGPONG = Tool(server, client, parse, rdma_cm=True)
