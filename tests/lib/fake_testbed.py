# SPDX-License-Identifier: GPL-2.0-or-later
"""A testbed of two fake nodes, for tests of the runner's logic.

The output of the benchmarks is real (tests/unit/data); counters and frames are invented to match.
tests/vm/test_run.py tests that real nodes behave like this.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fake_outputs import several
from rocelab.errors import TestbedError
from rocelab.plans.catalog import Transport
from rocelab.testbed import verbs_ports
from rocelab.testbed.interface import Captured
from rocelab.testbed.node import Completed, DataLink, Printed

DATA = Path(__file__).parents[1] / "unit" / "data"
QPERF = (DATA / "qperf-0.4.11-tcp_lat-64.txt").read_text()
PERFTEST = (DATA / "perftest-25.01.0+0.80-send_bw-64-n1000.txt").read_text()
MESSAGES = 1000
RDMA_LINK = '[{"ifname":"rxe0","port":1,"netdev":"data0"}]'


def pcap(packets: Sequence[tuple[bytes, int]]) -> bytes:
    """Classic pcap of (captured bytes, length on the link)."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(struct.pack("<IIII", 1, 2, len(p), n) + p for p, n in packets)


def _ethernet_ipv4(protocol: int, payload: bytes, length: int) -> bytes:
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 1, 0, 64, protocol, 0)
    return b"\2" * 12 + b"\x08\x00" + head + b"\x0a\0\0\1\x0a\0\0\2" + payload


def roce_v2(opcode: int, payload: int) -> tuple[bytes, int]:
    """A SEND (0x04) or ACKNOWLEDGE (0x11) frame."""
    extended = {0x04: 0, 0x11: 4}[opcode]
    body = struct.pack("!BBHII", opcode, 0x40, 0xFFFF, 17, 1) + b"\0" * (extended + payload + 4)
    udp = struct.pack("!HHHH", 49152, 4791, 8 + len(body), 0) + body
    frame = _ethernet_ipv4(17, udp, len(udp))
    return frame, len(frame)


def tcp(payload: int) -> tuple[bytes, int]:
    """A TCP frame of which only the headers were captured."""
    head = struct.pack("!HHIIBBHHH", 1, 2, 3, 4, 5 << 4, 16, 5, 6, 7)
    return _ethernet_ipv4(6, head, 20 + payload), 54 + payload


@dataclass
class FakeProcess:
    """A server, or a probe: ends when the client has."""

    argv: tuple[str, ...]
    killed: bool = False
    status: int = 0
    said: str = ""

    def wait_for_line(self, needle: str, *, timeout: float) -> str:
        return needle

    def take(self, is_whole: Callable[[Printed], bool], *, timeout: float) -> Printed:
        """A probe is ready, and says no more."""
        return Printed("", f"{self.argv[0]}: ready\n")

    def interrupt(self) -> None:
        pass

    def say(self, line: str) -> None:
        pass

    def release(self) -> None:
        pass

    def wait(self, *, timeout: float) -> Completed:
        return Completed(self.argv, self.status, "", self.said)

    def kill(self) -> None:
        self.killed = True


