# SPDX-License-Identifier: GPL-2.0-or-later
"""What every benchmark tool's module offers: two command lines and a parser, all pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NoReturn

from rocelab.bench.catalog import Test
from rocelab.errors import CellError


@dataclass(frozen=True)
class End:
    """One end of a benchmark: an address on the data link, and its verbs device if it needs one."""

    ipv4: str
    device: str = ""
    port: int = 0
    gid_index: int = -1


@dataclass(frozen=True)
class Job:
    """One benchmark of one size between two nodes."""

    test: Test
    size: int
    """Message size in bytes."""
    iterations: int
    seconds: int
    qp_timeout: int
    """Local ACK timeout of the queue pair: 4.096 µs times 2^qp_timeout."""
    tcp_port: int
    """Where the server listens."""
    client: End
    server: End
    path_mtu: int | None = None
    """RoCE path MTU in bytes; None: the tool's choice."""
    cpu_util: bool = False
    """Whether perftest gives its own CPU utilization: then `seconds` count, not `iterations`."""
    folder: str = ""
    """Where a transfer's file is, on both nodes."""


@dataclass(frozen=True)
class Value:
    """One number: docs/formats/results.md lists metrics, kinds and units."""

    metric: str
    kind: str
    value: float
    unit: str


@dataclass(frozen=True)
class Measurement:
    """What a benchmark's output says."""

    values: tuple[Value, ...]
    payload_bytes: int
    """Message bytes that the transport must have carried at least."""
    messages: int = 0
    """RoCE data packets that it must have carried at least; 0 where nobody counts messages."""
    path_mtu: int | None = None
    """RoCE MTU in bytes, where the tool reports it."""


Argv = tuple[str, ...]


@dataclass(frozen=True)
class Transfer:
    """What a tool that sends a file needs besides its commands; its server ends when it is told."""

    by: Literal["tcp", "rdma_cm"]
    """What its server listens by."""
    user: str
    """As whom the server writes, by name or number."""
    config: Callable[[Job], str] | None = None
    """The server's configuration, by which it becomes that user itself."""


@dataclass(frozen=True)
class Tool:
    """The three functions by which the harness knows a tool."""

    server: Callable[[Job], Argv]
    client: Callable[[Job], Argv]
    parse: Callable[[Job, str], Measurement]
    """From the client's standard output. Raises CellError when it is not what it should be."""
    transfer: Transfer | None = None


def bad_output(job: Job, problem: str) -> NoReturn:
    """Raise CellError: the output of `job`'s client cannot be used."""
    raise CellError(
        f"{job.test.program}, {job.size} bytes: {problem}",
        cause="the benchmark stopped early, or its output is not in the form of the known versions",
        action="Look at client.out and client.err in the cell's folder.",
    )


def number(job: Job, what: str, text: object) -> float:
    """A finite number, zero or above, or CellError."""
    try:
        value = float(text)  # type: ignore[arg-type]  # whatever it is, it is refused below
    except (TypeError, ValueError):
        bad_output(job, f"{what} is not a number: {text!a:.40}")
    if not math.isfinite(value) or value < 0:
        bad_output(job, f"{what} is {value}")
    return value


def positive(job: Job, what: str, text: object) -> float:
    """A finite number above zero, or CellError."""
    value = number(job, what, text)
    if value == 0:
        bad_output(job, f"{what} is zero")
    return value
