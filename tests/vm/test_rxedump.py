# SPDX-License-Identifier: GPL-2.0-or-later
"""rxedump agrees with the driver's counters, rxestat, and the frames on the wire."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import traffic
from hostile import HOSTILE, send
from pcapng_file import INBOUND, Capture, Packet, parse_comment, read_pcap, read_pcapng
from requirements import need_program
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node, Process, prepare_node
from rocelab.testbed.node.prepare_node import DEVICE
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rxedump_watch import HOLD, RX_STAGES, TX_STAGES, Dump, dumping, dumping_apart
from rxestat_watch import counter, packets, watching
from veth_pair import Pair, veth_pair
from vmlab import LINE

WRITES = 1000
ROCE_V2_PORT = (4791).to_bytes(2, "big")


@pytest.fixture
def pair(n1: Node) -> Iterator[Pair]:
    """Two devices on the first node."""
    with veth_pair(n1) as pair:
        yield pair


def stream(node: Node, label: str, reader: str) -> Process:
    """Run rxedump into a pipe, which a program on the node copies to a file."""
    line = (
        f"rm -f /tmp/{label}.fifo; mkfifo /tmp/{label}.fifo; "
        f"{reader} < /tmp/{label}.fifo > /tmp/{label}.pcapng & "
        f"exec rxedump {' '.join(HOLD)} -w - > /tmp/{label}.fifo"
    )
    return node.start(["sh", "-c", line])


def roce_frames(path: Path, mac: str) -> list[bytes]:
    """Return the RoCE v2 frames of a capture from one address."""
    source = bytes.fromhex(mac.replace(":", ""))
    return [
        frame
        for frame in read_pcap(path)
        if frame[6:12] == source and frame[12:14] == b"\x08\x00" and frame[36:38] == ROCE_V2_PORT
    ]


def check_packet(packet: Packet, node: str) -> None:
    """Check invariants of every packet of a loss-free run between two nodes."""
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


def classes(packets: list[Packet]) -> Counter[str]:
    """Return packets by rxestat's opcode class."""
    return Counter(
        packet.fields["op"].removeprefix("RC_").removesuffix("_ONLY") for packet in packets
    )


def tshark(path: Path, *words: str) -> list[str]:
    """Return tshark's output for a file; fail if it reports errors."""
    need_program("tshark")
    done = subprocess.run(
        ["tshark", "-r", str(path), *words], capture_output=True, text=True, check=True
    )
    complaints = [line for line in done.stderr.splitlines() if "Running as user" not in line]
    assert not complaints
    return done.stdout.splitlines()


def check_statistics(capture: Capture) -> None:
    """Assert that nothing was lost, by the last block."""
    counters = capture.counters()
    assert counters["delivered"] == counters["received"] == len(capture.packets)
    assert counters["tx"] == len(capture.sent())
    assert counters["rx"] == len(capture.received())
    for name in ("lost", "lost_ring", "lost_nested", "timed_out", "evicted", "drop"):
        assert counters[name] == 0, name


def test_a_thousand_writes(testbed: QemuTestbed, tmp_path: Path) -> None:
    """Every packet is in the file once, with the bytes on the wire; all counts agree."""
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


def keys(packets: Iterable[Packet]) -> Counter[tuple[int, str]]:
    """Return packets without the fields in which two recordings may differ."""
    return Counter((packet.direction, packet.frame.hex()) for packet in packets)


def in_time(capture: Capture) -> list[Packet]:
    """Return packets by the driver's clock; an interrupt may reorder two recordings of an event."""
    offset = int(capture.session["wall_offset_ns"])
    return sorted(capture.packets, key=lambda packet: (packet.ns - offset, packet.direction))


