# SPDX-License-Identifier: GPL-2.0-or-later
"""rxestat agrees with the driver's counters and with arithmetic."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path

import pytest

import traffic
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node, prepare_node
from rocelab.testbed.node.prepare_node import DEVICE
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rxedump_watch import dumping
from rxestat_watch import (
    TX_STAGES,
    Watch,
    check_rows,
    count_switched,
    counter,
    packets,
    stage_counts,
    watching,
)
from traffic import MTU
from vmlab import LINE

SEND, ACK = "SEND", "ACKNOWLEDGE"


def ping_pong(n1: Node, n2: Node, *, size: int, iterations: int) -> None:
    """Either side sends `iterations` messages of `size` bytes."""
    traffic.perftest("ib_send_lat", n1, n2, size=size, iterations=iterations)


@pytest.mark.parametrize(("size", "iterations"), [(64, 300), (4096, 100), (9001, 100)])
def test_counts(testbed: QemuTestbed, size: int, iterations: int) -> None:
    """N sends of S bytes are N·ceil(S/MTU) packets in every stage and in the driver's counters."""
    n1, n2 = testbed.nodes
    with watching(n1, n2) as watches:
        ping_pong(n1, n2, size=size, iterations=iterations)
        documents = [watch.stop() for watch in watches]
    expected = iterations * max(1, math.ceil(size / MTU))
    for watch, document in zip(watches, documents, strict=True):
        check_rows(document)
        sent, arrived = packets(document, "tx"), packets(document, "rx")
        assert sent[SEND] == arrived[SEND] == packets(document, "done")[SEND] == expected
        assert sent.total() == watch.moved["sent_pkts"]
        assert arrived.total() == watch.moved["rcvd_pkts"]
        assert packets(document, "done").total() == arrived.total()
        # stages that all packets pass have all packets
        tx, rx = stage_counts(document, "tx"), stage_counts(document, "rx")
        for stage in TX_STAGES - {"wqe"}:
            assert tx[stage] == sent.total() - count_switched(document, "tx"), stage
        for stage in ("parse", "icrc"):
            assert rx[stage] == arrived.total() - count_switched(document, "rx"), stage
        for stage in ("queue", "exec"):
            assert rx[stage] == arrived.total() - count_switched(document, "done"), stage
    # what one sent the other received, by opcode class
    assert packets(documents[0], "tx") == packets(documents[1], "rx")
    assert packets(documents[1], "tx") == packets(documents[0], "rx")
    # an answer needs no work request; a send does
    wqe = {row["opcode_class"] for row in documents[0]["rows"] if row["stage"] == "wqe"}
    assert wqe == {SEND}
    # size classes: the last of 9001 bytes in 4096s is 809
    classes = {row["size_class"] for row in documents[0]["packets"] if row["opcode_class"] == SEND}
    assert classes == {64: {"1-64"}, 4096: {"2049-4096"}, 9001: {"2049-4096", "513-1024"}}[size]


def test_filters(testbed: QemuTestbed) -> None:
    """Each filter keeps the named packets and no others; filters combine."""
    n1, n2 = testbed.nodes
    options = (
        ("--direction", "tx"),
        ("--direction", "rx"),
        ("-O", "RC_SEND_ONLY"),
        ("--opcode", "rdma_write,uc_send"),
        ("--qpn", "16777215"),
        ("--device", DEVICE, "--opcode", "ACKNOWLEDGE", "--direction", "rx"),
    )
    watches = [Watch(n1, *chosen) for chosen in options]
    try:
        ping_pong(n1, n2, size=64, iterations=50)
        tx_only, rx_only, sends, writes, stranger, acks_in = [watch.stop() for watch in watches]
    finally:
        for watch in watches:
            watch.process.kill()
    assert {row["dir"] for row in tx_only["rows"]} == {"tx"}
    assert {row["dir"] for row in rx_only["rows"]} == {"rx"}
    assert set(packets(sends, "tx")) == set(packets(sends, "rx")) == {SEND}
    assert packets(sends, "tx")[SEND] == 50
    assert writes["rows"] == stranger["rows"] == []
    assert writes["lost"] == stranger["lost"] == 0
    assert set(packets(acks_in, "rx")) == set(packets(acks_in, "done")) == {ACK}
    assert {row["dir"] for row in acks_in["rows"]} == {"rx"}


