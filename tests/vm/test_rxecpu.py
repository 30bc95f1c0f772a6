# SPDX-License-Identifier: GPL-2.0-or-later
"""rxecpu agrees with the clock, with loops of known work, with traffic and with /proc/stat."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import traffic
from node_program import compile_program
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node, prepare_node
from rocelab.testbed.node.prepare_node import DEVICE
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rxecpu_watch import Document, check_sums, of_command, rxecpu, share
from vmlab import LINE

LOOP = Path(__file__).with_name("cpu_loop.c")
MILLISECONDS = 1500
TICK_NS = 4_000_000
TASKS = ("softirq.tasklet", "syscall") if LINE == "6.1" else ("kthread",)
CGROUP = "/sys/fs/cgroup/rocelab"


def loop(node: Node, kind: str) -> tuple[Document, int]:
    """Return a loop's document, and the CPU time that the loop used by its own account."""
    document, said = of_command(node, compile_program(node, LOOP), kind, str(MILLISECONDS))
    check_sums(document)
    assert document["missing"] == []
    match = re.fullmatch(r"\w+ (\d+) of (\d+) ns\n", said)
    assert match, said
    used, whole = int(match[1]), int(match[2])
    # a thread's clock includes the interrupts during its time
    counted = (
        share(document, owner="benchmark")
        + share(document, context="syscall", owner="network")
        + interrupts(document)
    )
    assert counted == pytest.approx(whole, rel=0.15), document
    return document, used


def interrupts(document: Document) -> int:
    """Return ns in hard and soft interrupts."""
    return share(document, context="hardirq") + share(document, context="softirq")


@pytest.mark.parametrize("context", ["user", "syscall"])
def test_known_loops(n1: Node, context: str) -> None:
    """A loop's time is in its known context and belongs to the benchmark."""
    document, used = loop(n1, context)
    measured = share(document, context=context, owner="benchmark")
    assert 0.9 * used - 1.2 * interrupts(document) < measured < 1.2 * used, document


def test_known_softirq_work(n1: Node) -> None:
    """Local datagrams: sent in the network part of system calls, received in softirq."""
    document, used = loop(n1, "softirq")
    received = share(document, context="softirq.net_rx")
    assert share(document, context="softirq.net_rx", owner="network") == received
    assert received > 0.15 * used
    assert share(document, context="syscall", owner="network") > 0.1 * used


def test_rxe_moves_with_traffic(testbed: QemuTestbed) -> None:
    """Without traffic the driver has no time; 32 times the messages take more.

    A busy host stretches times of emulated processors, of one run more than of the other.
    """
    n1, n2 = testbed.nodes
    with rxecpu(n1, "--comm", "ib_send_bw") as idle:
        n1.run(["sleep", "1"])
    check_sums(idle)
    assert share(idle, owner="benchmark") == 0
    shares = []
    for messages in (100, 3200):
        with rxecpu(n1, "--comm", "ib_send_bw", "--device", DEVICE) as document:
            traffic.perftest("ib_send_bw", n1, n2, size=4096, iterations=messages)
        check_sums(document)
        shares.append(share(document, owner="rxe"))
        # the receive handler runs in softirq; the tasks in work items, on 6.1 in tasklets and calls
        assert sum(share(document, context=context, owner="rxe") for context in TASKS) > 0
        assert share(document, context="softirq.net_rx", owner="rxe") > 0
        assert share(document, owner="benchmark") > 0
    assert share(idle, owner="rxe") < 0.05 * shares[0]
    assert shares[1] > 2 * shares[0]


def test_tcp(testbed: QemuTestbed) -> None:
    """TCP's work belongs to the network stack, in calls and softirqs, and none to rxe."""
    n1, n2 = testbed.nodes
    command = ["qperf", "--listen_port", "19765"]
    with traffic.server(n2, command, port=19765):
        document, _ = of_command(n1, *command, n2.link.ipv4, "-t", "1", "tcp_bw")
    check_sums(document)
    assert share(document, owner="rxe") == 0
    assert share(document, context="syscall", owner="network") > 0
    assert share(document, context="softirq.net_rx", owner="network") > 0
    assert share(document, owner="benchmark") > 0


def stat(node: Node) -> dict[str, int]:
    """Return the first line of /proc/stat in ns."""
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    line = node.run(["head", "-n1", "/proc/stat"]).stdout.split()[1:]
    return {name: int(ticks) * 10_000_000 for name, ticks in zip(names, line, strict=False)}


def test_intervals_and_proc_stat(n1: Node) -> None:
    """The series adds up to the whole; /proc/stat agrees if its sum matches the wall clock.

    /proc/stat samples at ticks and loses some while an emulated processor stands still.
    """
    program = compile_program(n1, LOOP)
    with rxecpu(n1, "--interval", "200", "--comm", Path(program).name) as document:
        before = stat(n1)
        n1.run([program, "user", str(MILLISECONDS)])
        after = stat(n1)
    check_sums(document)
    intervals = document["intervals"]
    assert len(intervals) > 3
    assert sum(row["ns"] for step in intervals for row in step["rows"]) == sum(
        row["ns"] for row in document["rows"]
    )
    for first, second in itertools.pairwise(intervals):
        assert second["start_ns"] == first["start_ns"] + first["duration_ns"]
    assert sum(step["duration_ns"] for step in intervals) == document["duration_ns"]
    busy = [step for step in intervals if share(step, context="user", owner="benchmark")]
    assert len(busy) > 2, "the loop was over too soon to fall into several intervals"

    moved = {name: after[name] - before[name] for name in before}
    user = share(document, context="user") + share(document, context="fault")
    if sum(moved.values()) == pytest.approx(document["duration_ns"], rel=0.02):
        assert moved["user"] + moved["nice"] == pytest.approx(user, rel=0.3, abs=10 * TICK_NS)


