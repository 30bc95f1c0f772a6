# SPDX-License-Identifier: GPL-2.0-or-later
"""rxetop and the latency of work requests: known traffic, perftest's own samples, known losses."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import traffic
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node, prepare_node
from rocelab.testbed.node.prepare_node import DEVICE, PROBE_DIR
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rxe_trace import tracing
from rxestat_watch import watching
from vmlab import LINE

Document = dict[str, Any]
READS, SIZE = 300, 4096
OUTSIDE = 30_000
"""ns of one READ in user space and on the way into the kernel and back; about 9,000 emulated."""
PTY = Path(__file__).with_name("rxetop_pty.py")
LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"


@contextmanager
def looking(node: Node, *options: str) -> Iterator[list[Document]]:
    """Run rxetop around what the context does; the documents are there when it ends."""
    documents: list[Document] = []
    process = node.start(["rxetop", "--json", "--idle", "--interval", "300", *options])
    try:
        process.wait_for_line("rxetop: ready", timeout=120)
        yield documents
        process.interrupt()
        done = process.wait(timeout=60)
        assert done.returncode == 0, done.stderr
        documents += [json.loads(line) for line in done.stdout.splitlines()]
    finally:
        process.kill()
    assert all(document["schema"] == "rocelab.rxetop/1" for document in documents)
    assert [document["look"] for document in documents] == list(range(1, len(documents) + 1))


def rows_of(documents: list[Document], **wanted: object) -> list[Document]:
    """All rows, in time, whose keys have these values."""
    rows = [row for document in documents for row in document["qps"]]
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def installed(node: Node) -> None:
    """Put the program where it may be older, or absent."""
    prepare_node.install_probes(node, [artifacts.probe("rxetop", LINE)])


def reads(client: Node, server: Node) -> tuple[int, str, list[float]]:
    """Run ib_read_lat with one READ at a time; its PID, its output, its samples in ns."""
    common = ["ib_read_lat", "-d", DEVICE, "-s", str(SIZE), "-n", str(READS), "-F", "-u", "21"]
    with traffic.server(server, [*common, "-x", traffic.gid_index(server)]):
        shell = 'echo "pid $$"; exec "$@"'
        words = [*common, "-U", "-x", traffic.gid_index(client), server.link.ipv4]
        said = client.run(["sh", "-c", shell, "sh", *words], timeout=300).stdout
    pid = re.match(r"pid (\d+)\n", said)
    assert pid
    samples = [float(us) * 1000 for us in re.findall(r"^\d+, ([\d.e+]+)$", said, re.MULTILINE)]
    assert len(samples) == READS - 1, said
    return int(pid[1]), said, samples


def test_latency_of_work_requests(testbed: QemuTestbed) -> None:
    """perftest posts one READ at a time. Its samples, from post to post, are our latency and
    its own way into the kernel and back. rxetop knows whose queue pair it is, and its peer.
    """
    n1, n2 = testbed.nodes
    installed(n1)
    options = ("--work-requests",)
    with looking(n1) as documents, watching(n1, options=options) as (watch,):
        pid, said, samples = reads(n1, n2)
        document = watch.stop()
    ends = re.findall(r"^ (local|remote) address: .* QPN (0x[0-9a-f]+)", said, re.MULTILINE)
    qpns = {end: int(number, 16) for end, number in ends}

    requests = document["work_requests"]
    assert requests["without_cell"] == requests["with_error"] == 0
    (row,) = requests["latency"]
    assert (row["dev"], row["qpn"], row["opcode"]) == (DEVICE, qpns["local"], "RDMA_READ")
    assert row["count"] == sum(count for _, count in row["buckets"])
    # the process may lose its turn between the request and the doorbell
    assert row["count"] + requests["not_followed"] == READS
    assert requests["not_followed"] <= READS // 20
    assert row["count"] * row["min_ns"] <= row["sum_ns"] <= row["count"] * row["max_ns"]
    # the application's own way takes OUTSIDE at most; its sample of the last READ is missing
    most = 1.25 * row["sum_ns"] + READS * OUTSIDE
    assert row["sum_ns"] - row["max_ns"] < sum(samples) < most
    # the tail is a few values, of which one more or less decides
    middle = sorted(samples)[len(samples) // 2]
    assert middle - max(OUTSIDE, middle / 4) < row["p50_ns"] < 1.15 * middle, (middle, row)

    rows = rows_of(documents, qpn=qpns["local"], dev=DEVICE)
    assert {row["command"] for row in rows} == {"ib_read_lat"}
    assert {row["pid"] for row in rows} == {pid}
    assert {row["type"] for row in rows} <= {"RC", None}
    assert "RTS" in {row["state"] for row in rows}
    last = rows[-1]
    assert last["peer"] == {"address": n2.link.ipv4, "qpn": qpns["remote"]}
    total = last["total"]
    assert total["requests"] == READS
    assert total["packets"] == {"sent": READS, "received": READS}
    assert total["bytes"] == {"sent": 0, "received": READS * SIZE}
    assert total["retransmissions"] == total["timeouts"] == 0
    assert total["drops"] == {}
    assert total["task_ns"] > 0
    assert all(0 <= row["cpu"] <= 1.05 for row in rows)
    followed = sum(row["request_latency"]["count"] for row in rows)
    assert READS - READS // 20 <= followed <= READS
    # ICRCs of what was sent
    assert sum(row["stage_time"]["count"] for row in rows) == READS
    busy = [row["request_latency"] for row in rows if row["request_latency"]["count"]]
    for latency in busy:
        assert latency["p50_ns"] <= latency["p99_ns"] <= latency["p999_ns"]
        assert row["min_ns"] <= latency["p50_ns"]
    assert {document["lost"] for document in documents} == {0}


def test_losses(testbed: QemuTestbed) -> None:
    """A link that loses packets: each retransmission, NAK and drop of the driver, by QP."""
    n1, n2 = testbed.nodes
    events = ("rxe_retransmit", "rxe_timeout", "rxe_nak", "rxe_drop")
    installed(n1)
    installed(n2)
    qdisc = ["dev", n1.link.netdev, "root", "netem", "loss", "4%"]
    with (
        looking(n1, "--sample", "4") as at_n1,
        looking(n2) as at_n2,
        tracing(n1, *events) as trace_1,
        tracing(n2, *events) as trace_2,
    ):
        n1.run(["tc", "qdisc", "add", *qdisc])
        try:
            traffic.perftest("ib_write_bw", n1, n2, size=65536, iterations=40, ack_timeout=16)
        finally:
            n1.run(["tc", "qdisc", "del", *qdisc[:3]])
    sender, receiver = (
        next(row for row in reversed(rows_of(at, command="ib_write_bw"))) for at in (at_n1, at_n2)
    )
    for row, trace in ((sender, trace_1), (receiver, trace_2)):
        mine = [event for event in trace.events if event.fields.get("qpn") == str(row["qpn"])]
        seen = Counter(event.name for event in mine)
        ways = Counter(event["dir"] for event in mine if event.name == "rxe_nak")
        total = row["total"]
        assert total["retransmissions"] == seen["rxe_retransmit"]
        assert total["timeouts"] == seen["rxe_timeout"]
        assert total["naks"] == {way: ways[way] for way in ("sent", "received")}
        drops = Counter(event["reason"] for event in mine if event.name == "rxe_drop")
        assert total["drops"] == drops
    assert sender["total"]["retransmissions"] > 0
    assert receiver["total"]["drops"]["sequence"] > 0
    assert receiver["total"]["naks"]["sent"] > 0
    # a sample of packets, losses in full
    assert at_n1[0]["one_of"] == 4
    assert sender["total"]["packets"]["sent"] % 4 == 0


def test_hostile_name_and_screen(n1: Node) -> None:
    """A waiting queue pair is found, its process's name escaped; the terminal comes back."""
    name = "/tmp/\x1b]0;evil\x07\n"
    installed(n1)
    n1.run(["sh", "-c", 'cp "$(command -v ibv_rc_pingpong)" "$1"', "sh", name])
    n1.put(PTY, "/tmp/rxetop_pty.py")
    words = [name, "-d", DEVICE, "-p", "18517", "-g", traffic.gid_index(n1)]
    with traffic.server(n1, words, port=18517):
        (document,) = looks(n1, "--json", "--idle", "--filter", "evil")
        (row,) = document["qps"]
        assert row["state"] == "INIT"
        assert row["command"] == name.removeprefix("/tmp/")
        assert row["peer"] == {"address": None, "qpn": None}
        table = n1.run(["rxetop", "-b", "-n", "1", "-I", "100", "--idle"], timeout=120).stdout
        assert "\\x1b]0;evil\\x" in table
        assert not re.search(r"[^\x20-\x7e\n]", table)
        for end, status in (("q", 0), ("SIGINT", 0), ("SIGTERM", 0), ("SIGQUIT", -3)):
            words = ["python3", "/tmp/rxetop_pty.py", end]
            report = json.loads(n1.run(words, timeout=300).stdout)
            check_screen(report)
            assert (report["exit"], report["restored"]) == (status, True), end
            assert report["last"].count(LEAVE) == 1
    n1.run(["rm", "-f", name])


