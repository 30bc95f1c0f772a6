# SPDX-License-Identifier: GPL-2.0-or-later
"""rxecpu's stacks name the code that ran, slept and waited, and add up to the accounts."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import traffic
from node_program import compile_program
from rocelab.testbed.node.prepare_node import DEVICE
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rxecpu_watch import check_sums, share
from vmlab import LINE

LOOP = Path(__file__).with_name("cpu_loop.c")
FILE = "/tmp/rxecpu.folded"


def folded(text: str) -> Counter[tuple[str, ...]]:
    """The stacks by their frames, in microseconds; every line is one that flamegraph.pl reads."""
    counts: Counter[tuple[str, ...]] = Counter()
    for line in text.splitlines():
        match = re.fullmatch(r"([^ \x00-\x1f]+) (\d+)", line)
        assert match, line
        counts[tuple(match[1].split(";"))] += int(match[2])
    return counts


def whole(stacks: Counter[tuple[str, ...]], *frames: str) -> int:
    """Microseconds of stacks that begin with these frames."""
    return sum(us for stack, us in stacks.items() if stack[: len(frames)] == frames)


def said(stacks: Counter[tuple[str, ...]]) -> str:
    """The longest stacks, for a failure."""
    return "\n".join(f"{';'.join(stack)} {us}" for stack, us in stacks.most_common(40))


def test_stacks_of_a_message(testbed: QemuTestbed) -> None:
    """Of a ping-pong: the driver's work, what the benchmark slept in, and its worker's wait."""
    n1, n2 = testbed.nodes
    command = ["rxecpu", "--json", "--comm", "ib_send_lat,cpu_loop", "--stacks", FILE]
    process = n1.start([*command, "--device", DEVICE])
    try:
        process.wait_for_line("rxecpu: ready", timeout=180)
        loop = compile_program(n1, LOOP)
        n1.run([loop, "user", "700"])
        traffic.perftest("ib_send_lat", n1, n2, size=4096, iterations=400)
        process.interrupt()
        done = process.wait(timeout=120)
        assert done.returncode == 0, done.stderr
    finally:
        process.kill()
    document = json.loads(done.stdout)
    check_sums(document)
    stacks = folded(n1.run(["cat", FILE]).stdout)
    lost = sum(us for stack, us in stacks.items() if "[lost]" in stack)
    assert lost < 0.05 * stacks.total(), said(stacks)
    assert (document["stacks_lost"] == 0) <= (lost == 0)
    # a loop of known length, however late the sampling timer fires
    name = Path(loop).name[:15]
    in_loop = sum(us for stack, us in stacks.items() if stack[0] == "running" and name in stack)
    assert 0.6 * 700_000 < in_loop < 1.5 * 700_000, said(stacks)
    assert any(re.match(re.escape(Path(loop).name) + r"\+0x", f) for s in stacks for f in s), said(
        stacks
    )
    # the stacks of an account add up to the account, but for rounding
    for context, owner in {(row["context"], row["owner"]) for row in document["rows"]}:
        if context != "idle":
            summed = whole(stacks, "running", context, owner)
            exact = share(document, context=context, owner=owner) / 1000
            assert abs(summed - exact) <= 2 + len(stacks), (context, owner, said(stacks))
    # and few of the tasks' and softirqs' time is left without a stack
    unsampled = sum(us for stack, us in stacks.items() if stack[-1] == "[no_sample]")
    assert abs(unsampled - document["unsampled_ns"] / 1000) <= 2 + len(stacks)
    busy = share(document) - sum(share(document, context=c) for c in ("idle", "hardirq"))
    outside = unsampled - whole(stacks, "running", "hardirq")
    assert outside * 1000 < 0.2 * busy, said(stacks)
    # the driver by name, for the driver
    driver = {f for stack in stacks for f in stack if "rxe" in f and stack[2] == "rxe"}
    assert any(frame.startswith("rxe_") for frame in driver), said(stacks)
    # the benchmark polls: it never sleeps for long, but it waits for its turn on one CPU
    assert whole(stacks, "runnable") > 0
    # in a socket's call it waits for the network, as in the table
    blocked = {stack[2] for stack in stacks if stack[0] == "blocked"}
    assert blocked <= {"benchmark", "rxe", "network"}, said(stacks)
    waits = {row["waiter"]: row for row in document["run_queue"]}
    if LINE != "6.1":  # there the driver's tasks are tasklets, which have no run queue
        assert waits["rxe"]["count"] > 0
        assert 0 < waits["rxe"]["max_ns"] <= waits["rxe"]["sum_ns"]


def test_off_cpu_time(testbed: QemuTestbed) -> None:
    """A sleeper is blocked in its sleep for as long as it slept."""
    n1, _ = testbed.nodes
    done = n1.run(["rxecpu", "--stacks", FILE, "sh", "-c", "sleep 0.7; exit 3"], check=False)
    assert done.returncode == 3
    stacks = folded(n1.run(["cat", FILE]).stdout)
    asleep = [
        us
        for stack, us in stacks.items()
        if stack[:4] == ("blocked", "syscall", "benchmark", "sleep")
        and any("nanosleep" in frame for frame in stack)
    ]
    assert sum(asleep) >= 690_000, said(stacks)
    # the shell waits for its child as long, and the wait lasts until the end or nearly so
    waits = [us for stack, us in stacks.items() if any("do_wait" in frame for frame in stack)]
    assert sum(waits) >= 690_000, said(stacks)
    refused = n1.run(["rxecpu", "--stacks", "/nonexistent/x", "true"], check=False)
    assert refused.returncode == 2
    assert "cannot write /nonexistent/x" in refused.stderr


def test_a_kernel_that_keeps_less_of_a_stack(testbed: QemuTestbed) -> None:
    """The kernel refuses a map of whole stacks: rxecpu says why, and what to do."""
    (node, _) = testbed.nodes
    name = "kernel.perf_event_max_stack"
    before = node.run(["sysctl", "-n", name]).stdout.strip()
    try:
        node.run(["sysctl", "-q", "-w", f"{name}=64"])
        done = node.run(["rxecpu", "--stacks", FILE, "true"], check=False, timeout=120)
    finally:
        node.run(["sysctl", "-q", "-w", f"{name}={before}"])
    assert done.returncode == 3, done.stderr
    assert f"cannot record stacks: {name} is 64" in done.stderr
    assert f"sysctl {name}=127" in done.stderr
