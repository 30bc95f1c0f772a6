# SPDX-License-Identifier: GPL-2.0-or-later
"""A delay of known length in one stage shows in that stage and in no other.

The module is built with the test patch (VARIANT=delay); the events are those of the series.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from node_program import compile_program
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import DEVICE, add_device, install_driver, install_probes
from rxe_trace import PACKETS, STAGES, TRACING, Event, named, tracing
from rxecpu_watch import check_sums, rxecpu, share
from traffic import gid_index, server
from veth_pair import SOURCE
from vmlab import LINE, Boot, healthy

DELAY = 1_000_000
"""Length of the injected delay in ns: long compared with an emulated stage and its noise."""
PARAMETERS = "/sys/module/rdma_rxe/parameters"
SEND, ACK = "RC_SEND_ONLY", "RC_ACKNOWLEDGE"
EVENT = {"tx": "rxe_tx_packet", "rx": "rxe_rx_packet", "done": "rxe_rx_done"}

NOT_OURS_ALONE = {"queue", "reply"}
"""Stages that contain what others do: a packet waits in the queue for whoever has the CPU, and a
reply contains the hand-over to the (emulated) network device."""

Place = tuple[str, str, str]
"""Event, opcode, stage."""


@dataclass(frozen=True)
class Nodes:
    """Two nodes with the delayed driver; the delay is on the first."""

    n1: Node
    n2: Node

    def inject(self, stage: str) -> None:
        """Choose the delayed stage, or `off`."""
        self.n1.run(["tee", f"{PARAMETERS}/delay_stage"], stdin=f"{stage}\n")

    def trace(self, stage: str, iterations: int, *more: str) -> list[Event]:
        """The first node's packets of a ping-pong, which sleeps while it waits."""
        common = ["ibv_rc_pingpong", "-d", DEVICE, "-s", "256", "-n", str(iterations), "-e"]
        self.inject(stage)
        try:
            with (
                tracing(self.n1, *PACKETS, *more) as trace,
                server(self.n2, [*common, "-g", gid_index(self.n2)]),
            ):
                self.n1.run([*common, "-g", gid_index(self.n1), self.n2.link.ipv4], timeout=120)
        finally:
            self.inject("off")
        return trace.events

    def measure(self, stage: str) -> dict[Place, int]:
        """Shortest ns of each stage of each kind of packet on the first node.

        The shortest, because nothing shortens a delay, while interrupts and the emulated device
        lengthen a stage at random.
        """
        times: dict[Place, list[int]] = defaultdict(list)
        for event in self.trace(stage, 40):
            for name, ns in event.stages().items():
                times[event.name, event["op"], name].append(ns)
        assert {op for _, op, _ in times} == {SEND, ACK}
        assert min(len(values) for values in times.values()) >= 20
        # 0: the packet had no such stage (a repeated request has no completion, for example)
        return {
            place: min((ns for ns in values if ns), default=0) for place, values in times.items()
        }


@pytest.fixture(scope="module")
def nodes(boot: Boot) -> Iterator[Nodes]:
    """Two nodes with the delayed driver and a device each."""
    with boot(name="delay", prepared=False) as testbed:
        driver = artifacts.driver(LINE, "delay")
        for node in testbed.nodes:
            install_driver(node, driver)
            add_device(node)
        n1, n2 = testbed.nodes
        n1.run(["tee", f"{PARAMETERS}/delay_ns"], stdin=f"{DELAY}\n")
        yield Nodes(n1, n2)


@pytest.fixture(scope="module")
def undelayed(nodes: Nodes) -> dict[Place, int]:
    """The stages without a delay: the shortest of two runs, since a long one hides a delay."""
    first, second = nodes.measure("off"), nodes.measure("off")
    return {place: min(first[place], second[place]) for place in first}


def delayed_places(part: str, stage: str) -> set[Place]:
    """Return the stages in which an injected delay must show."""
    only_sends = {("tx", "wqe"), ("done", "copy"), ("done", "reply")}
    packets = {SEND} if (part, stage) in only_sends else {SEND, ACK}
    places = {(EVENT[part], op, stage) for op in packets}
    if part == "tx" and stage != "wqe":
        # by definition: the reply to a packet is the sending of its answer
        places.add((EVENT["done"], SEND, "reply"))
    return places