def looks(node: Node, *options: str) -> list[Document]:
    """One document."""
    words = ["rxetop", "-n", "1", "-I", "100", *options]
    return [json.loads(line) for line in node.run(words, timeout=120).stdout.splitlines()]


def check_screen(report: Document) -> None:
    """What was drawn: nothing wider than the terminal, no escape but rxetop's own."""
    assert report["raw"]
    names = {"first", "peer", "filtered", "paused", "wide", "grouped"}
    for name in report.keys() & names:
        frame = re.sub(r"\x1b\[\??\d*[a-zA-Z]", "", report[name])
        assert "\x1b" not in frame
        if name == "grouped":
            assert "GROUP" in frame
            assert "\\x1b]0;evil\\x" in frame
            continue
        lines = frame.splitlines()
        widest = max(map(len, lines))
        assert widest <= (200 if name == "wide" else 80), lines
        if name == "wide":
            assert widest > 80
        assert ("INIT" in frame) == (name != "filtered"), lines


def test_stock_driver(testbed: QemuTestbed) -> None:
    """On the stock driver: packets and requests; what is missing is said, and absent."""
    n1, n2 = testbed.nodes
    prepare_node.install_driver(n1, artifacts.driver(LINE, "stock"))
    prepare_node.add_device(n1)
    installed(n1)
    try:
        with looking(n1) as documents:
            reads(n1, n2)
        refused = n1.run(["rxetop", "-b", "--sample", "4"], check=False)
    finally:
        prepare_node.install_driver(n1, artifacts.driver(LINE))
        prepare_node.add_device(n1)
    last = rows_of(documents, command="ib_read_lat")[-1]
    assert last["total"] == {
        "packets": {"sent": READS, "received": READS},
        "bytes": {"sent": 0, "received": READS * SIZE},
        "requests": READS,
        "requests_not_followed": 0,
        "requests_with_error": 0,
    }
    assert last["peer"]["address"] == n2.link.ipv4
    assert "stage_time" not in last
    assert "cpu" not in last
    assert "drops" in documents[0]["missing"]
    assert "stages" in documents[0]["missing"]
    assert refused.returncode == 3
    assert "only the instrumented driver can choose packets" in refused.stderr


def test_usage(n1: Node) -> None:
    """What cannot be is refused, and says what to do."""
    installed(n1)
    for words, status, what in (
        (["true"], 2, "a command cannot run on the screen"),
        ([], 3, "input or output is not a terminal"),
        (["-b", "--stage", "tx.xmit"], 2, "--stage takes"),
        (["-b", "--sort", "x"], 2, "--sort takes packets, bytes"),
        (["-b", "--device", "none0"], 3, "no RDMA device 'none0'"),
    ):
        done = n1.run([f"{PROBE_DIR}/rxetop", *words], check=False, timeout=120)
        assert done.returncode == status, done.stderr
        assert what in done.stderr
        assert "what to do:" in done.stderr
    done = n1.run(["rxetop", "-j", "-n", "5", "--", "sh", "-c", "exit 7"], check=False)
    assert done.returncode == 7
    assert len(done.stdout.splitlines()) == 1
