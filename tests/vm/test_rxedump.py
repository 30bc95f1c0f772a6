# SPDX-License-Identifier: GPL-2.0-or-later
"""rxedump against the driver's counters, rxestat, and the frames on the wire."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import traffic
from pcapng_file import Capture, Packet, parse_comment, read_pcap
from requirements import need_program
from rocelab.node.prepare import DEVICE
from rocelab.provider.qemu.testbed import QemuTestbed
from rxedump_watch import RX_STAGES, TX_STAGES, dumping
from rxestat_watch import packets, watching

WRITES = 1000
ROCE_V2_PORT = (4791).to_bytes(2, "big")


def roce_frames(path: Path, mac: str) -> list[bytes]:
    """RoCE v2 frames of a capture that one address sent."""
    source = bytes.fromhex(mac.replace(":", ""))
    return [
        frame
        for frame in read_pcap(path)
        if frame[6:12] == source and frame[12:14] == b"\x08\x00" and frame[36:38] == ROCE_V2_PORT
    ]


def check_packet(packet: Packet, node: str) -> None:
    """What must hold of every packet of a loss-free run between two nodes."""
    fields = packet.fields
    assert list(fields)[:6] == ["schema", "node", "dev", "dir", "net", "op"], packet.comment
    assert fields["schema"] == "rocelab/1"
    assert (fields["node"], fields["dev"], fields["net"]) == (node, DEVICE, "v2")
    assert packet.interface == DEVICE
    assert "drop" not in fields
    assert "link" not in fields
    assert "loopback" not in fields
    stages = list(packet.stages)
    if fields["dir"] == "tx":
        answer = fields["op"] == "RC_ACKNOWLEDGE"
        assert stages == (TX_STAGES[1:] if answer else TX_STAGES), packet.comment
    else:
        assert stages == [stage for stage in RX_STAGES if stage in stages]
        assert {"parse", "icrc", "queue", "exec"} <= set(stages), packet.comment
    assert all(ns >= 0 for ns in packet.stages.values())
    # BTH: opcode, destination queue pair, PSN
    bth = packet.frame[42:54]
    assert bth[5:8] == int(fields["dqpn"]).to_bytes(3, "big")
    assert bth[9:12] == int(fields["psn"]).to_bytes(3, "big")


def classes(found: list[Packet]) -> Counter[str]:
    """Packets by opcode class, as rxestat names it."""
    return Counter(
        packet.fields["op"].removeprefix("RC_").removesuffix("_ONLY") for packet in found
    )


def tshark(path: Path, *words: str) -> list[str]:
    """What tshark prints of a file; it must not complain."""
    need_program("tshark")
    done = subprocess.run(
        ["tshark", "-r", str(path), *words], capture_output=True, text=True, check=True
    )
    complaints = [line for line in done.stderr.splitlines() if "Running as user" not in line]
    assert not complaints
    return done.stdout.splitlines()


def check_statistics(capture: Capture) -> None:
    """Nothing was lost, and the last block says so."""
    counters = capture.counters()
    assert counters["delivered"] == counters["received"] == len(capture.packets)
    assert counters["tx"] == len(capture.sent())
    assert counters["rx"] == len(capture.received())
    for name in ("lost", "lost_ring", "lost_nested", "timed_out", "evicted", "drop"):
        assert counters[name] == 0, name


def test_a_thousand_writes(testbed: QemuTestbed, tmp_path: Path) -> None:
    """Every packet is there once, with the wire's bytes; all who count agree."""
    n1, n2 = testbed.nodes
    wire = tmp_path / "wire.pcap"
    with (
        testbed.capture(wire),
        dumping(n1, n2) as dumps,
        watching(n1, n2) as watches,
    ):
        traffic.perftest("ib_write_bw", n1, n2, size=64, iterations=WRITES)
        documents = [watch.stop() for watch in watches]
        captures = [dump.stop(tmp_path) for dump in dumps]

    frames = [roce_frames(wire, node.link.mac) for node in (n1, n2)]
    for index, (watch, document, capture) in enumerate(
        zip(watches, documents, captures, strict=True)
    ):
        sent, received = capture.sent(), capture.received()
        assert len(sent) == watch.moved["sent_pkts"] == len(frames[index])
        assert len(received) == watch.moved["rcvd_pkts"] == len(frames[1 - index])
        assert classes(sent) == packets(document, "tx")
        assert classes(received) == packets(document, "rx")
        for packet in capture.packets:
            check_packet(packet, watch.node.name)
            assert packet.length == len(packet.frame)
        assert Counter(packet.frame for packet in sent) == Counter(frames[index])
        assert Counter(packet.frame for packet in received) == Counter(frames[1 - index])
        check_statistics(capture)
        assert capture.session["schema"] == "rocelab.rxedump/1"
        assert capture.session["driver"] == "instrumented"
        assert float(capture.session["clock_ns"]) > 0
    assert classes(captures[0].sent())["RDMA_WRITE"] == WRITES

    for dump, capture in zip(dumps, captures, strict=True):
        local = tmp_path / f"{dump.node.name}-dump.pcapng"
        comments = tshark(
            local, "-Y", 'frame.comment contains "rocelab/1"', "-T", "fields", "-e", "frame.comment"
        )
        assert [parse_comment(line) for line in comments] == [
            packet.fields for packet in capture.packets
        ]
        dissected = tshark(local, "-Y", "infiniband.bth && !_ws.malformed")
        assert len(dissected) == len(capture.packets)
