# SPDX-License-Identifier: GPL-2.0-or-later
"""A probe under --control: each window has its own counts, and between them nothing is attached."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import traffic
from node_program import compile_program
from pcapng_file import Capture, read_pcapng
from polling import wait_until
from probe_windows import Windows, keys_of, links, windows
from rocelab.measure.probes.loaded_probes import LoadedProbes
from rocelab.measure.probes.watched import watch
from rocelab.plans.catalog import TRANSPORTS, Probe
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import DEVICE, add_device, remove_device
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rxecpu_watch import check_sums, share
from rxedump_watch import HOLD
from rxestat_watch import check_rows, counter, packets

PROBES = {
    "rxestat": ("rxe_tx_stamps", "rxe_rx_stamps", "rxe_drop"),
    "rxecpu": ("rxe_task_begin", "rxe_rx_begin"),
    "rxedump": ("rxe_tx_packet", "rxe_rx_packet", "rxe_drop"),
    "rxetop": ("rxe_tx_stamps", "rxe_rx_stamps", "rxe_drop"),
}
"""Events of the driver that each attaches to."""
LOOP = Path(__file__).with_name("cpu_loop.c")
SENDS, WRITES = 40, 25


def sends(testbed: QemuTestbed) -> None:
    """SENDS packets from n1 and as many from n2, and their acknowledgments."""
    n1, n2 = testbed.nodes
    traffic.perftest("ib_send_lat", n1, n2, size=64, iterations=SENDS)


def writes(testbed: QemuTestbed) -> None:
    """WRITES packets from n1, of another size class."""
    n1, n2 = testbed.nodes
    traffic.perftest("ib_write_bw", n1, n2, size=2048, iterations=WRITES)


def bad_packet(testbed: QemuTestbed) -> None:
    """One packet from n2 that the driver of n1 drops."""
    n1, n2 = testbed.nodes
    before = counter(n1, "rcvd_drops")
    n2.run(["bash", "-c", f"echo no RoCE > /dev/udp/{n1.link.ipv4}/4791"])
    wait_until("n1 drops the packet", lambda: counter(n1, "rcvd_drops") > before)


def made_again(node: Node) -> None:
    """Delete the device and make it again: it has another index."""
    remove_device(node)
    add_device(node)


def references(node: Node) -> int:
    """Return how often the driver's module is in use."""
    return int(node.run(["cat", "/sys/module/rdma_rxe/refcnt"]).stdout)


def detached(node: Node, program: str) -> None:
    """Assert that nothing of a probe is attached."""
    assert links(node) == []
    assert set(keys_of(node, PROBES[program]).values()) == {0}


@pytest.mark.parametrize("program", PROBES)
def test_attached_in_windows_only(n1: Node, program: str) -> None:
    """Between windows there are no links and the driver's keys are off; then nothing is left."""
    before = references(n1)
    with windows(n1, program, *["--json"] * (program != "rxedump")) as probe:
        detached(n1, program)
        for _ in range(2):
            probe.start()
            assert links(n1)
            assert min(keys_of(n1, PROBES[program]).values()) > 0
            probe.stop()
            detached(n1, program)
        # it ends with its input, and says nothing more, in a window or not
        probe.start()
        told, printed = probe.errors(), n1.run(["cat", f"{probe.path}.out"]).stdout
        done = probe.end_of_input()
        assert done.returncode == 0
        assert probe.errors() == told
        assert n1.run(["cat", f"{probe.path}.out"]).stdout == printed
    detached(n1, program)
    assert references(n1) == before


@pytest.mark.parametrize("program", PROBES)
def test_sigkill_in_a_window_leaves_nothing(n1: Node, program: str) -> None:
    """The kernel detaches and frees what a killed probe had."""
    before = references(n1)
    with windows(n1, program) as probe:
        probe.start()
        assert links(n1)
    wait_until("its links are gone", lambda: not links(n1))
    detached(n1, program)
    wait_until("the module is used as before", lambda: references(n1) == before)


def test_commands(n1: Node) -> None:
    """What cannot be done is answered by one line, and changes nothing."""
    with windows(n1, "rxestat", "--json", "--device", DEVICE) as probe:
        assert probe.say("ping\n", "pong") == "pong"
        assert probe.say("stop\n", "stopped") == "error: it is not started"
        assert probe.say("report\n", "reported") == "error: it is not started"
        assert probe.say("start /tmp/file\n", "started") == "error: start takes no file"
        assert probe.say("begin\n", "started").startswith("error: no command 'begin'")
        assert probe.say("\x1b[2J\n", "-").startswith("error: no command '\\x1b[2J'")
        assert probe.say("x" * 5000 + "\n", "-") == "error: the line is too long"
        # a line comes in pieces, and two come at once
        probe.node.run(["sh", "-c", f"printf sta > {probe.path}.in"])
        assert probe.say("rt\n", "started") == "started"
        assert probe.say("start\n", "started") == "error: it is started already: stop first"
        assert probe.say("report\nstop\n", "stopped") == "stopped"
        assert len(probe.documents()) == 2
        n1.run(["rdma", "dev", "set", DEVICE, "name", "other0"])
        try:
            assert probe.say("start\n", "started") == "error: start failed"
            assert f"no RDMA device '{DEVICE}'" in probe.errors()
        finally:
            n1.run(["rdma", "dev", "set", "other0", "name", DEVICE])
        assert links(n1) == []
        probe.start()
        probe.stop()
    for options in (["true"], ["-I", "100"], ["--openmetrics", ":9491"]):
        refused = n1.run(["rxestat", "--control", *options], check=False)
        assert refused.returncode == 2, options
        assert "--control does not go with" in refused.stderr


