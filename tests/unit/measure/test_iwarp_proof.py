# SPDX-License-Identifier: GPL-2.0-or-later
"""iWARP: what its frames are, and that nothing else passes for it.

The capture was taken between two emulated machines (Linux 6.12.118, siw): perftest 25.01's
`ib_write_lat -R -n 10 -s 64`.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from frames_counted import count_frames
from rocelab.errors import UsageError
from rocelab.measure.counters import Counters
from rocelab.measure.transport_proof import RENDEZVOUS_BYTES, prove
from rocelab.plans import plan_file
from rocelab.plans.benchmarks import perftest
from rocelab.plans.benchmarks.tool import End, Job, Measurement
from rocelab.plans.catalog import TESTS, TRANSPORTS
from rocelab.record import frames
from rocelab.record.frames import Frames

CAPTURE = Path(__file__).parents[1] / "data" / "siw-6.12.118-write_lat-64-n10.pcap"
IWARP = TRANSPORTS["iwarp"]
MEASURED = Measurement((), 640, messages=10)
SEGMENTS = {"InSegs": 46, "OutSegs": 46}
MOVED = {node: Counters({}, {}, tcp=SEGMENTS) for node in ("n1", "n2")}


def test_the_frames_of_soft_iwarp() -> None:
    """Two connections, of perftest's parameters and of its messages; their handshakes are TCP."""
    seen = frames.count(CAPTURE)
    assert (seen.tcp, seen.tcp_payload_bytes) == (6, 0)  # three of each handshake
    assert seen.iwarp + seen.tcp + seen.other == seen.frames
    # the messages of both ends, with their framing
    assert seen.iwarp_payload_bytes >= 2 * 10 * (64 + 20)
    assert prove(IWARP, MOVED, seen, MEASURED).ok


def test_the_address_decides_what_is_of_the_connection() -> None:
    """Another connection that begins meanwhile is TCP; so is a later one with the same ports."""

    def tcp(source: bytes, flags: int, payload: bytes) -> bytes:
        head = struct.pack("!HHIIBBHHH", 40000, 18600, 1, 1, 5 << 4, flags, 9, 0, 0)
        total = 20 + len(head) + len(payload)
        ip = struct.pack("!BBHHHBBH", 0x45, 0, total, 1, 0, 64, 6, 0) + source + b"\x0a\x2c\0\2"
        return b"\2" * 12 + b"\x08\0" + ip + head + payload

    here, there = b"\x0a\x2c\0\1", b"\x0a\x2c\0\3"
    begin = tcp(here, 0x18, b"MPA ID Req Frame" + b"\0" * 4)
    seen = count_frames(begin, tcp(here, 0x18, b"x" * 50), tcp(there, 0x18, b"y" * 30))
    assert (seen.iwarp_payload_bytes, seen.tcp_payload_bytes) == (70, 30)
    seen = count_frames(begin, tcp(here, 0x02, b""), tcp(here, 0x18, b"x" * 50))
    assert (seen.iwarp, seen.tcp_payload_bytes) == (1, 50)


def test_each_sign_of_another_path_disproves_iwarp() -> None:
    seen = frames.count(CAPTURE)
    still = {**MOVED, "n2": Counters({}, {}, tcp={"InSegs": 0, "OutSegs": 9})}
    much = RENDEZVOUS_BYTES + 1
    as_tcp = replace(
        seen,
        iwarp=0,
        iwarp_payload_bytes=0,
        tcp_payload_bytes=seen.tcp_payload_bytes + seen.iwarp_payload_bytes,
    )
    for what, moved, wire, measured in [
        ("n2 InSegs is 0", still, seen, MEASURED),
        ("other TCP payload", MOVED, replace(seen, tcp_payload_bytes=much), MEASURED),
        ("RoCE frames", MOVED, replace(seen, roce_v2=1), MEASURED),
        ("RoCE frames", MOVED, replace(seen, roce_v1=1), MEASURED),
        ("iWARP bytes", MOVED, seen, Measurement((), 10**6, messages=10)),
        # as many bytes, but without the framing of so many messages
        ("iWARP bytes", MOVED, seen, Measurement((), 640, messages=1000)),
        ("packets sent by the device", MOVED, as_tcp, MEASURED),
        ("packets sent by the device", MOVED, None, MEASURED),
    ]:
        assert what in prove(IWARP, moved, wire, measured).failures()


def test_iwarp_passes_for_no_other_transport() -> None:
    seen = replace(frames.count(CAPTURE), iwarp_payload_bytes=RENDEZVOUS_BYTES + 1)
    device = {"hw.tx_pkts": 90, "hw.rx_pkts": 90, "hw.tx_bytes": 9000}
    moved = {node: Counters({}, {}, adapter=device) for node in ("n1", "n2")}
    assert prove(TRANSPORTS["hw-v2"], moved, Frames(), MEASURED).ok
    assert "TCP payload" in prove(TRANSPORTS["hw-v2"], moved, seen, MEASURED).failures()
    assert "TCP payload" in prove(TRANSPORTS["tcp"], moved, seen, MEASURED).failures()


def test_an_adapter_is_proven_by_its_counters() -> None:
    """cxgb4's names; its TCP is on no interface of the host."""
    device = {"hw.ip4OutSegs": 90, "hw.ip4InSegs": 90}
    moved = {node: Counters({}, {}, adapter=device) for node in ("n1", "n2")}
    assert prove(IWARP, moved, Frames(), MEASURED).ok
    assert prove(IWARP, moved, None, MEASURED).ok
    assert "RoCE frames" in prove(IWARP, moved, Frames(roce_v2=1), MEASURED).failures()
    idle = {**moved, "n1": Counters({}, {}, adapter={**device, "hw.ip4OutSegs": 0})}
    assert "n1 packets sent" in prove(IWARP, idle, Frames(), MEASURED).failures()


def test_perftest_connects_by_rdma_cm() -> None:
    """And without a path MTU, which TCP replaces."""
    ends = (End("10.0.0.1", "siw0", 1, rdma_cm=True), End("10.0.0.2", "siw0", 1, rdma_cm=True))
    job = Job(TESTS["perftest", "send_lat"], 64, 10, 1, 14, 18515, *ends, path_mtu=1024)
    assert "-R" in perftest.client(job)
    assert "-R" in perftest.server(job)
    assert not {"-x", "-m"} & {*perftest.client(job), *perftest.server(job)}
    roce = replace(job, client=End("10.0.0.1", "rxe0", 1, 3), server=End("10.0.0.2", "rxe0", 1, 3))
    assert "-R" not in perftest.client(roce)


@pytest.mark.parametrize(
    ("tool", "test"),
    [("mpibench", "latency"), ("rcopy", "put"), ("perftest", "atomic_lat"), ("qperf", "tcp_lat")],
)
def test_what_cannot_run_over_iwarp_is_refused(tool: str, test: str) -> None:
    text = f"""
[plan]
name = "p"
transports = ["iwarp"]
[testbed]
provider = "ssh"
[[benchmark]]
tool = "{tool}"
test = "{test}"
sizes = [8]
"""
    with pytest.raises(UsageError, match="has no counterpart over iwarp"):
        plan_file.from_toml(text, "p.toml")