@pytest.mark.parametrize(
    ("part", "stage"),
    [(part, stage) for part, event in EVENT.items() for stage in STAGES[event]],
)
def test_delay(nodes: Nodes, undelayed: dict[Place, int], part: str, stage: str) -> None:
    """The stage grows by the delay; all others stay the same."""
    with healthy([nodes.n1, nodes.n2], f"delay in {part}.{stage}"):
        delayed = nodes.measure(f"{part}.{stage}")
    expected = delayed_places(part, stage)
    assert expected <= delayed.keys()
    for place, shortest in delayed.items():
        grown = shortest - undelayed[place]
        if place in expected:
            assert grown >= DELAY * 0.95, f"{place} grew by {grown} ns"
        if place[2] in NOT_OURS_ALONE:
            continue
        if place in expected:
            assert grown <= DELAY * 1.3, f"{place} grew by {grown} ns"
        else:
            assert abs(grown) < DELAY * 0.1, f"{place} changed by {grown} ns"


LONG = 20_000_000
"""A delay of several ticks: a preemptive scheduler will preempt it."""
PREEMPT = "/sys/kernel/debug/sched/preempt"


def test_switched_packets_are_flagged(nodes: Nodes) -> None:
    """The flag `switched` agrees with the scheduler's events."""
    n1 = nodes.n1
    mode = re.search(r"\((\w+)\)", n1.run(["cat", PREEMPT]).stdout)
    assert mode
    n1.run(["tee", PREEMPT], stdin="full\n")
    n1.run(["tee", f"{PARAMETERS}/delay_ns"], stdin=f"{LONG}\n")
    rival = n1.start(["sh", "-c", "while :; do :; done"])
    try:
        events = nodes.trace("tx.icrc", 20, "sched/sched_switch")
    finally:
        rival.kill()
        n1.run(["tee", f"{PARAMETERS}/delay_ns"], stdin=f"{DELAY}\n")
        n1.run(["tee", PREEMPT], stdin=f"{mode[1]}\n")
    switches = defaultdict(list)
    for event in named(events, "sched_switch"):
        switches[event.number("prev_pid")].append(event.time_us)
    flagged = 0
    for packet in named(events, EVENT["tx"]):
        # the trace has whole microseconds
        begin = packet.number("begin") // 1000
        end = (packet.number("begin") + sum(packet.stages().values())) // 1000
        inside = [time for time in switches[packet.pid] if begin < time < end]
        on_edge = [time for time in switches[packet.pid] if time in (begin, end)]
        flags = packet["flags"].split("|")
        assert on_edge or bool(inside) == ("switched" in flags), packet
        # it was preempted
        assert "slept" not in flags, packet
        flagged += bool(inside)
    assert flagged, "no task was switched out"


# In one program on the node, because the delay is not long: $1 tracefs, $2 parameters, $3 what to
# do once the first packet is in stage rx.parse, $4 what to do while it is in its queue.
_IN_MID_PACKET = """
set -e
cd "$1"
sent() { grep -c rxe_tx_packet trace || :; }
received() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts; }
before=$(received)
"$5" rxe0 rxe0 ud send 64 0 8 >/dev/null &
while [ "$(sent)" = 0 ]; do :; done
echo done.queue >"$2/delay_stage"
eval "$3"
while [ "$(received)" = "$before" ]; do :; done
eval "$4"
echo off >"$2/delay_stage"
wait $!
"""
OFF, ON = (f"echo {value} >events/rxe/rxe_rx_stamps/enable" for value in (0, 1))


