# SPDX-License-Identifier: GPL-2.0-or-later
"""Work of a known size shows in its owner's part of a message's cost, or in the start, only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import changed_pingpong
import vmlab
from message_cost import Costs, measure
from rocelab import metrics
from rocelab.testbed import artifacts
from rocelab.testbed.interface import Testbed
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import (
    add_device,
    install_driver,
    install_probes,
    remove_device,
)

COUNT = 1200
INJECTED = 10_000
"""Instructions a message of the benchmark, and ns a packet of the driver."""
FILTERS, FILTERED = 5, 1900
"""Classifiers of the interface, and instructions a packet in each: additions, which the kernel's
compiler translates one to one."""
START = 200_000_000
"""Of the client: the server's start is over when the measurement begins. Two starts of the same
program differ by up to 3 million instructions."""
OFF = 0.06
"""What two measurements may differ by. The driver's delay is late by half a reading of the clock,
and an interrupt's first instructions belong to what it interrupts."""
PACKETS = 2
"""Of a message: itself and its acknowledgement."""
ROUND = 100
"""Instructions of a round of `burn`: QEMU's plugin of lockstep is called for each."""
BURN = f"""
static void burn(unsigned long instructions)
{{
	unsigned long left = instructions / {ROUND};

	__asm__ volatile("1: .rept {ROUND - 2}; nop; .endr; dec %0; jnz 1b" : "+r"(left) : : "cc");
}}
"""


def filter_packets(nodes: Sequence[Node], instructions: int) -> None:
    """Let each packet that arrives pass the classifiers, of that many additions each."""
    # BPF_ALU | BPF_ADD | BPF_K, and BPF_RET of 0: no match, so the next one is asked
    program = [*["4 0 0 1"] * instructions, "6 0 0 0"]
    text = ",".join([str(len(program)), *program])
    for node in nodes:
        egress = ["dev", node.link.netdev, "ingress"]
        node.run(["tc", "qdisc", "replace", "dev", node.link.netdev, "clsact"])
        node.run(["tc", "filter", "del", *egress])
        node.run(["tee", "/tmp/classifier"], stdin=text)
        for number in range(1, FILTERS + 1):
            kind = ["pref", str(number), "bpf", "bytecode-file", "/tmp/classifier"]
            node.run(["tc", "filter", "add", *egress, *kind])


def delay(nodes: Sequence[Node], stage: str) -> None:
    for node in nodes:
        for name, value in (("delay_ns", str(INJECTED)), ("delay_stage", stage)):
            node.run(["tee", f"/sys/module/rdma_rxe/parameters/{name}"], stdin=f"{value}\n")


@pytest.fixture
def delayed(boot: vmlab.Boot) -> Iterator[Testbed]:
    """Nodes in lockstep, where the host decides of no frame when it comes; drivers are delayed."""
    with boot(name="injected", prepared=True, lockstep=True) as testbed:
        for node in testbed.nodes:
            remove_device(node)
            install_driver(node, artifacts.driver(vmlab.LINE, "delay"))
            add_device(node)
            install_probes(node, [artifacts.pingpong(vmlab.LINE)])
        yield testbed


def parts(costs: Costs) -> dict[str, float]:
    """A message's cost over RoCE v2 by owner, instructions; the program's user mode apart."""
    by_part: dict[str, float] = defaultdict(float)
    for (context, owner), value in costs.accounts("rxe-v2").items():
        by_part["program" if context == "user" else owner] += value
    return by_part


def run_both(testbed: Testbed, tmp_path: Path) -> list[Costs]:
    """Measure a message without and with what is injected."""
    runs = []
    for name, work, additions, stage, start in (
        ("plain", ROUND, 1, "off", ROUND),
        ("more", ROUND + INJECTED, FILTERED, "tx.icrc", ROUND + START),
    ):
        source = changed_pingpong.write(tmp_path / name, BURN, work, start)
        changed_pingpong.install(testbed.nodes, source)
        filter_packets(testbed.nodes, additions)
        delay(testbed.nodes, stage)
        words = {"transports": '["rxe-v2"]', "count": COUNT, "probes": '["rxestat", "rxecpu"]'}
        runs.append(measure(testbed, tmp_path / f"{name}-run", "latency", name=name, **words))
    return runs


def growth(runs: Sequence[Costs]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the parts of the plain message, and by how much each grew."""
    plain, more = map(parts, runs)
    return plain, {name: more[name] - plain[name] for name in plain}


def test_each_owner_has_what_was_injected_into_it(delayed: Testbed, tmp_path: Path) -> None:
    """The scheduler's and the idle loop's part falls: who works longer finds the next packet there
    already, and sleeps less often. But it also has what a machine does once in a while, such as
    the return of freed pages, which can be 2,000 a message of one pass: that does not come again.
    """
    runs = run_both(delayed, tmp_path / "first")
    plain, grown = growth(runs)
    if grown["other"] >= OFF * plain["other"]:
        runs = run_both(delayed, tmp_path / "second")
        plain, grown = growth(runs)
    assert grown["other"] < OFF * plain["other"], grown
    assert grown["program"] == pytest.approx(INJECTED, rel=OFF), grown
    assert grown["network"] == pytest.approx(PACKETS * FILTERS * FILTERED, rel=OFF), grown
    assert grown["rxe"] == pytest.approx(PACKETS * INJECTED, rel=OFF), grown
    assert abs(grown["benchmark"]) < OFF * plain["benchmark"], grown
    started = [each.of("rxe-v2", metrics.MESSAGE_COST, metrics.START) for each in runs]
    assert started[1] - started[0] == pytest.approx(START, rel=OFF)
