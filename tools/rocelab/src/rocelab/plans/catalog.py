# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of transports and benchmarks: what runs on what, and what may be compared.

docs/formats/plan.md prints it; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Family = Literal["verbs", "tcp"]
"""What carries a transport's messages."""


Maker = Literal["kernel", "rxe", "adapter"]
"""What makes a transport's packets."""


Quantity = Literal["latency", "bandwidth", "application"]
"""What a test measures."""


class Kind(StrEnum):
    """The kind of a latency or rate; two kinds never share an axis."""

    ONE_WAY_HALF_RTT = "one_way_half_rtt"
    """Half of a ping-pong's round trip."""
    ROUND_TRIP = "round_trip"
    """From the request to its completion, including the answer."""
    ONE_WAY = "one_way"
    """A stream in one direction."""
    BOTH_WAYS = "both_ways"
    """Streams in both directions, together."""
    WHOLE_FILE = "whole_file"
    """A file, timed from the start of the client to its end, including the connection setup."""
    ALL_PAIRS = "all_pairs"
    """Several pairs at once: the latency of one of them, the bandwidth of all together."""
    COLLECTIVE = "collective"
    """From the call of a collective to its return, mean over the ranks."""
    REQUEST = "request"
    """A request of a disk, from its submission to its completion; several may be in flight."""
    APPLICATION = "application"
    """Figures of an application benchmark, which chooses its own messages."""


@dataclass(frozen=True)
class Transport:
    """A way for benchmark traffic to cross the link."""

    name: str
    family: Family
    roce: Literal[1, 2] | None = None
    """The RoCE version that its frames must have."""
    gid_type: str | None = None
    """The type of the GIDs to use, as in sysfs's gid_attrs/types; None: there is nothing to choose,
    as on InfiniBand."""
    by: Maker = "kernel"
    """What makes the packets: a capture sees only those from the kernel or rxe."""
    link_layer: Literal["", "Ethernet", "InfiniBand", "iWARP"] = ""
    """What its port, or its interface, must be; empty: anything."""

    @property
    def is_rxe(self) -> bool:
        """Whether the transport uses rxe, and so has driver stages."""
        return self.by == "rxe"

    @property
    def is_iwarp(self) -> bool:
        """Whether its verbs run over TCP, so that only rdma_cm connects them."""
        return self.link_layer == "iWARP"


@dataclass(frozen=True)
class Test:
    """A benchmark, named as by its tool."""

    __test__ = False  # despite its name, not a pytest class

    tool: str
    name: str
    quantity: Quantity
    kind: Kind
    family: Family | Literal["mpi", "any"]
    """What it needs; MPI and `any` run over every transport."""
    sizes: tuple[int, int]
    """Smallest and largest message in bytes."""
    tcp_counterpart: tuple[str, str] | None = None
    """(tool, test) that measures the same kind of quantity over TCP, if there is one."""
    data_class: str | None = None
    """Opcode class (docs/formats/rxestat.md) of the packets that carry its messages."""
    element: int = 1
    """Sizes are multiples of this, in bytes."""

    @property
    def program(self) -> str:
        """The command that measures it, as shown in captions."""
        if self.tool == "perftest":
            return f"ib_{self.name}"
        if self.tool == "omb":
            return f"osu_{self.name}"
        return f"{self.tool} {self.name}"


class Provider(StrEnum):
    """What a testbed's nodes are."""

    QEMU = "qemu"
    """A VM for each node."""
    VETH = "veth"
    """One machine, virtual or this one, with a veth pair for each node."""
    SSH = "ssh"
    """Hosts of your own."""
    SLURM = "slurm"
    """The nodes of a Slurm job's allocation."""

    @property
    def own_hosts(self) -> bool:
        """Whether its nodes are machines that exist, and are not rocelab's to boot or to cable."""
        return self in OWN_HOSTS

    @property
    def one_clock(self) -> bool:
        """Whether nodes and capture share one machine, and so one clock."""
        return self is Provider.VETH


OWN_HOSTS = (Provider.SSH, Provider.SLURM)
"""Providers of machines of the user's own."""


class Probe(StrEnum):
    """A program of ebpf/ that plans may name and that every node has."""

    RXESTAT = "rxestat"
    RXEDUMP = "rxedump"
    RXECPU = "rxecpu"


STACKS = "stacks"
"""Next to the probes that run: rxecpu records stacks, too."""

PROBE_PROGRAMS = (*Probe, "rxetop")
"""Every program of ebpf/ that nodes have: those of `Probe`, and what people watch."""


TRANSPORTS = {
    transport.name: transport
    for transport in (
        Transport("tcp", "tcp"),
        Transport("rxe-v1", "verbs", 1, "IB/RoCE v1", "rxe", "Ethernet"),
        Transport("rxe-v2", "verbs", 2, "RoCE v2", "rxe", "Ethernet"),
        Transport("hw-v1", "verbs", 1, "IB/RoCE v1", "adapter", "Ethernet"),
        Transport("hw-v2", "verbs", 2, "RoCE v2", "adapter", "Ethernet"),
        Transport("ib", "verbs", by="adapter", link_layer="InfiniBand"),
        Transport("ipoib", "tcp", by="adapter", link_layer="InfiniBand"),
        Transport("iwarp", "verbs", by="adapter", link_layer="iWARP"),
    )
}