def test_qpn_filter(testbed: QemuTestbed) -> None:
    """The filter keeps the packets of one of two queue pairs."""
    n1, n2 = testbed.nodes
    with watching(n1) as (everything,):
        ping_pong(n1, n2, size=64, iterations=20)
        whole = everything.stop()
    assert packets(whole, "tx")[SEND] == 20
    # rc_pingpong's server prints its number before it sends anything
    command = ["stdbuf", "-oL", "ibv_rc_pingpong", "-d", DEVICE, "-s", "64", "-n", "10"]
    command += ["-p", "18516", "-g"]
    with traffic.server(n1, [*command, traffic.gid_index(n1)], port=18516) as pingpong:
        match = re.search(r"QPN 0x([0-9a-f]+)", pingpong.wait_for_line("QPN", timeout=60))
        assert match
        wanted = str(int(match[1], 16))
        with watching(n1, options=("--qpn", wanted)) as (chosen,), watching(n1) as (all_of_them,):
            ping_pong(n1, n2, size=64, iterations=20)
            n2.run([*command, traffic.gid_index(n2), n1.link.ipv4], timeout=120)
            document, reference = chosen.stop(), all_of_them.stop()
    # ibv_rc_pingpong retransmits after 67 ms, which is short for a busy emulated node
    assert packets(document, "tx")[SEND] >= 10
    # rc_pingpong's short timeout may repeat a message; the other's packets are exactly the rest
    for event in ("tx", "rx", "done"):
        assert packets(reference, event)[SEND] - packets(document, event)[SEND] == 20


def test_intervals(testbed: QemuTestbed) -> None:
    """Every packet is in exactly one interval; the file grows by each, and starts empty."""
    n1, n2 = testbed.nodes
    n1.run(["sh", "-c", "echo old > /tmp/rxestat.jsonl"])
    before = counter(n1, "sent_pkts")
    process = n1.start(["rxestat", "-j", "-I", "50", "-o", "/tmp/rxestat.jsonl"])
    try:
        process.wait_for_line("rxestat: ready", timeout=120)
        ping_pong(n1, n2, size=64, iterations=500)
        grown = n1.run(["cat", "/tmp/rxestat.jsonl"]).stdout.splitlines()
        assert json.loads(grown[0])["interval"] == 1
        process.interrupt()
        assert process.wait(timeout=60).returncode == 0
    finally:
        process.kill()
    text = n1.run(["cat", "/tmp/rxestat.jsonl"]).stdout
    documents = [json.loads(line) for line in text.splitlines()]
    for document in documents:
        check_rows(document)
    assert [document["interval"] for document in documents] == list(range(1, len(documents) + 1))
    busy = [document for document in documents if document["rows"]]
    assert len(busy) > 2, "the traffic was over too soon to fall into several intervals"
    sent = sum(packets(document, "tx").total() for document in documents)
    assert sent == counter(n1, "sent_pkts") - before
    for first, second in itertools.pairwise(documents):
        assert first["start_ns"] + first["duration_ns"] == second["start_ns"]
    assert n1.run(["sh", "-c", "ls /tmp/rxestat.jsonl*"]).stdout == "/tmp/rxestat.jsonl\n"


_INTERRUPT_AT_AN_INTERVAL = """
rxestat -j -I 50 -o /tmp/both.jsonl 2>/tmp/both.err & pid=$!
until grep -q ready /tmp/both.err; do sleep 0.05; done
kill -STOP $pid; kill -INT $pid
sleep 0.2  # the timer expires meanwhile
kill -CONT $pid
wait $pid
"""


def test_interrupt_at_an_interval(n1: Node) -> None:
    """A signal that arrives together with the timer ends rxestat."""
    n1.run(["timeout", "180", "sh", "-c", _INTERRUPT_AT_AN_INTERVAL], timeout=210)