def test_rxestat(testbed: QemuTestbed) -> None:
    """Packets, losses, work requests and runs of a window are its own; a report ends nothing."""
    n1, _ = testbed.nodes
    options = ("--json", "--device", DEVICE, "--xmit", "--work-requests", "--bpf-stats")
    with windows(n1, "rxestat", *options) as probe:
        probe.start()
        sends(testbed)
        assert probe.say("report\n", "reported") == "reported"
        sends(testbed)
        bad_packet(testbed)
        probe.stop()
        # nobody sees these
        writes(testbed)
        bad_packet(testbed)
        probe.start()
        writes(testbed)
        probe.stop()
        made_again(n1)
        probe.start()
        sends(testbed)
        probe.stop()
        probe.start()
        probe.stop()
        half, first, second, third, empty = probe.documents()
    for document in (half, first, second, third, empty):
        check_rows(document)
    assert packets(half, "tx") == {"SEND": SENDS, "ACKNOWLEDGE": SENDS}
    assert packets(first, "tx") == {"SEND": 2 * SENDS, "ACKNOWLEDGE": 2 * SENDS}
    assert packets(second, "tx") == {"RDMA_WRITE": WRITES}
    assert packets(third, "tx") == packets(half, "tx")
    assert packets(empty, "tx") == packets(empty, "rx") == Counter()
    assert {row["size_class"] for row in second["packets"] if row["event"] == "tx"} == {"1025-2048"}
    assert [row["event"] for row in first["losses"]] == ["drop"]
    assert half["losses"] == second["losses"] == third["losses"] == empty["losses"] == []
    requests = [
        sum(row["count"] for row in document["work_requests"]["latency"])
        + document["work_requests"]["not_followed"]
        for document in (half, first, second, third, empty)
    ]
    # ib_write_bw asks for few completions
    assert 0 < requests.pop(2) <= WRITES
    assert requests == [SENDS, 2 * SENDS, SENDS, 0]
    for document in (half, first, second, third, empty):
        runs = {row["name"]: row["runs"] for row in document["programs"]}
        assert runs["rxe_tx_stamps"] == packets(document, "tx").total()
    assert first["start_ns"] == half["start_ns"]
    ends = [document["start_ns"] + document["duration_ns"] for document in (first, second)]
    assert first["duration_ns"] > half["duration_ns"] > 0
    assert ends[0] < second["start_ns"]
    assert ends[1] < third["start_ns"]


def test_rxecpu(n1: Node) -> None:
    """The accounts of a window are its own, and its stacks are in its file."""
    loop = compile_program(n1, LOOP)
    # the kernel keeps 15 bytes of a name; the last of many counts, too
    names = [*(f"name{number}" for number in range(63)), Path(loop).name[:15]]
    with windows(n1, "rxecpu", "--json", "--interval", "100", "--comm", ",".join(names)) as probe:
        probe.start("/tmp/first.folded")
        n1.run([loop, "user", "700"])
        probe.stop()
        n1.run([loop, "user", "700"])
        probe.start("/tmp/second.folded")
        probe.stop()
        probe.start()
        n1.run([loop, "user", "300"])
        assert probe.say("report\n", "reported") == "reported"
        probe.stop()
        first, second, half, third = probe.documents()
        stacks = [n1.run(["cat", f"/tmp/{name}.folded"]).stdout for name in ("first", "second")]
        assert probe.say("start -\n", "started") == "error: start failed"
        assert probe.say("start /none/file\n", "started") == "error: start failed"
        assert links(n1) == []
    for document in (first, second, half, third):
        check_sums(document)
    busy = [
        share(document, context="user", owner="benchmark") for document in (first, second, third)
    ]
    assert busy[0] > 500_000_000
    assert busy[1] == 0
    assert 200_000_000 < busy[2] < busy[0]
    name = Path(loop).name[:15]
    assert name in stacks[0]
    assert name not in stacks[1]
    assert "run_queue" in first
    assert "run_queue" not in third
    for document in (first, third):
        intervals = document["intervals"]
        assert intervals[0]["start_ns"] == document["start_ns"]
        assert sum(row["duration_ns"] for row in intervals) == document["duration_ns"]