@pytest.fixture
def received(nodes: Nodes) -> Iterator[Callable[[str, str], list[Event]]]:
    """Do something as the first of 8 packets arrives, and as it waits; their records."""
    n1 = nodes.n1
    mode = re.search(r"\((\w+)\)", n1.run(["cat", PREEMPT]).stdout)
    assert mode
    program = compile_program(n1, SOURCE, "-libverbs")

    def records(parsing: str, queued: str) -> list[Event]:
        with tracing(n1, "rxe_tx_packet", "rxe_rx_done", "rxe_rx_stamps") as trace:
            nodes.inject("rx.parse")
            words = [TRACING, PARAMETERS, parsing, queued, program]
            n1.run(["sh", "-c", _IN_MID_PACKET, "sh", *words], timeout=120)
        return trace.named("rxe_rx_stamps")

    n1.run(["tee", PREEMPT], stdin="full\n")
    n1.run(["tee", f"{PARAMETERS}/delay_ns"], stdin=f"{100 * LONG}\n")
    try:
        yield records
    finally:
        nodes.inject("off")
        n1.run(["tee", f"{PARAMETERS}/delay_ns"], stdin=f"{DELAY}\n")
        n1.run(["tee", PREEMPT], stdin=f"{mode[1]}\n")


in_the_sender = pytest.mark.skipif(LINE == "6.1", reason="tasklets cannot be preempted")


@in_the_sender
def test_an_arrival_without_end_has_no_record(
    received: Callable[[str, str], list[Event]],
) -> None:
    """The events go off while a packet arrives, and come on again while it waits."""
    flags = [set(event["flags"].split("|")) for event in received(OFF, ON)]
    assert len(flags) == 8
    assert all("done" in packet for packet in flags)
    assert "arrived" not in flags[0]
    assert "arrived" in flags[-1]


@in_the_sender
def test_a_suspended_system_is_no_wait(received: Callable[[str, str], list[Event]]) -> None:
    """A packet that waits while the system is suspended has no record; a later one has."""
    suspend = """
        echo 1 >/sys/module/suspend/parameters/pm_test_delay
        echo freezer >/sys/power/pm_test
        echo freeze >/sys/power/state
    """
    first, *_, last = (event.number("psn") for event in received(":", ":"))
    assert last == first + 7
    recorded = [event.number("psn") for event in received(":", suspend)]
    assert first not in recorded
    assert last in recorded


def test_bad_stage_is_refused(nodes: Nodes) -> None:
    """An unknown stage is an error and not ignored."""
    done = nodes.n1.run(["tee", f"{PARAMETERS}/delay_stage"], stdin="tx.nosuch\n", check=False)
    assert done.returncode != 0
    assert nodes.n1.run(["cat", f"{PARAMETERS}/delay_stage"]).stdout == "off\n"


# the network's cleaning up is work for the kernel threads that the driver's tasks run in, too
_NAMESPACES = """
end=$(($(date +%s) + 3))
while [ $(date +%s) -lt $end ]; do ip netns add short; ip netns del short; done
"""


@pytest.mark.distribution
def test_missed_task_ends(nodes: Nodes) -> None:
    """rxecpu misses each end of a task: the thread's next work is not the driver's for that."""
    argv = ["ibv_rc_pingpong", "-d", DEVICE, "-s", "256", "-n", "200", "-e"]
    parameter = f"{PARAMETERS}/miss_task_ends"
    install_probes(nodes.n1, [artifacts.probe("rxecpu", LINE)])
    nodes.n1.run(["tee", parameter], stdin="Y\n")
    try:
        with rxecpu(nodes.n1, "--interval", "500") as document:
            with server(nodes.n2, [*argv, "-g", gid_index(nodes.n2)]):
                nodes.n1.run([*argv, "-g", gid_index(nodes.n1), nodes.n2.link.ipv4], timeout=120)
            nodes.n1.run(["sh", "-c", _NAMESPACES], timeout=120)
    finally:
        nodes.n1.run(["tee", parameter], stdin="N\n")
    check_sums(document)
    assert share(document, owner="rxe") > 0
    # the last ones, behind the traffic
    for interval in document["intervals"][-3:-1]:
        assert share(interval, context="kthread") > 0
        assert share(interval, context="kthread", owner="rxe") == 0