def test_count_ends_it(n1: Node) -> None:
    """--count ends without a signal; tables fit the terminal."""
    done = n1.run(["rxestat", "--interval", "100", "--count", "3"])
    assert done.stdout.count("no packet was seen") == 3
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_command(testbed: QemuTestbed) -> None:
    """A command is watched from its first packet; rxestat exits with its status."""
    n1, n2 = testbed.nodes
    common = ["ib_write_lat", "-d", DEVICE, "-n", "50", "-F", "-u", "21", "-x"]
    with traffic.server(n2, [*common, traffic.gid_index(n2)]):
        client = [*common, traffic.gid_index(n1), n2.link.ipv4]
        done = n1.run(["rxestat", "--xmit", "-o", "/tmp/table", *client], timeout=120)
    assert "RDMA_Write Latency Test" in done.stdout
    table = n1.run(["cat", "/tmp/table"]).stdout
    assert max(len(line) for line in table.splitlines()) <= 80
    assert f"{DEVICE} tx v2-ipv4 RC_RDMA_WRITE, 1-64 bytes" in table
    assert re.search(r"^  xmit +50 ", table, re.MULTILINE)
    assert "= encapsulation" in table
    assert "= decapsulation" in table
    assert n1.run(["rxestat", "sh", "-c", "exit 7"], check=False).returncode == 7
    assert n1.run(["rxestat", "sh", "-c", "kill -9 $$"], check=False).returncode == 137
    missing = n1.run(["rxestat", "/nonexistent"], check=False)
    assert missing.returncode == 127
    assert "cannot run '/nonexistent'" in missing.stderr


def test_another_clock_is_no_measurement(n1: Node) -> None:
    """When the driver chooses another clock, rxestat ends: its times would be wrong."""
    clock = "/sys/module/rdma_rxe/parameters/stamp_clock"
    process = n1.start(["rxestat", "-j", "-I", "50", "-o", "/tmp/clock.jsonl"])
    try:
        process.wait_for_line("rxestat: ready", timeout=120)
        n1.run(["sh", "-c", f"echo 3 1 >/tmp/clock && mount --bind /tmp/clock {clock}"])
        try:
            process.wait_for_line("the driver has another clock since", timeout=120)
            assert process.wait(timeout=120).returncode == 1
        finally:
            n1.run(["umount", clock])
    finally:
        process.kill()


def test_histograms(testbed: QemuTestbed) -> None:
    """-H adds each stage's octaves, which sum up to its count; tables still fit the terminal."""
    n1, n2 = testbed.nodes
    watch = n1.start(["rxestat", "-H"])
    try:
        watch.wait_for_line("rxestat: ready", timeout=120)
        ping_pong(n1, n2, size=64, iterations=40)
        watch.interrupt()
        table = watch.wait(timeout=60).stdout
    finally:
        watch.kill()
    assert max(len(line) for line in table.splitlines()) <= 80
    counts = re.findall(r"^  ([a-z]+) +(\d+) +\d+ +\d+ +\d+ +(\d+)$", table, re.MULTILINE)
    drawn = re.split(r"^ +ns : count +distribution$", table, flags=re.MULTILINE)[1:]
    assert len(counts) == len(drawn) > 10
    for (_, count, largest), text in zip(counts, drawn, strict=True):
        below, _, _ = text.partition("p99.9 ")
        octaves = re.findall(r"^ +(\d+) -> (\d+) +: (\d+) +\|(\**) *\|$", below, re.MULTILINE)
        assert sum(int(number) for _, _, number, _ in octaves) == int(count)
        assert int(octaves[-1][0]) <= int(largest) <= int(octaves[-1][1])
        assert max(len(stars) for *_, stars in octaves) == 34
        quantiles = re.search(r"^    p99\.9 (\d+), p99\.99 (\d+)$", text, re.MULTILINE)
        assert quantiles
        assert int(quantiles[1]) <= int(quantiles[2]) <= int(largest)