_PERFTEST_SIZES = (1, 1 << 23)  # its own bounds
_ATOMIC_SIZES = (8, 8)
_PINGPONG_SIZES = (1, 1 << 24)
_QPERF_SIZES = (1, 1 << 24)
_IPERF3_SIZES = (4, 1 << 20)  # its MAX_BLOCKSIZE
_FILE_SIZES = (1, 1 << 28)  # both ends hold the file in memory
_SECTOR = 512
_BLOCK_SIZES = (_SECTOR, 1 << 20)  # the largest that NVMe and NFS carry in one request


def _ping_pong(name: str, opcode_class: str) -> Test:
    """Return a ping-pong: perftest halves the time until a message of the same size returns."""
    kind, tcp = Kind.ONE_WAY_HALF_RTT, ("qperf", "tcp_lat")
    return Test("perftest", name, "latency", kind, "verbs", _PERFTEST_SIZES, tcp, opcode_class)


def _sockets_or_verbs(name: str) -> Test:
    """Return a test of tools/pingpong: one program and one way of waiting on every transport."""
    return Test(
        *("pingpong", name, "latency", Kind.ONE_WAY_HALF_RTT, "any", _PINGPONG_SIZES),
        data_class="SEND",
    )


def _round_trip_test(name: str, sizes: tuple[int, int], opcode_class: str) -> Test:
    """Return a test whose latency includes the answer. It has no counterpart over TCP: a ping-pong
    sends two messages, and doubling half its round trip would invent a number."""
    return Test(
        "perftest", name, "latency", Kind.ROUND_TRIP, "verbs", sizes, data_class=opcode_class
    )


def _stream(name: str, opcode_class: str) -> Test:
    """Return a test that streams messages, many of them in flight."""
    kind, tcp = Kind.ONE_WAY, ("qperf", "tcp_bw")
    return Test("perftest", name, "bandwidth", kind, "verbs", _PERFTEST_SIZES, tcp, opcode_class)


def _atomic_rate(name: str, opcode_class: str) -> Test:
    """Return a test that counts round trips of eight bytes; no TCP stream is comparable."""
    return Test(
        *("perftest", name, "bandwidth", Kind.ROUND_TRIP, "verbs", _ATOMIC_SIZES),
        data_class=opcode_class,
    )


_UCX_SIZES = (1, 1 << 17)  # what is larger goes by a rendezvous, which may choose TCP
_RPING_SIZES = (32, (1 << 16) - 1)  # a text with a number; its RPING_BUFSIZE
_UDADDY_SIZES = (1, 4096)  # a datagram
_RSTREAM_SIZES = (1, 1 << 22)
_FI_SIZES = (1, 1 << 22)


def _ucx_tests() -> Iterator[Test]:
    """Yield the tests of ucx_perftest that have a counterpart elsewhere."""
    for name in ("tag_lat", "stream_lat"):
        yield Test(
            *("ucx_perftest", name, "latency", Kind.ONE_WAY_HALF_RTT, "any", _UCX_SIZES),
            data_class="SEND",
        )
    for name in ("tag_bw", "stream_bw"):
        yield Test(
            *("ucx_perftest", name, "bandwidth", Kind.ONE_WAY, "any", _UCX_SIZES),
            data_class="SEND",
        )


_MPI_SIZES = (0, 1 << 24)


def _mpi_tests(tool: str, names: Iterable[str]) -> Iterator[Test]:
    """Yield the tests of an MPI suite; all suites use mpibench's names."""
    shared: dict[str, tuple[Quantity, Kind]] = {
        "latency": ("latency", Kind.ONE_WAY_HALF_RTT),
        "multi_lat": ("latency", Kind.ALL_PAIRS),
        "bw": ("bandwidth", Kind.ONE_WAY),
        "bibw": ("bandwidth", Kind.BOTH_WAYS),
        "mbw_mr": ("bandwidth", Kind.ALL_PAIRS),
        **dict.fromkeys(COLLECTIVES, ("latency", Kind.COLLECTIVE)),
    }
    for name in names:
        quantity, kind = shared[name]
        sizes, element = _MPI_SIZES, 1
        if "reduce" in name:
            sizes, element = (4, _MPI_SIZES[1]), 4  # floats
        if name == "barrier":
            sizes = (0, 0)
        yield Test(tool, name, quantity, kind, "mpi", sizes, element=element)


def _application(tool: str, name: str) -> Test:
    """Return an application benchmark; it has no message size, so plans use 0, as for a barrier."""
    return Test(tool, name, "application", Kind.APPLICATION, "mpi", (0, 0))


def _disk_tests() -> Iterator[Test]:
    """Yield fio's tests, named by protocol and by fio's `rw`."""
    for protocol in ("nvme", "nfs"):
        for access in ("read", "write", "randread", "randwrite"):
            yield Test(
                *("fio", f"{protocol}_{access}", "latency", Kind.REQUEST, "any", _BLOCK_SIZES),
                element=_SECTOR,
            )


