# SPDX-License-Identifier: GPL-2.0-or-later
"""rping, udaddy and rstream (rdmacm-utils): command lines and output, as of rdma-core 56.

rping and udaddy print no time: it is taken from the client's start to its end.
"""

from __future__ import annotations

import re

from rocelab import metrics
from rocelab.plans.benchmarks import short_numbers, timed
from rocelab.plans.benchmarks.tool import Job, Measurement, Tool, Value, bad_output, positive

_PING = re.compile(r"^ping data: rdma-ping-(\d+): ", re.MULTILINE | re.ASCII)
UDADDY_PORT = 7174
"""The only one that it takes."""
_ROW = re.compile(
    r"^custom +(?P<bytes>\S+) +(?P<xfers>\S+) +(?P<iters>\S+) +\S+ +\d+\.\d\ds +\d+\.\d\d +"
    r"(?P<usec>\d+\.\d\d)$",
    re.MULTILINE | re.ASCII,
)
_BURST = 64
"""Messages of a burst in rstream's bandwidth, before the other end answers with as many."""


def _rping_server(job: Job) -> tuple[str, ...]:
    return ("rping", "-s", *_rping(job))


def _rping_client(job: Job) -> tuple[str, ...]:
    return ("rping", "-c", "-v", "-a", job.server.ipv4, *_rping(job))


def _rping(job: Job) -> tuple[str, ...]:
    return ("-p", str(job.tcp_port), "-C", str(job.iterations), "-S", str(job.size))


def _rping_parse(job: Job, stdout: str) -> Measurement:
    """Each ping is an RDMA READ and an RDMA WRITE of the size, with SENDs around them."""
    if [int(number) for number in _PING.findall(stdout)] != list(range(job.iterations)):
        bad_output(job, "it does not print the data of each ping")
    return _took(job, stdout, 2 * job.iterations)


def _udaddy_server(job: Job) -> tuple[str, ...]:
    return ("udaddy", *_udaddy(job))


def _udaddy_client(job: Job) -> tuple[str, ...]:
    return ("udaddy", "-s", job.server.ipv4, *_udaddy(job))


def _udaddy(job: Job) -> tuple[str, ...]:
    return ("-C", str(job.iterations), "-S", str(job.size))


def _udaddy_parse(job: Job, stdout: str) -> Measurement:
    lines = stdout.splitlines()
    if "data transfers complete" not in lines or "test complete" not in lines:
        bad_output(job, "it does not say that its transfers are complete")
    return _took(job, stdout, 2 * job.iterations)


def _took(job: Job, stdout: str, messages: int) -> Measurement:
    took = timed.seconds(job, stdout) * 1e9
    return Measurement(
        (Value(metrics.Application("time").name, job.test.kind, took, "ns"),),
        messages * job.size,
        messages=messages,
    )


def _rstream_server(job: Job) -> tuple[str, ...]:
    return ("rstream", *_rstream(job))


def _rstream_client(job: Job) -> tuple[str, ...]:
    return ("rstream", "-s", job.server.ipv4, *_rstream(job))


def _rstream(job: Job) -> tuple[str, ...]:
    bursts, burst = _bursts(job)
    sockets = () if job.server.device else ("-T", "s")
    counts = ("-S", str(job.size), "-C", str(burst), "-I", str(bursts))
    return ("-p", str(job.tcp_port), *counts, *sockets)


def _bursts(job: Job) -> tuple[int, int]:
    """Return the number of bursts in each direction, and the messages of one."""
    burst = 1 if job.test.quantity == "latency" else min(_BURST, job.iterations)
    return -(-job.iterations // burst), burst


def _rstream_parse(job: Job, stdout: str) -> Measurement:
    """Parse its row; sizes and numbers there are rounded (1.2m), the time of a message is not."""
    match = _ROW.search(stdout)
    if match is None:
        bad_output(job, "no row of results")
    bursts, burst = _bursts(job)
    for column, number in (
        ("bytes", short_numbers.size(job.size)),
        ("xfers", short_numbers.count(burst)),
        ("iters", short_numbers.count(bursts)),
    ):
        if match[column] != number:
            bad_output(job, f"results are for {match[column]} {column}")
    nanoseconds = positive(job, "usec/xfer", match["usec"]) * 1e3
    messages, kind = 2 * bursts * burst, job.test.kind
    if job.test.quantity == "latency":
        value = Value(metrics.LATENCY, kind, nanoseconds, "ns")
    else:
        value = Value(metrics.BANDWIDTH, kind, job.size * 1e9 / nanoseconds, "bytes/s")
    # rsockets may join small messages, as TCP does
    return Measurement((value,), messages * job.size, messages=1)


RPING = Tool(
    _rping_server, _rping_client, _rping_parse, timed=True, rdma_cm=True, listens_by="rdma_cm"
)
UDADDY = Tool(
    *(_udaddy_server, _udaddy_client, _udaddy_parse),
    timed=True,
    rdma_cm=True,
    listens_by="rdma_cm",
    port=UDADDY_PORT,
)
RSTREAM = Tool(_rstream_server, _rstream_client, _rstream_parse, rdma_cm=True, listens_by="rdma_cm")