def test_targets_that_are_no_files(n1: Node) -> None:
    """-o keeps devices and links; - is standard output."""
    n1.run(["sh", "-c", "rm -f /tmp/link /tmp/target; ln -s /tmp/target /tmp/link"])
    for probe in ("rxestat", "rxecpu"):
        n1.run([probe, "-j", "-o", "/dev/null", "true"])
        assert n1.run(["stat", "-c", "%F", "/dev/null"]).stdout == "character special file\n"
        n1.run([probe, "-j", "-o", "/tmp/link", "true"])
        assert n1.run(["stat", "-c", "%F", "/tmp/link"]).stdout == "symbolic link\n"
        written = json.loads(n1.run(["cat", "/tmp/target"]).stdout)
        printed = json.loads(n1.run([probe, "-j", "-o", "-", "true"]).stdout)
        assert written["schema"] == printed["schema"] == f"rocelab.{probe}/1"


def rxe_programs(node: Node) -> list[str]:
    """Return the number of rocelab's BPF programs in the kernel."""
    listed = json.loads(node.run(["bpftool", "-j", "prog", "list"]).stdout)
    return [prog["name"] for prog in listed if prog.get("name", "").startswith(("rxe_", "net_dev"))]


def references(node: Node) -> int:
    """Return the reference count of the driver's module."""
    return int(node.run(["cat", "/sys/module/rdma_rxe/refcnt"]).stdout)


def wait_until_gone(node: Node) -> None:
    """Wait until the kernel has freed the programs, which it does with some delay."""
    node.run(
        ["sh", "-c", "while bpftool prog list | grep -Eq 'name (rxe_|net_dev)'; do :; done"],
        timeout=60,
    )


def test_sigkill_leaves_nothing(n1: Node) -> None:
    """After SIGKILL no program is attached, and the module's reference count is as before."""
    before = references(n1)
    process = n1.start(["rxestat"])
    process.wait_for_line("rxestat: ready", timeout=120)
    assert {"rxe_tx_stamps", "rxe_rx_stamps"} <= set(rxe_programs(n1))
    assert references(n1) > before
    refused = n1.run(["rmmod", "rdma_rxe"], check=False)
    assert refused.returncode != 0
    assert "in use" in refused.stderr
    process.kill()
    wait_until_gone(n1)
    assert references(n1) == before
    assert rxe_programs(n1) == []


def test_loopback(n1: Node) -> None:
    """Packets that never leave the host are counted separately and have no xmit."""
    with watching(n1) as (watch,):
        ping_pong(n1, n1, size=64, iterations=20)
        document = watch.stop()
    check_rows(document)
    rows = [row for row in document["packets"] if row["event"] in ("tx", "rx")]
    assert rows
    assert all(row["loopback"] == row["count"] - row["switched"] for row in rows)
    assert "xmit" not in stage_counts(document, "tx")
    assert packets(document, "tx")[SEND] == packets(document, "rx")[SEND] == 40


def test_xmit_is_on_request(testbed: QemuTestbed) -> None:
    """Without --xmit, no program runs for other packets of the host."""
    n1, n2 = testbed.nodes
    watch = Watch(n1, xmit=False)
    try:
        ping_pong(n1, n2, size=64, iterations=20)
        assert not any(name.startswith("net_dev") for name in rxe_programs(n1))
        document = watch.stop()
    finally:
        watch.process.kill()
    check_rows(document)
    assert set(stage_counts(document, "tx")) == TX_STAGES - {"xmit"}
    assert packets(document, "tx").total() == watch.moved["sent_pkts"]


_PMU = "/sys/bus/event_source/devices/cpu"
"""There where the processor has a performance counter, which an emulated one has not."""


def processors(node: Node) -> int:
    return int(node.run(["getconf", "_NPROCESSORS_ONLN"]).stdout)


def uptime(node: Node) -> float:
    """Seconds, in steps of 0.01."""
    return float(node.run(["cut", "-d", " ", "-f", "1", "/proc/uptime"]).stdout)


def switches(node: Node) -> int:
    """Context switches of all processors since the boot."""
    return int(node.run(["awk", "/^ctxt/ { print $2 }", "/proc/stat"]).stdout)


