# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel lines without other tests: the driver loads, traces a ping-pong, and speaks RoCE v1.

`make test-kernels` runs the driver's tests on every line instead, and this one on that line only.
"""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest

import rxe_trace
from rocelab import kernel_lines
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import DEVICE, offer_roce_v1
from rxe_trace import PACKETS, Event, Tasks, tracing
from rxecpu_watch import check_sums, rxecpu, share
from rxestat_watch import Document, check_rows, counter, packets, watching
from traffic import gid_index, server
from vmlab import LINE, LINE_CHOSEN, Boot, healthy

HERE = [LINE] if LINE_CHOSEN else [line for line in kernel_lines.LINES if line != LINE]
MESSAGES = 50
V1_MESSAGES = 10


def begun_and_ended(events: list[Event]) -> set[str]:
    """Return the tasks that ran. AssertionError if one ends without a begin or begins twice."""
    open_runs: Counter[tuple[str, ...]] = Counter()
    for event in events:
        key = (event["dev"], event["qpn"], event["task"])
        open_runs[key] += 1 if event.name == "rxe_task_begin" else -1
        assert open_runs[key] in (0, 1), event
    return {task for *_, task in open_runs}


def wait_until_arrived(n1: Node, n2: Node) -> None:
    """Wait until all that either node has sent has arrived: a repeated message is answered late.

    What comes after the end of its queue pair arrives too, and is dropped.
    """
    deadline = time.monotonic() + 180
    names = ("sent_pkts", "rcvd_pkts", "rcvd_drops")
    while True:
        counted = [{name: counter(node, name) for name in names} for node in (n1, n2)]
        sent = [each["sent_pkts"] for each in counted]
        if sent == [each["rcvd_pkts"] + each["rcvd_drops"] for each in reversed(counted)]:
            return
        assert time.monotonic() < deadline, counted
        time.sleep(0.1)


def check_requests(document: Document) -> None:
    """The latency of each SEND: all were posted one by one while rxestat ran.

    Since 7.x a task can be preempted in rxestat's program, which the kernel then skips for others.
    """
    requests = document["work_requests"]
    (row,) = [row for row in requests["latency"] if row["opcode"] == "SEND"]
    counted = row["count"] + requests["not_followed"]
    assert MESSAGES - requests["missed"] <= counted <= MESSAGES, requests
    assert requests["without_cell"] == requests["with_error"] == 0, requests


def check_rxetop(node: Node, waiting: list[str]) -> None:
    """One table: a queue pair that waits for its peer, and whose it is."""
    with server(node, waiting):
        table = node.run(["rxetop", "-b", "-n", "1", "-I", "100", "--idle"], timeout=300).stdout
    rows = [line for line in table.splitlines() if waiting[0] in line.split()]
    assert len(rows) == 1, table
    assert {DEVICE, "RC", "INIT"} <= set(rows[0].split()), table


def check_rxetop_counts(node: Node, client: list[str]) -> None:
    """One document when the client has ended: what its queue pair moved."""
    words = ["rxetop", "-b", "--json", "-n", "1", "-I", "3600000", "--"]
    # its own output is none of rxetop's
    silent = ["sh", "-c", 'exec "$@" > /dev/null', "sh"]
    said = node.run([*words, *silent, *client], timeout=300).stdout
    (seen,) = json.loads(said)["qps"]
    assert seen["dev"] == DEVICE  # although it came and went between two looks
    total = seen["total"]
    assert total["requests"] == MESSAGES, seen
    # with what its short timeout repeats
    assert all(count >= MESSAGES for count in total["packets"].values()), seen
    assert total["task_ns"] > 0, seen
    assert seen["stage_time"]["count"] >= MESSAGES, seen


@pytest.mark.parametrize("line", HERE)
def test_line(boot: Boot, line: str) -> None:
    """Driver and rxestat of the line: every packet in every event once, as the counters say; then
    the same device with RoCE v1.
    """
    with (
        boot(name="line", prepared=True, line=line) as testbed,
        healthy(testbed.nodes, f"line {line}"),
    ):
        n1, n2 = testbed.nodes
        assert n1.run(["uname", "-r"]).stdout.strip() == artifacts.driver(line).release
        events = n1.run(["ls", f"{rxe_trace.TRACING}/events/rxe"]).stdout.split()
        assert len([name for name in events if name.startswith("rxe_")]) == 16

        command = ["ibv_rc_pingpong", "-d", DEVICE, "-s", "256", "-n", str(MESSAGES), "-e"]
        before = {name: counter(n1, name) for name in ("sent_pkts", "rcvd_pkts")}
        with watching(n1, options=("--work-requests",)) as (watch,):
            with (
                tracing(n1) as trace,
                server(n2, [*command, "-g", gid_index(n2)]),
            ):
                n1.run([*command, "-g", gid_index(n1), n2.link.ipv4], timeout=180)
                wait_until_arrived(n1, n2)
            document = watch.stop()
        moved = {name: counter(n1, name) - was for name, was in before.items()}

        with (
            rxecpu(n1, "--comm", command[0]) as cpu,
            server(n2, [*command, "-g", gid_index(n2)]),
        ):
            n1.run([*command, "-g", gid_index(n1), n2.link.ipv4], timeout=180)
        check_sums(cpu)
        assert cpu["missing"] == []
        assert share(cpu, owner="benchmark") > 0
        # the driver's tasks: tasklets and system calls, or works
        tasks = ("softirq.tasklet", "syscall") if line == "6.1" else ("kthread",)
        assert sum(share(cpu, context=context, owner="rxe") for context in tasks) > 0
        assert share(cpu, context="softirq.net_rx", owner="rxe") > 0

        check_requests(document)
        check_rxetop(n1, [*command, "-g", gid_index(n1)])
        with server(n2, [*command, "-g", gid_index(n2)]):
            check_rxetop_counts(n1, [*command, "-g", gid_index(n1), n2.link.ipv4])

        tx, rx, done = (trace.named(name) for name in PACKETS)
        assert len(tx) == moved["sent_pkts"]
        assert len(rx) == len(done) == moved["rcvd_pkts"]
        for seen in (tx, rx, done):
            sends = [event for event in seen if event["op"] == "RC_SEND_ONLY"]
            # its short timeout may repeat a message
            assert len({event["psn"] for event in sends}) == MESSAGES
            assert all(event["net"] == "v2-ipv4" for event in seen)
        runs = [event for event in trace.events if event.name.startswith("rxe_task_")]
        assert begun_and_ended(runs) == Tasks.of(line).names()

        check_rows(document)
        seen_by = {event: packets(document, event).total() for event in ("tx", "rx", "done")}
        happened = moved["sent_pkts"] + 2 * moved["rcvd_pkts"]
        assert sum(seen_by.values()) == happened, (seen_by, moved)

        offer_roce_v1(testbed.nodes)
        command[command.index("-n") + 1] = str(V1_MESSAGES)
        v1 = [gid_index(node, gid_type="IB/RoCE v1") for node in testbed.nodes]
        with (
            tracing(n1, *PACKETS) as trace,
            server(n2, [*command, "-g", v1[1]]),
        ):
            n1.run([*command, "-g", v1[0], n2.link.ipv4], timeout=180)
            wait_until_arrived(n1, n2)
        for name in PACKETS:
            seen = trace.named(name)
            assert {event["net"] for event in seen} == {"v1"}
            psns = {event["psn"] for event in seen if event["op"] == "RC_SEND_ONLY"}
            assert len(psns) == V1_MESSAGES
