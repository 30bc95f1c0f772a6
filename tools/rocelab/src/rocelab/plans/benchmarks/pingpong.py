# SPDX-License-Identifier: GPL-2.0-or-later
"""tools/pingpong: one ping-pong over TCP and over verbs, a given number of messages.

Both ends sleep until a message comes, or both spin (`polled_latency`), on every transport alike.
"""

from __future__ import annotations

from rocelab import json_text, metrics
from rocelab.plans.benchmarks.tool import End, Job, Measurement, Tool, Value, bad_output, positive

_SCHEMA = "rocelab.pingpong/1"


def server(job: Job) -> tuple[str, ...]:
    """Return the server's command line; it serves one client."""
    return _common(job, job.server)


def client(job: Job) -> tuple[str, ...]:
    """Return the client's command line; it begins and measures."""
    spin = ("--poll",) if job.test.name == "polled_latency" else ()
    asked = ("--count", str(job.iterations), "--size", str(job.size), *spin)
    return (*_common(job, job.client), *asked, job.server.ipv4)


def _common(job: Job, end: End) -> tuple[str, ...]:
    over: tuple[str, ...] = ()
    if end.device:
        over = ("--device", end.device, "--ib-port", str(end.port))
        over += ("--gid-index", str(end.gid_index), "--timeout", str(job.qp_timeout))
        over += () if job.path_mtu is None else ("--mtu", str(job.path_mtu))
    return ("pingpong", "--port", str(job.tcp_port), *over)


def parse(job: Job, stdout: str) -> Measurement:
    """Parse the client's JSON. Raises CellError."""
    try:
        document = json_text.parse_any(stdout)
    except (ValueError, RecursionError):
        bad_output(job, "its output is not JSON")
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        bad_output(job, f"its output does not have the schema {_SCHEMA}")
    if (document.get("size"), document.get("sent"), document.get("received")) != (
        job.size,
        job.iterations,
        job.iterations,
    ):
        bad_output(job, "results are for other messages")
    messages = 2 * job.iterations
    latency = positive(job, "elapsed_ns", document.get("elapsed_ns")) / messages
    path_mtu = document.get("path_mtu")
    return Measurement(
        (Value(metrics.LATENCY, job.test.kind, latency, "ns"),),
        messages * job.size,
        messages=messages,
        path_mtu=path_mtu if isinstance(path_mtu, int) and path_mtu > 0 else None,
        sent=messages,
    )


PINGPONG = Tool(server, client, parse)
