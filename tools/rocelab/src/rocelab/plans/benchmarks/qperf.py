# SPDX-License-Identifier: GPL-2.0-or-later
"""qperf (`tcp_lat`, `tcp_bw`): command lines and output.

Units and rounding: the view_* functions in src/qperf.c of qperf 0.4.11. `-uu` fixes one unit per
quantity and `-e` the number of digits; we parse the other units too, for output pasted by a
person. qperf measures with times(2), in steps of 10 ms: one second gives results in steps of 1 %.
"""

from __future__ import annotations

import re

from rocelab import metrics
from rocelab.plans.benchmarks.tool import Job, Measurement, Tool, Value, bad_output, positive

_LINE = re.compile(r"^\s++(\w++)\s++=\s++(\S++)(?:\s++(\S.*))?$")
_NUMBER = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?")
_EXACT_SIZE = re.compile(r"[KMGT]i?B \(([\d,]+)\)")
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SCALES = {
    "latency": {"ns": 1.0, "us": 1e3, "ms": 1e6, "sec": 1e9},
    "bytes": {f"{prefix}B" if prefix else "bytes": scale for prefix, scale in _PREFIXES.items()},
    "bandwidth": {
        f"{prefix}{unit}/sec": scale * octets
        for prefix, scale in _PREFIXES.items()
        for unit, octets in (("B" if prefix else "bytes", 1), ("b" if prefix else "bits", 1 / 8))
    },
}
_ENOUGH_DIGITS = "9"


def server(job: Job) -> tuple[str, ...]:
    """Return the server's command line; the client's `quit` ends it."""
    return ("qperf", "--listen_port", str(job.tcp_port))


def client(job: Job) -> tuple[str, ...]:
    """Return the command line of the client, which measures."""
    return (
        *_connect(job),
        *("--time", str(job.seconds), "--msg_size", str(job.size)),
        *("--unify_units", "--precision", _ENOUGH_DIGITS, "--verbose_stat"),
        *("--verbose_more_stat", "--verbose_used", job.test.name, "quit"),
    )


def loader(job: Job) -> tuple[str, ...]:
    """Return the command line of a client that asks the server for its configuration."""
    return (*_connect(job), "conf", "quit")


def _connect(job: Job) -> tuple[str, ...]:
    return ("qperf", job.server.ipv4, "--listen_port", str(job.tcp_port))


def parse(job: Job, stdout: str) -> Measurement:
    """Parse the results of one run. Raises CellError."""
    fields = _fields(job, stdout)
    size = _field_value(job, fields, "msg_size", "bytes")
    if size != job.size:
        bad_output(job, f"results are for {size:g} bytes")
    kind = job.test.kind
    if job.test.quantity == "latency":
        latency = _field_value(job, fields, "latency", "latency")
        # qperf divides the time by the messages of both directions: half a round trip each
        messages = sum(_count(job, fields, f"{end}_recv_msgs") for end in ("loc", "rem"))
        _check_duration(job, latency * messages / 1e9)
        carried = sum(
            _field_value(job, fields, f"{end}_send_bytes", "bytes") for end in ("loc", "rem")
        )
        sent = sum(_count(job, fields, f"{end}_send_msgs") for end in ("loc", "rem"))
        values = (Value(metrics.LATENCY, kind, latency, "ns"),)
        return Measurement(values, int(carried), sent=int(sent))
    bandwidth = _field_value(job, fields, "bw", "bandwidth")
    received = _field_value(job, fields, "recv_bytes", "bytes")
    _check_duration(job, received / bandwidth)
    return Measurement(
        (
            Value(metrics.BANDWIDTH, kind, bandwidth, "bytes/s"),
            # not qperf's figure, which divides the receiver's messages by the sender's time
            Value(metrics.MESSAGE_RATE, kind, bandwidth / job.size, "1/s"),
        ),
        int(received),
        sent=int(_count(job, fields, "send_msgs")),
    )


def _check_duration(job: Job, seconds: float) -> None:
    """Check that result and counts match the duration, which may be longer on a busy node."""
    if not 0.9 * job.seconds <= seconds <= 10 * job.seconds + 10:
        bad_output(job, "its result does not fit its counts")


def _fields(job: Job, stdout: str) -> dict[str, tuple[str, str]]:
    """Parse the lines below the test's heading into name: (number, unit)."""
    lines = stdout.splitlines()
    if f"{job.test.name}:" not in lines:
        bad_output(job, "no results")
    fields: dict[str, tuple[str, str]] = {}
    for line in lines[lines.index(f"{job.test.name}:") + 1 :]:
        if line and not line[0].isspace():
            if line.endswith(":"):
                break  # the next test
            continue  # a warning
        match = _LINE.match(line.rstrip())
        if match is not None:
            fields[match[1]] = (match[2], match[3] or "")
    return fields


def _count(job: Job, fields: dict[str, tuple[str, str]], name: str) -> float:
    """Return a field without a unit. Raises CellError unless it is above zero."""
    text, unit = fields.get(name, ("", ""))
    if unit or not _NUMBER.fullmatch(text):
        bad_output(job, f"no {name}")
    return positive(job, name, text.replace(",", ""))


def _field_value(job: Job, fields: dict[str, tuple[str, str]], name: str, quantity: str) -> float:
    """Return a field in ns, bytes/s, 1/s or bytes. Raises CellError unless it is above zero."""
    if name not in fields:
        bad_output(job, f"no {name}")
    text, unit = fields[name]
    exact = _EXACT_SIZE.fullmatch(unit)
    if exact is not None:  # `64 KiB (65,536)`: the exact number follows
        text, unit = exact[1], "bytes"
    if not _NUMBER.fullmatch(text):
        bad_output(job, f"{name} is not a number: {text!a:.40}")
    scale = _SCALES[quantity].get(unit)
    if scale is None:
        bad_output(job, f"{name} has the unknown unit {unit!a:.20}")
    return positive(job, name, text.replace(",", "")) * scale


QPERF = Tool(server, client, parse, loader=loader)