def test_filters_sampling_and_snap_length(testbed: QemuTestbed, tmp_path: Path) -> None:
    """Each filter option keeps the named packets and no others of the same traffic."""
    n1, n2 = testbed.nodes
    options = {
        "all": (),
        "writes": ("--direction", "tx", "--opcode", "RDMA_WRITE"),
        "acks": ("--device", DEVICE, "--direction", "rx", "--opcode", "rc_acknowledge"),
        "stranger": ("--qpn", "16777215"),
        "sample": ("--sample", "10"),
        "snap": ("--snapshot-length", "60"),
    }
    with dumping_apart(n1, options) as dumps:
        counted = n1.start(["rxedump", "-w", "/tmp/count.pcapng", *HOLD, "--count", "25"])
        counted.wait_for_line("rxedump: ready", timeout=120)
        traffic.perftest("ib_write_bw", n1, n2, size=64, iterations=300)
        assert counted.wait(timeout=120).returncode == 0, "--count did not end it"
        dumped = {name: dump.stop(tmp_path) for name, dump in dumps.items()}
    everything = dumped["all"]
    assert classes(everything.sent())["RDMA_WRITE"] == 300
    assert keys(dumped["writes"].packets) == keys(
        packet for packet in everything.sent() if "_WRITE_" in packet.comment
    )
    assert keys(dumped["acks"].packets) == keys(
        packet for packet in everything.received() if "_ACKNOWLEDGE " in packet.comment
    )
    assert not dumped["stranger"].packets

    chosen = [
        packet
        for packet in everything.packets
        if int(packet.fields["psn"]) * 2654435769 % 2**32 < 2**32 // 10
    ]
    assert keys(dumped["sample"].packets) == keys(chosen)
    assert 25 <= classes(chosen)["RDMA_WRITE"] <= 35, "consecutive PSNs are not spread evenly"
    assert dumped["sample"].session["sample"] == "10"
    assert b"sample 1 in 10" in dumped["sample"].interfaces[0][11]

    cut = dumped["snap"]
    assert cut.interfaces[0][0] == (60).to_bytes(4, "little")
    for packet, whole in zip(in_time(cut), in_time(everything), strict=True):
        assert packet.frame == whole.frame[:60]
        assert packet.length == len(whole.frame)
        assert packet.fields["op"] == whole.fields["op"]

    n1.get("/tmp/count.pcapng", tmp_path / "count.pcapng")
    few = read_pcapng(tmp_path / "count.pcapng")
    assert len(few.packets) == few.counters()["delivered"] == 25


def arrived_text(node: Node, path: str, text: str) -> None:
    """Wait until a file on a node has this text."""
    loop = 'until grep -aq "$1" "$2"; do sleep 0.1; done'
    node.run(["timeout", "120", "sh", "-c", loop, "sh", text, path], timeout=150)


def fetch_series(dump: Dump, folder: Path) -> list[Path]:
    """Return the files of a rotation in the order in which they were written."""
    names = dump.node.run(["sh", "-c", f"ls {dump.path}*"]).stdout.split()
    numbers = sorted(int(name.removeprefix(dump.path) or "0") for name in names)
    return [dump.fetch(folder, str(number) if number else "") for number in numbers]


def arrived(node: Node, path: str, packets: int) -> None:
    """Wait until a file on a node has this many packets."""
    loop = 'until [ "$(grep -ao "rocelab/1 node" "$1" | wc -l)" -ge "$2" ]; do sleep 0.1; done'
    node.run(["timeout", "120", "sh", "-c", loop, "sh", path, str(packets)], timeout=150)