def test_kernel_events(testbed: QemuTestbed) -> None:
    """No cycles without a counter; a clock runs on all processors for as long as it watches."""
    n1, n2 = testbed.nodes
    has_cycles = n1.run(["test", "-e", _PMU], check=False).returncode == 0
    with watching(n1) as (cycles,), watching(n1, options=("-e", "cpu-clock")) as (clock,):
        begin = uptime(n1)
        ping_pong(n1, n2, size=64, iterations=50)
        end = uptime(n1)
        document, counted = clock.stop(), cycles.stop()["kernel_events"]
    assert (counted is not None) == has_cycles
    assert counted is None or (counted["event"] == "cycles" and counted["count"] > 0)
    events = document["kernel_events"]
    assert (events["event"], events["counted_share"]) == ("cpu-clock", 1)
    most = document["duration_ns"] * processors(n1)
    least = (end - begin - 0.01) * 1e9 * processors(n1)
    assert 0 < least <= events["count"] <= 1.001 * most
    table = n1.run(["rxestat", "-e", "cpu-clock", "true"]).stdout
    assert re.search(r"^kernel: \d+ cpu-clock on all processors$", table, re.MULTILINE)


def test_kernel_events_in_intervals(testbed: QemuTestbed) -> None:
    """Each switch of tasks in kernel mode, by /proc/stat's count, is in exactly one interval."""
    n1, n2 = testbed.nodes
    before = switches(n1)
    process = n1.start(["rxestat", "-j", "-I", "50", "-e", "context-switches"])
    try:
        process.wait_for_line("rxestat: ready", timeout=120)
        begin = switches(n1)
        ping_pong(n1, n2, size=64, iterations=300)
        end = switches(n1)
        process.interrupt()
        done = process.wait(timeout=60)
    finally:
        process.kill()
    after = switches(n1)
    events = [json.loads(line)["kernel_events"] for line in done.stdout.splitlines()]
    assert len(events) > 2
    assert all(each["event"] == "context-switches" for each in events)
    assert 0 < end - begin <= sum(each["count"] for each in events) <= after - before


ONE_OF = "/sys/module/rdma_rxe/parameters/stamp_one_of"


def test_sample(testbed: QemuTestbed) -> None:
    """One of four packets, the same at both ends; the counters say how many there were."""
    n1, n2 = testbed.nodes
    with watching(n1, n2, options=("--sample", "4")) as watches:
        ping_pong(n1, n2, size=64, iterations=2000)
        documents = [watch.stop() for watch in watches]
    for watch, document in zip(watches, documents, strict=True):
        check_rows(document)
        assert document["sample"] == {"one_of": 4, **watch.moved}
        for event, number in (("tx", "sent_pkts"), ("rx", "rcvd_pkts"), ("done", "rcvd_pkts")):
            assert 0.9 < 4 * packets(document, event).total() / watch.moved[number] < 1.1, event
        assert all(row["mean_error_ns"] >= 0 for row in document["rows"] if row["count"] > 1)
        assert watch.node.run(["cat", ONE_OF]).stdout == "1\n"
    assert packets(documents[0], "tx") == packets(documents[1], "rx")
    assert packets(documents[1], "tx") == packets(documents[0], "rx")


def test_sample_alone(testbed: QemuTestbed, tmp_path: Path) -> None:
    """A sample does not thin out another program's packets, and none is left behind."""
    n1, n2 = testbed.nodes
    sampling = Watch(n1, "--sample", "16")
    try:
        refused = n1.run(["rxestat", "true"], check=False)
        assert refused.returncode == 1
        assert "rxestat or rxetop runs with --sample" in refused.stderr
        # rxedump has all packets, whatever rxestat does
        with dumping(n1) as (dump,):
            before = counter(n1, "sent_pkts") + counter(n1, "rcvd_pkts")
            ping_pong(n1, n2, size=64, iterations=100)
            moved = counter(n1, "sent_pkts") + counter(n1, "rcvd_pkts") - before
            assert len(dump.stop(tmp_path).packets) == moved
        document = sampling.stop()
        assert 0 < packets(document, "tx").total() < 50
    finally:
        sampling.process.kill()
    killed = n1.start(["rxestat", "--sample", "16"])
    killed.wait_for_line("rxestat: ready", timeout=120)
    killed.kill()
    wait_until_gone(n1)
    assert n1.run(["cat", ONE_OF]).stdout == "16\n"
    with watching(n1) as (watch,):
        ping_pong(n1, n2, size=64, iterations=20)
        assert packets(watch.stop(), "tx").total() == watch.moved["sent_pkts"]


