# SPDX-License-Identifier: GPL-2.0-or-later
"""A task is preempted in rxestat's program, which the kernel then skips for the next one."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rocelab.testbed import artifacts
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import install_probes
from slowed_programs import slow
from veth_pair import PROGRAM, Pair, veth_pair
from vmlab import LINE, PATIENCE, boot_alone, healthy

CLIENTS, BATCHES, MAX_ROUNDS = 6, 100, 10
RAISE = "work_raise"
_PREEMPT = """
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
echo full >/sys/kernel/debug/sched/preempt
"""
_TRAFFIC = """
program=$1 clients=$2
shift 2
for i in $(seq $clients); do ACK_TIMEOUT=20 $program rxe_a rxe_b "$@" >/dev/null & done
wait
"""


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Two devices of a machine with one processor, whose kernel may preempt itself anywhere."""
    with boot_alone(name="preempted", vcpus=1) as machine, healthy([machine], "preempted"):
        install_probes(machine, [artifacts.probe("rxestat", LINE)])
        machine.run(["sh", "-c", _PREEMPT])
        with veth_pair(machine) as pair:
            yield pair


def skipped(node: Node) -> bool:
    """Whether the kernel has skipped the program that sees completions."""
    programs = json.loads(node.run(["bpftool", "-j", "prog", "show"]).stdout)
    (row,) = (row for row in programs if row.get("name") == RAISE)
    return bool(row.get("recursion_misses"))


def test_each_completion_is_counted_or_missed(pair: Pair) -> None:
    """What is counted, not followed and missed, which receives are, too, is all of it."""
    words = ["rc", "send", "64", str(BATCHES), "1", "v2-ipv4"]
    traffic = ["sh", "-c", _TRAFFIC, "sh", PROGRAM, str(CLIENTS), *words]
    stat = pair.node.start(["rxestat", "--json", "--work-requests", "--device", "rxe_a"])
    rounds = 0

    def provoke() -> None:
        nonlocal rounds
        while not skipped(pair.node):
            assert rounds < MAX_ROUNDS, f"the program was never preempted in {rounds} rounds"
            pair.node.run(traffic, timeout=300 * PATIENCE)
            rounds += 1

    try:
        stat.wait_for_line("rxestat: ready", timeout=120 * PATIENCE)
        slow(pair.node, RAISE, provoke)
        stat.interrupt()
        requests = json.loads(stat.wait(timeout=60).stdout)["work_requests"]
    finally:
        stat.kill()
    posted = rounds * CLIENTS * (BATCHES + 1)
    counted = sum(row["count"] for row in requests["latency"]) + requests["not_followed"]
    assert requests["missed"] > 0
    assert posted - requests["missed"] <= counted <= posted, requests