def test_streams_kills_and_rotation(testbed: QemuTestbed, tmp_path: Path) -> None:
    """A live stream, a reader that leaves, SIGKILL, and rotation: no block is cut."""
    n1, n2 = testbed.nodes
    live = stream(n1, "live", "cat")
    leaving = stream(n1, "left", "head -c 4000")
    with dumping_apart(
        n1, {"killed": (), "series": ("-C", "1"), "ring": ("-C", "1", "-W", "2")}
    ) as dumps:
        for process in (live, leaving):
            process.wait_for_line("rxedump: ready", timeout=120)
        before = counter(n1, "sent_pkts") + counter(n1, "rcvd_pkts")
        traffic.perftest("ib_write_bw", n1, n2, size=65536, iterations=40)
        total = counter(n1, "sent_pkts") + counter(n1, "rcvd_pkts") - before

        # while it still runs
        arrived(n1, "/tmp/live.pcapng", total)
        assert "the reader has closed the pipe" in leaving.wait(timeout=120).stderr
        arrived(n1, dumps["killed"].path, total)
        dumps["killed"].process.kill()
        killed = read_pcapng(dumps["killed"].fetch(tmp_path))
        series, ring = (dumps[name] for name in ("series", "ring"))
        series.end()
        ring.end()
        live.interrupt()
        assert live.wait(timeout=120).returncode == 0
    assert len(killed.packets) == total
    assert classes(killed.sent()).total() > 600

    n1.get("/tmp/live.pcapng", tmp_path / "live.pcapng")
    assert keys(read_pcapng(tmp_path / "live.pcapng").packets) == keys(killed.packets)

    files = [read_pcapng(path) for path in fetch_series(series, tmp_path)]
    assert len(files) > 2
    assert all(file.counters() for file in files)
    assert keys(packet for file in files for packet in file.packets) == keys(killed.packets)
    assert files[-1].counters()["delivered"] == total

    names = n1.run(["sh", "-c", f"ls {ring.path}*"]).stdout.split()
    assert names == [f"{ring.path}0", f"{ring.path}1"]
    kept = [read_pcapng(ring.fetch(tmp_path, number)) for number in "01"]
    assert max(file.counters()["delivered"] for file in kept) == total
    left = keys(packet for file in kept for packet in file.packets)
    assert left.total() < total
    assert left <= keys(killed.packets)
    for path in (*names, series.path):
        assert int(n1.run(["stat", "-c", "%s", path]).stdout) <= 1_000_000


def test_overload_is_counted(testbed: QemuTestbed, tmp_path: Path) -> None:
    """Without a reader, packets are lost and counted exactly."""
    n1, n2 = testbed.nodes
    with dumping_apart(n1, {"small": ("-B", "64")}) as dumps:
        small = dumps["small"]
        pid = n1.run(["pgrep", "-n", "-x", "rxedump"]).stdout.strip()
        before = counter(n1, "sent_pkts"), counter(n1, "rcvd_pkts")
        n1.run(["kill", "-STOP", pid])
        traffic.perftest("ib_write_bw", n1, n2, size=64, iterations=1000)
        n1.run(["kill", "-CONT", pid])
        moved = counter(n1, "sent_pkts") - before[0], counter(n1, "rcvd_pkts") - before[1]
        done = small.end()
        capture = read_pcapng(small.fetch(tmp_path))
    counters = capture.counters()
    assert counters["lost"] == counters["lost_ring"] + counters["lost_nested"] > 0
    assert counters["delivered"] == len(capture.packets) > 0
    assert counters["delivered"] + counters["lost"] == counters["received"] == sum(moved)
    assert f"lost: {counters['lost']} packets" in done.stderr


@contextmanager
def room(node: Node, share: str) -> Iterator[None]:
    """Let files on a node take that share of its memory: a fast machine writes 500 MB a minute."""
    node.run(["mount", "-o", f"remount,size={share}", "/tmp"])
    try:
        yield
    finally:
        node.run(["sh", "-c", "rm -f /tmp/*.pcapng && mount -o remount,size=50% /tmp"])