def test_errors(n1: Node) -> None:
    """Each error says what failed, the likely cause and what to do, with a documented status."""
    cases = {
        ("--device", "nosuch"): (3, "no RDMA device 'nosuch'", "rdma link"),
        ("--qpn", "x"): (2, "--qpn takes", "rxestat --help"),
        ("--opcode", "RC_NOTHING"): (2, "no such BTH opcode or class: 'RC_NOTHING'", "--help"),
        ("--sample", "12"): (2, "--sample takes a power of 2", "rxestat --help"),
        ("--event", "branches"): (2, "--event takes cycles, cpu-clock", "rxestat --help"),
        ("--count", "3"): (2, "--count needs --interval", "--interval"),
        ("--openmetrics", "9491", "-I", "9"): (
            2,
            "--openmetrics counts from the start",
            "leave out",
        ),
        ("--openmetrics", "192.0.2.1:9491"): (1, "cannot listen at '192.0.2.1:9491'", "port"),
        ("--openmetrics", "nowhere"): (2, "cannot listen at 'nowhere'", "ADDRESS:PORT"),
        ("--nosuch",): (2, "unrecognized option", "rxestat --help"),
        ("--output", "/nonexistent/x"): (2, "cannot write /nonexistent/x", "folder"),
    }
    for options, (status, what, action) in cases.items():
        done = n1.run(["rxestat", *options], check=False)
        assert done.returncode == status, options
        assert what in done.stderr
        assert action in done.stderr
        assert "ready" not in done.stderr


def test_stock_driver(testbed: QemuTestbed) -> None:
    """The stock driver has fewer stages, as the document says, and the same packets."""
    n1, n2 = testbed.nodes
    prepare_node.install_driver(n1, artifacts.driver(LINE, "stock"))
    prepare_node.add_device(n1)
    try:
        with watching(n1) as (watch,):
            ping_pong(n1, n2, size=9001, iterations=50)
            document = watch.stop()
        placed = [
            n1.run(["rxestat", *words], check=False, timeout=180)
            for words in (("--netns", "/proc/self/ns/net"), ("--group", "netns"))
        ]
        prepare_node.remove_device(n1)
        prepare_node.unload(n1)
        absent = n1.run(["rxestat"], check=False)
    finally:
        prepare_node.install_driver(n1, artifacts.driver(LINE))
        prepare_node.add_device(n1)
    assert document["driver"]["kind"] == "stock"
    for refused in placed:
        assert refused.returncode == 3, refused.stderr
        assert "does not say whose queue pairs are new" in refused.stderr
    missing = {f"tx.{stage}" for stage in ("wqe", "route")}
    missing |= {f"rx.{stage}" for stage in ("queue", "exec", "copy", "cqe", "reply")}
    assert set(document["missing_stages"]) == missing
    # 7.x preempts the probes of functions; the document counts packets without stages
    lost = document["lost"]
    assert lost == 0 or LINE == "7.x"
    sent, arrived = packets(document, "tx"), packets(document, "rx")
    assert 150 - lost <= min(sent[SEND], arrived[SEND])
    assert max(sent[SEND], arrived[SEND]) <= 150
    happened = watch.moved["sent_pkts"] + watch.moved["rcvd_pkts"]
    assert happened - lost <= sent.total() + arrived.total() <= happened
    tx, rx = stage_counts(document, "tx"), stage_counts(document, "rx")
    assert set(tx) == TX_STAGES - {"wqe", "route"}
    assert set(tx.values()) == {sent.total()}
    assert set(rx) == {"parse", "icrc"}
    assert set(rx.values()) == {arrived.total()}
    # the last of 9001 bytes in 4096s is 809: sizes come from the lengths of headers here
    classes = {row["size_class"] for row in document["packets"] if row["opcode_class"] == SEND}
    assert classes == {"2049-4096", "513-1024"}
    assert all(row["netted_mean_ns"] is None for row in document["rows"])
    assert absent.returncode == 3
    assert "the driver rdma_rxe is not loaded" in absent.stderr
