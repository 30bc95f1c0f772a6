# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface of a benchmark tool's module: two command lines and a parser, all pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, NoReturn

from rocelab.errors import CellError
from rocelab.plans.catalog import Test
from rocelab.plans.command import CommandPlan


@dataclass(frozen=True)
class End:
    """One end of a benchmark: an address on the data link, and its verbs device if it needs one."""

    ipv4: str
    device: str = ""
    port: int = 0
    gid_index: int = -1
    cpus: str = ""
    """The processors that the benchmark may use there, as taskset(1) lists them; empty: all."""
    rdma_cm: bool = False
    """Whether the connection is made by rdma_cm, the only way for iWARP."""
    netdev: str = ""
    """The interface that has the address."""
    options: tuple[str, ...] = ()
    """Those of `Tool.optional` that its version of the tool takes."""


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
    """The port that the server listens on."""
    client: End
    server: End
    path_mtu: int | None = None
    """RoCE path MTU in bytes; None: the tool's choice."""
    cpu_util: bool = False
    """Whether perftest reports CPU utilization; it then runs for `seconds`, not `iterations`."""
    events: bool = False
    """Whether perftest sleeps until a completion instead of polling."""
    traffic_class: int | None = None
    """Of RoCE and InfiniBand packets; None: the tool's choice."""
    service_level: int | None = None
    by_count: bool = False
    """Whether iperf3 sends `iterations` messages; otherwise it sends for `seconds`."""
    depth: int = 1
    """Requests that fio keeps in flight."""
    retry_count: int | None = None
    """Times that a request is sent again; the connection is then made by rdma_cm. None: the tool's
    choice."""
    rx_depth: int | None = None
    """Receives that the server keeps posted; None: the tool's choice."""
    folder: str = ""
    """The folder of a transferred file or of a disk, on both nodes."""
    command: CommandPlan | None = None
    """What a user's own command is."""
    wall_ns: int = 0
    """How long that ran, by its node's clock."""


@dataclass(frozen=True)
class Value:
    """One number: docs/formats/results.md lists metrics, kinds and units."""

    metric: str
    kind: str
    value: float
    unit: str


@dataclass(frozen=True)
class Measurement:
    """The results in a benchmark's output."""

    values: tuple[Value, ...]
    payload_bytes: int
    """The least number of message bytes that the transport must have carried."""
    messages: int = 0
    """The least number of RoCE data packets; 0 if the tool does not count messages."""
    path_mtu: int | None = None
    """RoCE MTU in bytes, if the tool reports it."""
    sent: int = 0
    """Messages of this size that the benchmark sent, both ways; 0 if it does not count all."""


Argv = tuple[str, ...]


def process_name(argv: Sequence[str]) -> str:
    """Return the name of a command's process, for a list of names between commas."""
    program = argv[0]
    if program == "env":
        program = next(word for word in argv[1:] if "=" not in word)
    return PurePosixPath(program).name.partition(",")[0] or "?"


GET = "get"
"""The test that transfers a file from the second node to the first."""


@dataclass(frozen=True)
class Transfer:
    """What a tool that transfers a file needs in addition; its server must be stopped."""

    by: Literal["tcp", "rdma_cm"]
    """How the server listens."""
    user: str
    """The user as whom the server writes, by name or number."""
    config: Callable[[Job], str] | None = None
    """The server's configuration file, with which it switches to that user itself."""
    only_sends: bool = False
    """Whether the client can only send, so that the second node runs it for a `get`."""

    def swaps(self, test: Test) -> bool:
        """Whether the second node runs the client, and the first one the server."""
        return test.name == GET and self.only_sends

    def fetches(self, test: Test) -> bool:
        """Whether the client receives the file, which it sends otherwise."""
        return test.name == GET and not self.only_sends


@dataclass(frozen=True)
class Passing:
    """A failure that may pass: what failed, what to do, and how often to try in all."""

    what: str
    action: str
    tries: int


@dataclass(frozen=True)
class Tool:
    """The functions of a tool."""

    server: Callable[[Job], Argv] | None
    """None: the kernel of the second node serves."""
    client: Callable[[Job], Argv]
    parse: Callable[[Job, str], Measurement]
    """Parses the client's standard output. Raises CellError if it is not valid."""
    transfer: Transfer | None = None
    remote_disk: bool = False
    """Whether the client needs a disk of the other node; its server is then that node's kernel."""
    passing: Callable[[int, str], Passing | None] = lambda _status, _said: None
    """Says of a client's exit status and output what failed, if that may pass."""
    timed: bool = False
    """Whether its time is its client's, from start to end (rocelab.plans.benchmarks.timed)."""
    rdma_cm: bool = False
    """Whether it connects by rdma_cm where there are verbs, which chooses the GID then."""
    listens_by: Literal["tcp", "rdma_cm"] = "tcp"
    """How its server listens where there are verbs."""
    port: int = 0
    """The only one that its server can listen on; 0: any."""
    optional: tuple[str, ...] = ()
    """Options that only some versions take, which then list them with `-h`."""
    loader: Callable[[Job], Argv] | None = None
    """A client that only has both programs read from the disk; None: `client`, briefly."""
    times_its_clock: bool = False
    """Whether it compares its processor's clock with the time of day, as tools/perftest knows."""

    def server_argv(self, job: Job) -> Argv:
        """Return the server's command line; empty if the kernel serves."""
        return self.server(job) if self.server else ()

    @property
    def serves_as_root(self) -> bool:
        """Whether root must start, or set up, the server."""
        return self.transfer is not None or self.remote_disk


def bad_output(job: Job, problem: str) -> NoReturn:
    """Raise CellError: the output of `job`'s client cannot be used."""
    raise CellError(
        f"{job.test.program}, {job.size} bytes: {problem}",
        cause="the benchmark stopped early, or its version prints an unknown format",
        action="Look at client.out and client.err in the cell's folder.",
    )


def number(job: Job, label: str, text: object) -> float:
    """Return a finite number, zero or above. Raises CellError."""
    try:
        value = float(text)  # type: ignore[arg-type]  # other types are refused below
    except (TypeError, ValueError):
        bad_output(job, f"{label} is not a number: {text!a:.40}")
    if not math.isfinite(value) or value < 0:
        bad_output(job, f"{label} is {value}")
    return value


def positive(job: Job, label: str, text: object) -> float:
    """Return a finite number above zero. Raises CellError."""
    value = number(job, label, text)
    if value == 0:
        bad_output(job, f"{label} is zero")
    return value
