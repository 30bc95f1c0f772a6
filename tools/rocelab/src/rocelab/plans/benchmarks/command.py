# SPDX-License-Identifier: GPL-2.0-or-later
"""A user's own command: its words, and how its number is found in what it prints."""

from __future__ import annotations

import json
from collections.abc import Mapping

from rocelab import metrics
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
from rocelab.plans.command import MESSAGES, UNITS, VALUE, CommandPlan, fill_in

_TIME = metrics.Application("time").name
_METRICS = {
    "latency": (metrics.LATENCY, "ns"),
    "round_trip": (metrics.LATENCY, "ns"),
    "bandwidth": (metrics.BANDWIDTH, "bytes/s"),
    "rate": (metrics.Application("rate").name, "1/s"),
    "time": (_TIME, "ns"),
}
"""By test."""


def server(job: Job) -> tuple[str, ...]:
    """Return the server's command line; empty if there is none."""
    return fill_in(_plan(job).server, _words(job, job.server, job.client))


def client(job: Job) -> tuple[str, ...]:
    """Return the client's command line."""
    return fill_in(_plan(job).client, _words(job, job.client, job.server))


def parse(job: Job, stdout: str) -> Measurement:
    """Read the value where the plan says; without such a place, how long the client ran."""
    plan, test = _plan(job), job.test
    if not plan.unit:
        took = Value(_TIME, test.kind, positive(job, "its duration", job.wall_ns), "ns")
        return Measurement((took,), 0)
    numbers = _in_json(job, plan, stdout) if plan.json else _in_lines(job, plan, stdout)
    metric, unit = _METRICS[test.name]
    value = positive(job, VALUE, numbers[VALUE]) * UNITS[test.name][plan.unit]
    count = numbers.get(MESSAGES)
    messages = 0 if count is None else int(number(job, MESSAGES, count))
    return Measurement((Value(metric, test.kind, value, unit),), 0, messages, sent=messages)


def _plan(job: Job) -> CommandPlan:
    assert job.command is not None, "plan_file reads it for this tool"
    return job.command


def _words(job: Job, end: End, peer: End) -> dict[str, str]:
    values = {
        "size": str(job.size),
        "iterations": str(job.iterations),
        "tcp_port": str(job.tcp_port),
        "address": end.ipv4,
        "netdev": end.netdev,
        "peer": peer.ipv4,
    }
    return values | ({"device": end.device, "gid": str(end.gid_index)} if end.device else {})


def _in_json(job: Job, plan: CommandPlan, stdout: str) -> Mapping[str, object]:
    """Look in all that was printed, or in its last line."""
    lines = stdout.strip().splitlines()
    for text in (stdout, lines[-1] if lines else ""):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            continue
        values = {VALUE: _at(job, document, plan.json)}
        return values | ({MESSAGES: _at(job, document, plan.messages)} if plan.messages else {})
    return bad_output(job, "neither its output nor its last line is JSON")


def _at(job: Job, document: object, path: str) -> object:
    for step in path.split("."):
        try:
            document = document[int(step)] if isinstance(document, list) else document[step]  # type: ignore[index]
        except (LookupError, TypeError, ValueError):
            bad_output(job, f"its JSON has no {path}")
    if isinstance(document, bool):
        bad_output(job, f"{path} is no number")
    return document


def _in_lines(job: Job, plan: CommandPlan, stdout: str) -> Mapping[str, object]:
    """Return the groups of the last line that matches."""
    # its regular expressions need time in proportion to the text (rocelab.plans.command)
    import polars as pl

    lines = pl.Series(stdout.splitlines(), dtype=pl.String)
    groups = lines.str.extract_groups(plan.regex).struct.unnest()
    matching = groups.filter(pl.col(VALUE).is_not_null())
    if matching.is_empty():
        bad_output(job, "no line has its value")
    last = matching.row(-1, named=True)
    return {name: last[name] for name in (VALUE, MESSAGES) if last.get(name) is not None}


COMMAND = Tool(server, client, parse)