@pytest.mark.parametrize("seconds", [10, pytest.param(60, marks=pytest.mark.long)])
def test_full_rate(testbed: QemuTestbed, tmp_path: Path, seconds: int) -> None:
    """Seconds of the smallest packets: each is in the file or counted as lost."""
    n1, n2 = testbed.nodes
    before = counter(n1, "sent_pkts") + counter(n1, "rcvd_pkts")
    with room(n1, "75%"), dumping(n1) as (dump,):
        traffic.perftest("ib_write_bw", n1, n2, size=8, seconds=seconds)
        moved = counter(n1, "sent_pkts") + counter(n1, "rcvd_pkts") - before
        dump.end()
        capture = read_pcapng(dump.fetch(tmp_path), every=1000)
    counters = capture.counters()
    assert counters["delivered"] + counters["lost"] == moved
    assert counters["delivered"] == capture.count > 0
    assert capture.packets[-1].ns - capture.packets[0].ns > 0.9e9 * seconds
    print(f"{moved} packets, {counters['lost']} lost")


def test_packets_that_go_no_further(testbed: QemuTestbed, pair: Pair, tmp_path: Path) -> None:
    """Refused, looped back, lost and invalid packets are marked as such."""
    n1, n2 = testbed.nodes
    with dumping_apart(n1, {"drops": ()}) as dumps:
        send(n2, *((options, n1.link.ipv4, body) for options, body in HOSTILE.values()))
        # one link and one queue keep the order: the last packet sent is the last one dropped
        arrived_text(n1, dumps["drops"].path, "drop=icrc")
        pair.loop("rc", "send_late", 64, batches=1, chain=1)
        pair.loop("rc", "write", 8, 2, peer="rxe_a")
        pair.loop("uc", "write", 8, 2)
        n1.run(["tc", "qdisc", "add", "dev", "veth_a", "root", "netem", "loss", "100%"])
        try:
            # an unreliable write completes when it is sent; its far end then misses the payload
            assert pair.loop("uc", "write", 9, 2, check=False).returncode == 1
        finally:
            n1.run(["tc", "qdisc", "del", "dev", "veth_a", "root"])
        capture = dumps["drops"].stop(tmp_path)

    late = [packet for packet in capture.packets if packet.fields.get("drop") == "no_rq_wqe"]
    assert late
    for packet in late:
        assert packet.fields["op"] == "RC_SEND_ONLY"
        assert {"parse", "icrc", "queue", "exec"} <= set(packet.stages), packet.comment

    looped = [packet for packet in capture.packets if "loopback" in packet.fields]
    assert len(looped) == 2 * 2 * 3 * 16
    macs = {packet.frame[:12] for packet in looped}
    own = bytes.fromhex(n1.run(["cat", "/sys/class/net/veth_a/address"]).stdout.replace(":", ""))
    assert macs == {own + own}
    assert all(packet.fields["link"] == "made" for packet in looped)

    unreliable = [packet for packet in capture.sent() if packet.fields["op"].startswith("UC_")]
    seen = [packet for packet in unreliable if "xmit" in packet.stages]
    lost = [packet for packet in unreliable if "xmit" not in packet.stages]
    assert len(seen) == len(lost) == 3 * 16
    # derived from earlier packets
    assert {packet.frame[:14] for packet in lost} == {packet.frame[:14] for packet in seen}
    assert all(packet.fields["link"] == "made" for packet in lost)
    assert not any("link" in packet.fields for packet in seen)

    dropped = [packet for packet in capture.packets if not packet.stages]
    assert [packet.fields["drop"] for packet in dropped] == list(HOSTILE)
    for packet, (_, body) in zip(dropped, HOSTILE.values(), strict=True):
        assert packet.frame.endswith(body)
        assert packet.direction == INBOUND
        assert "qpn" not in packet.fields
        assert ("op" in packet.fields) == (len(body) >= 12)
    assert capture.counters(capture.names().index(DEVICE))["drop"] == len(HOSTILE)