def _of_a_user() -> Iterator[Test]:
    """Yield what a user's own command may measure, over any transport."""
    measured: dict[str, tuple[Quantity, Kind]] = {
        "latency": ("latency", Kind.ONE_WAY_HALF_RTT),
        "round_trip": ("latency", Kind.ROUND_TRIP),
        "bandwidth": ("bandwidth", Kind.ONE_WAY),
        "rate": ("application", Kind.APPLICATION),
        "time": ("application", Kind.APPLICATION),
    }
    for name, (quantity, kind) in measured.items():
        yield Test("command", name, quantity, kind, "any", (0, 1 << 40))


COLLECTIVES = (
    *("bcast", "scatter", "gather", "reduce", "allreduce", "allgather", "alltoall"),
    *("reduce_scatter", "barrier"),
)
PAIR_TESTS = ("latency", "multi_lat", "bw", "bibw", "mbw_mr")
_IMB_TESTS = ("latency", "bw", "bibw", *COLLECTIVES)
_SKAMPI_TESTS = ("latency", *(name for name in COLLECTIVES if name != "reduce_scatter"))
_NPB_TESTS = ("bt", "cg", "ep", "ft", "is", "lu", "mg", "sp")
MPI_TOOLS = ("mpibench", "omb", "imb", "skampi", "npb", "hpcc")
"""Suites that mpirun starts, on all nodes at once."""

TESTS = {
    (test.tool, test.name): test
    for test in (
        _ping_pong("send_lat", "SEND"),
        _ping_pong("write_lat", "RDMA_WRITE"),
        _round_trip_test("read_lat", _PERFTEST_SIZES, "RDMA_READ_RESPONSE"),
        _round_trip_test("atomic_lat", _ATOMIC_SIZES, "ATOMIC"),
        _stream("send_bw", "SEND"),
        _stream("write_bw", "RDMA_WRITE"),
        _stream("read_bw", "RDMA_READ_RESPONSE"),
        _atomic_rate("atomic_bw", "ATOMIC"),
        *(_sockets_or_verbs(name) for name in ("latency", "polled_latency")),
        Test("qperf", "tcp_lat", "latency", Kind.ONE_WAY_HALF_RTT, "tcp", _QPERF_SIZES),
        Test("qperf", "tcp_bw", "bandwidth", Kind.ONE_WAY, "tcp", _QPERF_SIZES),
        Test("iperf3", "tcp_bw", "bandwidth", Kind.ONE_WAY, "tcp", _IPERF3_SIZES),
        Test("rcopy", "put", "bandwidth", Kind.WHOLE_FILE, "verbs", _FILE_SIZES, ("ftp", "put")),
        Test("rcopy", "get", "bandwidth", Kind.WHOLE_FILE, "verbs", _FILE_SIZES, ("ftp", "get")),
        Test("ftp", "put", "bandwidth", Kind.WHOLE_FILE, "tcp", _FILE_SIZES),
        Test("ftp", "get", "bandwidth", Kind.WHOLE_FILE, "tcp", _FILE_SIZES),
        *_disk_tests(),
        *_ucx_tests(),
        Test("rping", "time", "application", Kind.APPLICATION, "verbs", _RPING_SIZES),
        Test("udaddy", "time", "application", Kind.APPLICATION, "verbs", _UDADDY_SIZES),
        Test("rstream", "latency", "latency", Kind.ONE_WAY_HALF_RTT, "any", _RSTREAM_SIZES),
        Test("rstream", "bandwidth", "bandwidth", Kind.ONE_WAY, "any", _RSTREAM_SIZES),
        Test("fi_pingpong", "latency", "latency", Kind.ONE_WAY_HALF_RTT, "any", _FI_SIZES),
        *_mpi_tests("mpibench", (*PAIR_TESTS, *COLLECTIVES)),
        *_mpi_tests("omb", (*PAIR_TESTS, *COLLECTIVES)),
        *_mpi_tests("imb", _IMB_TESTS),
        *_mpi_tests("skampi", _SKAMPI_TESTS),
        *(_application("npb", name) for name in _NPB_TESTS),
        _application("hpcc", "all"),
        *_of_a_user(),
    )
}

TOOL_PACKAGES = {"ucx_perftest": ("ucx-utils",), "fi_pingpong": ("libfabric-bin",)}
"""Debian packages of tools that not every node has."""

TOOLS = tuple(dict.fromkeys(tool for tool, _ in TESTS))


def counterpart(test: Test, transport: Transport) -> Test | None:
    """Return what measures `test`'s quantity over `transport`: itself, its counterpart or None.

    iWARP has no atomic operations, and of the verbs tools only perftest is run over it.
    """
    if transport.is_iwarp and (test.tool != "perftest" or test.name.startswith("atomic")):
        return None
    if test.family in ("mpi", "any", transport.family):
        return test
    if transport.family == "tcp" and test.tcp_counterpart is not None:
        return TESTS[test.tcp_counterpart]
    return None