def test_table(n1: Node) -> None:
    """The tables, in total, per CPU and per interval; the exit status is the command's."""
    done = n1.run(
        ["rxecpu", "-A", "-I", "100", "-c", "2", "--bpf-stats", "--", "sh", "-c", "exec sleep 1"],
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    for words in ("interval 2:", "CPU 0", "= busy", "idle", "accounted: all but", "own cost:"):
        assert words in done.stdout
    # an emulated processor has no shares of time
    tables, _, _ = done.stdout.partition("---")
    assert ("%" in tables) == ("emulated" not in done.stdout)
    assert re.search(r"task_switch +\d+ runs", done.stdout)
    failed = n1.run(["rxecpu", "sh", "-c", "exit 5"], check=False, timeout=180)
    assert failed.returncode == 5


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (("--pid", "none"), 2, "--pid takes process IDs, not: 'none'"),
        (("--pid", "4000000"), 3, "no process 4000000"),
        (("--cgroup", "/proc"), 3, "no cgroup '/proc'"),
        (("--device", "mlx5_0"), 3, "no RDMA device 'mlx5_0'"),
        (("--interval", "1"), 2, "--interval takes 10 to 86400000 (ms), not: '1'"),
        (("--count", "1"), 2, "--count needs --interval"),
    ],
)
def test_refusals(n1: Node, options: tuple[str, ...], status: int, words: str) -> None:
    """Impossible requests fail with what to do."""
    done = n1.run(["rxecpu", *options], check=False, timeout=180)
    assert (done.returncode, done.stdout) == (status, "")
    assert words in done.stderr


@contextmanager
def looping(node: Node, *prefix: str) -> Iterator[None]:
    """Run a loop while the context lasts."""
    process = node.start([*prefix, compile_program(node, LOOP), "user", "1000000"])
    try:
        yield
    finally:
        process.kill()


def test_benchmark_by_cgroup_pid_and_birth(n1: Node) -> None:
    """A cgroup, a process, or a command's children are the benchmark; no other task is."""
    n1.run(["sh", "-c", "mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup"])
    n1.run(["mkdir", "-p", f"{CGROUP}/inner"])
    into = ("sh", "-c", f'echo $$ > {CGROUP}/inner/cgroup.procs; exec "$0" "$@"')
    once = ("rxecpu", "--json", "--interval", "500", "--count", "1")
    with looping(n1, *into), looping(n1):
        n1.run(
            [
                "timeout",
                "60",
                "sh",
                "-c",
                f"until grep -q . {CGROUP}/inner/cgroup.procs; do sleep 0.05; done",
            ]
        )
        inside = n1.run(["cat", f"{CGROUP}/inner/cgroup.procs"]).stdout.split()[0]
        documents = [
            json.loads(n1.run([*once, *options], timeout=180).stdout)
            for options in (("--cgroup", CGROUP), ("--pid", inside), ())
        ]
    for document in documents:
        check_sums(document)
    by_cgroup, by_pid, nobody = documents
    for document in (by_cgroup, by_pid):
        # two loops share the CPU, one of them is the benchmark
        for owner in ("benchmark", "other"):
            assert share(document, context="user", owner=owner) > 0.1 * document["duration_ns"]
    assert (nobody["benchmark"], share(nobody, owner="benchmark")) == (False, 0)
    # a command's child
    child, _ = of_command(n1, "sh", "-c", f"{compile_program(n1, LOOP)} user 500; true")
    assert share(child, context="user", owner="benchmark") > 300_000_000


def test_stock_driver(testbed: QemuTestbed) -> None:
    """On the stock driver, work function and receive handler identify the driver's time."""
    n1, n2 = testbed.nodes
    prepare_node.install_driver(n1, artifacts.driver(LINE, "stock"))
    prepare_node.add_device(n1)
    try:
        with rxecpu(n1, "--comm", "ib_send_bw") as document:
            traffic.perftest("ib_send_bw", n1, n2, size=4096, iterations=200)
        refused = n1.run(["rxecpu", "--device", DEVICE], check=False, timeout=180)
        prepare_node.remove_device(n1)
        prepare_node.unload(n1)
        absent, _ = of_command(n1, "true")
    finally:
        prepare_node.install_driver(n1, artifacts.driver(LINE))
        prepare_node.add_device(n1)
    check_sums(document)
    assert document["driver"]["kind"] == "stock"
    assert document["missing"] == []
    assert sum(share(document, context=context, owner="rxe") for context in TASKS) > 0
    assert share(document, context="softirq.net_rx", owner="rxe") > 0
    assert refused.returncode == 3
    assert "the stock driver is loaded, whose events do not name the device" in refused.stderr
    check_sums(absent)
    assert absent["driver"]["kind"] == "absent"
    assert absent["missing"] == ["rxe.tasks", "rxe.receive"]