def test_errors(n1: Node) -> None:
    """Each error says what failed and what to do, with a documented status."""
    cases = {
        ("--device", "nosuch"): (3, "no RDMA device 'nosuch'", "rdma link"),
        ("--qpn", "x"): (2, "--qpn takes", "rxedump --help"),
        ("--opcode", "RC_NOTHING"): (2, "no such BTH opcode or class: 'RC_NOTHING'", "--help"),
        ("--snapshot-length", "70000"): (2, "--snapshot-length takes", "rxedump --help"),
        ("--follow", "17"): (2, "--follow takes QPN:PSN", "rxedump --help"),
        ("--follow", "17:5", "-q", "18"): (2, "different queue pairs", "leave out"),
        ("--file-size", "1"): (2, "--file-size needs --write", "--write FILE"),
        ("-w", "/tmp/x", "--file-count", "3"): (2, "--file-count needs --file-size", "--file-size"),
        ("-w", "/nonexistent/x"): (2, "cannot write /nonexistent/x", "folder"),
    }
    for options, (status, what, action) in cases.items():
        done = n1.run(["rxedump", *options], check=False)
        assert done.returncode == status, options
        assert what in done.stderr
        assert action in done.stderr
        assert "ready" not in done.stderr
    assert n1.run(["rxedump", "sh", "-c", "exit 7"], check=False).returncode == 7
    streamed = n1.run(["sh", "-c", "rxedump -w - echo hello > /tmp/clean.pcapng"])
    assert "hello" in streamed.stderr


def test_stock_driver(testbed: QemuTestbed, tmp_path: Path) -> None:
    """The stock driver has fewer stages, as the file says, and the same packets."""
    n1, n2 = testbed.nodes
    prepare_node.install_driver(n1, artifacts.driver(LINE, "stock"))
    prepare_node.add_device(n1)
    try:
        before = counter(n1, "sent_pkts"), counter(n1, "rcvd_pkts")
        with dumping(n1) as (dump,):
            traffic.perftest("ib_send_lat", n1, n2, size=64, iterations=50)
            capture = dump.stop(tmp_path)
        moved = counter(n1, "sent_pkts") - before[0], counter(n1, "rcvd_pkts") - before[1]
    finally:
        prepare_node.install_driver(n1, artifacts.driver(LINE))
        prepare_node.add_device(n1)
    assert capture.session["driver"] == "stock"
    missing = [f"tx.{stage}" for stage in ("wqe", "route")]
    missing += [f"rx.{stage}" for stage in RX_STAGES[2:]]
    assert capture.session["missing"].split(",") == missing
    # 7.x preempts the probes of functions; the file counts packets without stages
    lost = capture.counters()["lost"]
    assert lost == 0 or LINE == "7.x"
    dumped = len(capture.sent()), len(capture.received())
    assert all(one <= all_of for one, all_of in zip(dumped, moved, strict=True))
    assert sum(moved) - lost <= sum(dumped)
    for packet in capture.sent():
        assert list(packet.stages) == [s for s in TX_STAGES if f"tx.{s}" not in missing]
    for packet in capture.received():
        assert list(packet.stages) == RX_STAGES[:2]
    for packet in capture.packets:
        assert packet.frame[47:50] == int(packet.fields["dqpn"]).to_bytes(3, "big")
        assert packet.length == len(packet.frame)


def test_a_reader_that_takes_nothing_is_given_up(testbed: QemuTestbed) -> None:
    """A stop ends rxedump, though its pipe stays full."""
    n1, n2 = testbed.nodes
    started = n1.run(
        ["sh", "-c", "rm -f /tmp/stalled; mkfifo /tmp/stalled; sleep 1000 <>/tmp/stalled & echo $!"]
    )
    reader = started.stdout.strip()
    dump = n1.start(["sh", "-c", "exec rxedump -w - >/tmp/stalled"])
    try:
        dump.wait_for_line("rxedump: ready", timeout=180)
        traffic.perftest("ib_write_bw", n1, n2, size=65536, iterations=40)
        dump.interrupt()
        done = dump.wait(timeout=180)
    finally:
        dump.kill()
        n1.run(["kill", reader], check=False)
    assert done.returncode == 0, done.stderr
    assert "the reader has closed the pipe, or takes nothing" in done.stderr
