# SPDX-License-Identifier: GPL-2.0-or-later
"""mpibench (tools/mpibench): command line and JSON, docs/formats/mpibench.md."""

from __future__ import annotations

import math
from typing import Any

from rocelab import json_text, metrics
from rocelab.plans.benchmarks.mpi.suite import MpiJob, Source, Suite, Sweep, bad_output
from rocelab.plans.benchmarks.tool import Argv, Value
from rocelab.plans.catalog import PAIR_TESTS

SCHEMA = "rocelab.mpibench/1"
PROGRAM = "mpibench"


def argv(job: MpiJob) -> Argv:
    """Return the command that each rank runs."""
    return (
        *(PROGRAM, "--json", "--method", job.mpi.method, "--iterations", str(job.iterations)),
        *("--window", str(job.mpi.window), "--sizes", ",".join(map(str, job.sizes))),
        *(("--each",) if job.each else ()),
        job.test.name,
    )


def parse(job: MpiJob, stdout: str) -> Sweep:
    """Parse the results by size. Raises CellError."""
    try:
        document = _document(stdout)
    except ValueError as error:
        bad_output(job, str(error))
    try:
        if (document["method"], document["ranks"]) != (job.mpi.method, job.mpi.ranks):
            bad_output(job, "it has another method or number of ranks than requested")
        rows = {int(row["size"]): row for row in document["results"]}
        wrong = {row["test"] for row in rows.values()} != {job.test.name}
        if wrong or sorted(rows) != sorted(job.sizes):
            bad_output(job, f"results are for {sorted(rows)!a:.60} bytes")
        return Sweep(
            {size: tuple(_values(job, row)) for size, row in rows.items()},
            payload_bytes=sum(int(row["across"]["bytes"]) for row in rows.values()),
            messages=sum(int(row["across"]["messages"]) for row in rows.values()),
            sent={size: _message_count(row) for size, row in rows.items()}
            if job.test.name in PAIR_TESTS
            else {},
            facts={
                **{key: document[key] for key in ("version", "mpi", "method", "nodes", "cvars")},
                "iterations": {
                    str(size): [int(row["warmup"]), int(row["iterations"])]
                    for size, row in rows.items()
                },
            },
        )
    except (KeyError, TypeError, ValueError) as error:
        bad_output(job, f"its JSON has no valid {error!a:.60}")


def round_trips(stdout: str) -> list[list[float]]:
    """Return the times from each ping-pong to the next, ns, for each size; [] without `--each`."""
    try:
        rows = _document(stdout)["results"]
        each = [row["each_ns"] for row in rows if row["test"] == "latency" and "each_ns" in row]
        return [[float(time) for time in times] for times in each]
    except (KeyError, TypeError, ValueError, OverflowError):
        return []


def _message_count(row: dict[str, Any]) -> int:
    """`across` counts the timed messages and those of the check, but not the warm-up."""
    timed = int(row["iterations"]) * len(row["trials_ns"]) + 1
    warm_up = int(row["warmup"]) * len(row["trials_ns"])
    messages = int(row["across"]["messages"])
    return messages // timed * (timed + warm_up)


def _document(stdout: str) -> dict[str, Any]:
    """Return the JSON document, a single line. An MPI library may print warnings around it.

    Raises ValueError, which says what is wrong.
    """
    lines = [line for line in stdout.splitlines() if line.startswith('{"schema":')]
    if len(lines) != 1:
        raise ValueError(f"{len(lines)} documents")
    try:
        document = json_text.parse_any(lines[0])
    except (ValueError, RecursionError):
        raise ValueError("its JSON is incomplete") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"its JSON does not have the schema {SCHEMA}")
    return document


def _values(job: MpiJob, row: dict[str, Any]) -> list[Value]:
    kind = job.test.kind

    def value(metric: str, number: object, unit: str) -> Value:
        amount = float(number)  # type: ignore[arg-type]  # what is none is an error of the document
        if not math.isfinite(amount) or amount <= 0:
            bad_output(job, f"its {metric} at {row['size']} bytes is {amount}")
        return Value(metric, kind, amount, unit)

    if job.test.quantity == "bandwidth":
        # empty messages have a rate but no bandwidth
        sized = [(metrics.BANDWIDTH, row["bandwidth"], "bytes/s")] if row["size"] else []
        rate = (metrics.MESSAGE_RATE, row["message_rate"], "1/s")
        return [value(*each) for each in (*sized, rate)]
    values = [value(metrics.LATENCY, row["latency_ns"], "ns")]
    if "ranks_ns" in row:
        ranks = row["ranks_ns"]
        values.append(value(metrics.FASTEST_RANK, ranks["min"], "ns"))
        values.append(value(metrics.SLOWEST_RANK, ranks["max"], "ns"))
    return values


MPIBENCH = Suite(
    argv,
    parse,
    source=Source(
        "mpibench",
        "`rocelab hosts prepare` puts it on a host of your own, `rocelab up` on its own nodes.",
    ),
)