def test_rxecpu_stays_attached(n1: Node) -> None:
    """It counts nothing meanwhile, and a window with stacks does not keep its programs."""
    loop = compile_program(n1, LOOP)
    with windows(n1, "rxecpu", "--json", "--comm", Path(loop).name[:15]) as probe:
        probe.start()
        n1.run([loop, "user", "100"])
        probe.hold()
        assert links(n1)
        assert probe.say("report\n", "reported") == "error: it is not started"
        n1.run([loop, "user", "200"])
        probe.start()
        n1.run([loop, "user", "400"])
        probe.hold()
        probe.stop()
        detached(n1, "rxecpu")
        assert probe.say("stop\n", "stopped") == "error: it is not started"
        probe.start()
        probe.hold()
        before = links(n1)
        probe.start("/tmp/third.folded")
        assert len(links(n1)) > len(before)
        probe.hold()
        detached(n1, "rxecpu")
        first, second, *others = probe.documents()
    for document in (first, second, *others):
        check_sums(document)
    busy = [share(document, context="user", owner="benchmark") for document in (first, second)]
    assert 50_000_000 < busy[0] < 200_000_000
    assert 300_000_000 < busy[1] < 550_000_000


@pytest.mark.parametrize("program", sorted(set(PROBES) - {"rxecpu"}))
def test_others_are_detached_at_hold(n1: Node, program: str) -> None:
    with windows(n1, program, *["--json"] * (program != "rxedump")) as probe:
        probe.start()
        probe.hold()
        detached(n1, program)
        probe.stop()
        probe.start()


def test_nothing_is_attached_in_a_step_without_probes(testbed: QemuTestbed, tmp_path: Path) -> None:
    """Such as one that is timed."""
    nodes, both = testbed.nodes, (Probe.RXESTAT, Probe.RXECPU)
    rest = (TRANSPORTS["rxe-v2"], [DEVICE, DEVICE], [("ib_send_bw",)], tmp_path)
    with LoadedProbes() as probes:
        for _ in range(2):
            with watch(probes, nodes, *rest, both):
                assert all(links(node) for node in nodes)
            with watch(probes, nodes, *rest, ()):
                for node in nodes:
                    detached(node, "rxecpu")
                    detached(node, "rxestat")


def test_rxedump(testbed: QemuTestbed, tmp_path: Path) -> None:
    """Each window has its own file, with its own packets, counters and device."""
    n1, _ = testbed.nodes

    def fetched(probe: Windows, name: str) -> Capture:
        probe.node.get(f"/tmp/{name}.pcapng", tmp_path / name)
        return read_pcapng(tmp_path / name)

    with windows(n1, "rxedump", "--device", DEVICE, *HOLD) as probe:
        probe.start("/tmp/first.pcapng")
        sends(testbed)
        assert probe.say("report\n", "reported") == "reported"
        probe.stop()
        writes(testbed)
        made_again(n1)
        probe.start("/tmp/second.pcapng")
        writes(testbed)
        probe.stop()
        probe.start()
        sends(testbed)
        probe.stop()
        lines = n1.run(["cat", f"{probe.path}.out"]).stdout.splitlines()
        assert probe.say("start /none/file\n", "started") == "error: start failed"
        # what is written when the input ends is whole
        probe.start("/tmp/last.pcapng")
        writes(testbed)
        assert probe.end_of_input().returncode == 0
        captures = [fetched(probe, name) for name in ("first", "second", "last")]
    first, second, last = captures
    assert len(first.sent()) == 2 * SENDS
    for capture in (second, last):
        assert len(capture.sent()) == WRITES
    for capture in captures:
        counters = capture.counters()
        assert counters["delivered"] == counters["received"] == len(capture.packets)
        assert counters["tx"] == len(capture.sent())
        assert counters["timed_out"] == counters["evicted"] == counters["lost"] == 0
        assert capture.names() == [f"{DEVICE}"]
    assert len(lines) == len(first.packets)


def test_rxetop(testbed: QemuTestbed) -> None:
    """Totals of a window are its own, and the queue pairs that are gone are not in the next."""
    n1, _ = testbed.nodes

    def total(document: dict[str, object], what: str) -> int:
        rows = document["qps"]
        assert isinstance(rows, list)
        return sum(row["total"]["packets"][what] for row in rows)

    with windows(n1, "rxetop", "--json", "--idle") as probe:
        probe.start()
        sends(testbed)
        assert probe.say("report\n", "reported") == "reported"
        bad_packet(testbed)
        probe.stop()
        writes(testbed)
        probe.start()
        writes(testbed)
        probe.stop()
        half, first, second = probe.documents()
    assert total(half, "sent") == total(half, "received") == 2 * SENDS
    assert [half["look"], first["look"], second["look"]] == [1, 2, 1]
    assert total(second, "sent") == WRITES
    assert half["other_drops"] == second["other_drops"] == {}
    assert sum(first["other_drops"].values()) == 1
    assert {document["lost"] for document in (half, first, second)} == {0}