@dataclass
class FakeNode:
    """Answers what the harness asks; `bed` says what happens on the link."""

    name: str
    ipv4: str
    bed: FakeTestbed
    sent: int = 0
    received: int = 0
    has_root: bool = True

    @property
    def root(self) -> FakeNode:
        return self

    @property
    def login(self) -> str:
        return f"rocelab ssh {self.name}"

    @property
    def link(self) -> DataLink:
        return DataLink("data0", self.ipv4, "02:00:00:00:00:01", 4200)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = 60,
        check: bool = True,
        stdin: str | None = None,
    ) -> Completed:
        self.bed.check_alive()
        self.bed.commands.append(tuple(argv))
        return Completed(tuple(argv), *self._answer(tuple(argv)), "")

    def start(self, argv: Sequence[str], *, lifeline: bool = False) -> FakeProcess:
        process = FakeProcess(tuple(argv))
        self.bed.started.append(process)
        return process

    def put(self, local: Path, remote: str, *, mode: int = 0o644) -> None:
        raise NotImplementedError

    def get(self, remote: str, local: Path) -> None:
        raise NotImplementedError

    def _answer(self, argv: tuple[str, ...]) -> tuple[int, str]:
        if (answers := several(argv, lambda one: self._answer(one)[1])) is not None:
            return 0, answers
        line = " ".join(argv)
        if argv[0] == "rdma":
            return 0, RDMA_LINK
        if argv == verbs_ports.SYSFS:
            return 2, "rxe0/parent:data0\nrxe0/ports/1/link_layer:Ethernet\n"
        if "statistics" in line:
            base = "/sys/class/infiniband/rxe0/ports/1/hw_counters"
            text = f"{base}/sent_pkts:{self.sent}\n{base}/rcvd_pkts:{self.received}\n"
            base, count = "/sys/class/net/data0/statistics", self.bed.segments
            for way in ("tx", "rx"):
                text += f"{base}/{way}_packets:{count}\n{base}/{way}_bytes:{count * 65054}\n"
            if "/proc/net/snmp" in line:
                text += "/proc/net/snmp:Tcp: RtoAlgorithm InSegs OutSegs\n"
                text += f"/proc/net/snmp:Tcp: 1 {count} {count}\n"
            return 2, text
        if "gid_attrs" in line:
            base = "/sys/class/infiniband/rxe0/ports/1"
            mapped = "0000:0000:0000:0000:0000:ffff:" + "".join(
                f"{int(part):02x}" + (":" if i == 1 else "")
                for i, part in enumerate(self.ipv4.split("."))
            )
            return 2, f"{base}/gids/3:{mapped}\n{base}/gid_attrs/types/3:RoCE v2\n"
        if argv[:2] == ("env", "ROCELAB_PROCESS=1") and "timeout" in argv:
            return self.bed.benchmark(argv)
        if argv[0] == "uname":
            return 0, f"6.12.0 of {self.bed.kernel}\n"
        return 1, ""


@dataclass
class FakeTestbed:
    """Two nodes. `on_client(bed, argv)` may raise, or change what a client run does."""

    kernel: str = "test"
    on_client: Callable[[FakeTestbed, tuple[str, ...]], str | None] | None = None
    clients: list[tuple[str, ...]] = field(default_factory=list)
    commands: list[tuple[str, ...]] = field(default_factory=list)
    """All that ran to their ends, on either node."""
    started: list[FakeProcess] = field(default_factory=list)
    frames: list[tuple[bytes, int]] = field(default_factory=list)
    segments: int = 0
    """That each node has sent and received over TCP."""
    dead: bool = False
    accelerator: Any = "tcg"
    control: Any = None
    control_ports: frozenset[int] = frozenset()
    missing: str = ""
    """Why nothing is captured; without root on the nodes then."""

    def __post_init__(self) -> None:
        self.nodes = [FakeNode("n1", "10.0.0.1", self), FakeNode("n2", "10.0.0.2", self)]
        for node in self.nodes:
            node.has_root = not self.missing

    def benchmark(self, argv: tuple[str, ...]) -> tuple[int, str]:
        """Run a client: what it prints, what it moves."""
        self.clients.append(argv)
        output = self.on_client(self, argv) if self.on_client else None
        if "qperf" in argv:
            self.frames += [tcp(65000)] * 200
            self.segments += 200
            return 0, QPERF if output is None else output
        iterations = int(argv[argv.index("-n") + 1])
        client, server = self.nodes
        self.frames += [roce_v2(0x04, 64)] * iterations + [roce_v2(0x11, 0)] * iterations
        for node in (client, server):
            node.sent += iterations
            node.received += iterations
        return 0, PERFTEST if output is None else output

    def over(self, transport: Transport) -> FakeTestbed:
        return self

    @contextmanager
    def capture(self, path: Path, *, snaplen: int = 65535) -> Iterator[Captured]:
        if self.missing:
            yield Captured(missing=self.missing)
            return
        self.frames.clear()
        try:
            yield Captured()
        finally:
            path.write_bytes(pcap([(frame[:snaplen], length) for frame, length in self.frames]))

    def check_alive(self) -> None:
        if self.dead:
            raise TestbedError("node n1 does not answer")

    def alive(self) -> None:
        if self.dead:
            raise TestbedError("node n1 died", cause="the end of its console:\nOops: panic")

    def environment(self) -> dict[str, Any]:
        return {"provider": "fake"}
