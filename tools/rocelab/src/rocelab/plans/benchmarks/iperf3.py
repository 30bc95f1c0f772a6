# SPDX-License-Identifier: GPL-2.0-or-later
"""iperf3 (TCP bandwidth): command lines and JSON output, as of 3.18."""

from __future__ import annotations

from rocelab import json_text, metrics
from rocelab.plans.benchmarks.tool import Job, Measurement, Tool, Value, bad_output, positive

_OMITTED_SECONDS = "1"
"""iperf3 leaves this time out of the result: slow start, cold caches."""


def server(job: Job) -> tuple[str, ...]:
    """Return the server's command line; it serves one client."""
    return (
        "iperf3",
        "--server",
        "--one-off",
        "--bind",
        job.server.ipv4,
        "--port",
        str(job.tcp_port),
    )


def client(job: Job) -> tuple[str, ...]:
    """Return the client's command line; it sends and measures."""
    length = (
        ("--blockcount", str(job.iterations))
        if job.by_count
        else ("--time", str(job.seconds), "--omit", _OMITTED_SECONDS)
    )
    return (
        *("iperf3", "--client", job.server.ipv4, "--port", str(job.tcp_port), "--json"),
        *(*length, "--length", str(job.size)),
    )


def parse(job: Job, stdout: str) -> Measurement:
    """Parse what the receiver got. Raises CellError."""
    try:
        document = json_text.parse_any(stdout)
    except (ValueError, RecursionError):
        bad_output(job, "its output is not JSON")
    if isinstance(document, dict) and "error" in document:
        bad_output(job, f"it says {str(document['error'])!a:.120}")
    size = _at(job, document, "start", "test_start", "blksize")
    if size != job.size:
        bad_output(job, f"results are for {size!a:.20} bytes")
    received = _at(job, document, "end", "sum_received", "bytes")
    seconds = _at(job, document, "end", "sum_received", "seconds")
    carried = positive(job, "received bytes", received)
    bandwidth = carried / positive(job, "seconds", seconds)
    if job.by_count:
        written = _at(job, document, "end", "sum_sent", "bytes")
        sent = round(positive(job, "sent bytes", written) / job.size)
        if sent < job.iterations:
            bad_output(job, f"it sent {sent} messages of {job.iterations}")
        # no bandwidth: it notices the end only after a whole second
        return Measurement((), int(carried), sent=sent)
    # no message rate: TCP is a stream, and iperf3 counts bytes, not writes
    return Measurement(
        (Value(metrics.BANDWIDTH, job.test.kind, bandwidth, "bytes/s"),), int(carried)
    )


def _at(job: Job, document: object, *keys: str) -> object:
    for key in keys:
        if not isinstance(document, dict) or key not in document:
            bad_output(job, f"no {'.'.join(keys)}")
        document = document[key]
    return document


IPERF3 = Tool(server, client, parse)
