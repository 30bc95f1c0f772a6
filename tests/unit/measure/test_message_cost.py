# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of a message is the slope over counts of messages, net of the probes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import cast

import pytest

from rocelab import metrics
from rocelab.errors import UsageError
from rocelab.measure import machine_work, message_cost
from rocelab.measure.message_cost import Point, Watched
from rocelab.plans import plan_file
from rocelab.plans.plan import Cell
from rocelab.record.rxecpu_document import Account, Split
from rocelab.testbed.node import Completed, Node

FEW, MANY, HALF = 200, 1600, 800
START, COST = 50_000_000, 33_000
EVENTS = {("rxe", "kthread"): 4, ("network", "softirq"): 6, ("benchmark", "syscall"): 8}
PARTS = {("rxe", "kthread"): 20_000, ("network", "softirq"): 9_000, ("benchmark", "syscall"): 3_000}
IDLE_LOOP = COST - sum(PARTS.values())
IDLE_EVENTS = 2
EVENT, STATED = 320, 116
"""What an event takes, with and without the way to its program."""


def point(messages: int, *, start: int = START, each: int = COST) -> Point:
    return Point(messages, start + each * messages)


def watched(messages: int, polls: int = 0) -> Watched:
    """Each owner's part contains its events; `polls`: what another program did meanwhile."""
    busy: dict[Account, int] = {("other", "user"): 0}
    busy = {
        (context, owner): messages * (ns + EVENT * EVENTS[owner, context])
        for (owner, context), ns in PARTS.items()
    }
    busy["user", "other"] = polls
    stretches = {(c, o): messages * count for (o, c), count in EVENTS.items()}
    idle = messages * (IDLE_LOOP + EVENT * IDLE_EVENTS)
    work = START + sum(busy.values()) + idle - polls
    split = Split(1, 1, 0, busy, 0, 0, 0, STATED, stretches, IDLE_EVENTS * messages)
    return Watched(Point(messages, work), split)


def by_kind(few: Point, many: Point, half: Point | None) -> dict[str, float]:
    return {value.kind: value.value for value in message_cost.values(few, many, half)}


def test_slope_and_start() -> None:
    costs = by_kind(point(FEW), point(MANY), point(HALF))
    assert costs[metrics.MARGINAL] == pytest.approx(COST)
    assert costs[metrics.START] == pytest.approx(START)
    assert costs[metrics.RESIDUAL] == pytest.approx(0, abs=1e-9)


def test_a_longer_start_is_no_cost_of_a_message() -> None:
    costs = by_kind(*(point(n, start=START + 50_000_000) for n in (FEW, MANY, HALF)))
    assert costs[metrics.MARGINAL] == pytest.approx(COST)
    assert costs[metrics.START] == pytest.approx(START + 50_000_000)


def test_what_is_not_linear_says_so() -> None:
    """A tenth more work in half of the messages, as if caches were cold."""
    off = dataclasses.replace(point(HALF), work=point(HALF).work + COST * (MANY - FEW) // 10)
    assert by_kind(point(FEW), point(MANY), off)[metrics.RESIDUAL] == pytest.approx(0.1)


def test_no_cost_from_no_line() -> None:
    assert not list(message_cost.values(point(MANY), point(MANY), None))


def test_a_slope_below_0_is_kept() -> None:
    """A pass was disturbed. Leaving such repetitions out would raise the mean of the others."""
    costs = by_kind(point(FEW, start=10**12), point(MANY), point(HALF))
    assert costs[metrics.MARGINAL] < 0
    assert metrics.RESIDUAL not in costs


def test_parts_are_net_and_add_up() -> None:
    values = list(message_cost.parts(watched(FEW), watched(MANY, polls=9_000_000), COST))
    cost = {value.metric: value.value for value in values}
    added = EVENT * (sum(EVENTS.values()) + IDLE_EVENTS)
    assert cost.pop(metrics.WATCHING_COST) == pytest.approx(added)
    for (owner, context), ns in PARTS.items():
        assert cost[metrics.Account(context, owner).name] == pytest.approx(ns)
    assert cost[metrics.Account(*message_cost.IDLE_LOOP).name] == pytest.approx(IDLE_LOOP)
    assert sum(cost.values()) == pytest.approx(COST)


def test_a_part_with_many_cheap_events_is_not_below_0() -> None:
    """What its events cannot have cost is taken from the other parts."""
    few, many = (watched(messages) for messages in (FEW, MANY))
    for one in (few, many):
        one.split.stretches["syscall", "network"] = 7 * one.point.messages
        one.split.busy["syscall", "network"] = 100 * one.point.messages
    values = list(message_cost.parts(few, many, COST))
    net = {v.metric: v.value for v in values if v.metric != metrics.WATCHING_COST}
    assert net[metrics.Account("syscall", "network").name] == 0
    assert min(net.values()) >= 0
    assert sum(net.values()) == pytest.approx(COST)


@pytest.mark.parametrize("unwatched", [2 * COST, 1.0])
def test_parts_add_up_whatever_watching_adds(unwatched: float) -> None:
    """Less than nothing, where the host disturbed the pass without probes; or all of it."""
    values = list(message_cost.parts(watched(FEW), watched(MANY), unwatched))
    net = [v.value for v in values if v.metric != metrics.WATCHING_COST]
    assert sum(net) == pytest.approx(unwatched)


def test_rxestat_is_taken_from_the_driver() -> None:
    first, last = watched(FEW), watched(MANY)
    stat = 3_000
    first, last = (
        dataclasses.replace(
            one,
            rxestat_ns=stat * one.point.messages,
            point=Point(one.point.messages, one.point.work + stat * one.point.messages),
        )
        for one in (first, last)
    )
    for one in (first, last):
        busy = dict(one.split.busy)
        busy["kthread", "rxe"] += stat * one.point.messages
        object.__setattr__(one.split, "busy", busy)
    cost = {v.metric: v.value for v in message_cost.parts(first, last, COST)}
    cost.pop(metrics.WATCHING_COST)
    assert sum(cost.values()) == pytest.approx(COST)
    driver = cost[metrics.Account("kthread", "rxe").name]
    assert driver == pytest.approx(PARTS["rxe", "kthread"], rel=0.15)


@pytest.mark.parametrize("by_calls", [False, True])
def test_a_program_that_polls_has_its_kernel_s_part(by_calls: bool) -> None:
    """Net of what the probes state of themselves; neither user mode nor others' work is in it."""
    few, many = watched(FEW).split, watched(MANY).split
    for split, spin in ((few, 7_000_000), (many, 900_000_000)):
        busy = {**split.busy, ("user", "benchmark"): spin, ("kthread", "other"): spin}
        object.__setattr__(split, "busy", busy)
    stat = 3_000.0
    costs = {
        (value.metric, value.kind): value.value
        for value in message_cost.in_kernel(few, many, MANY - FEW, stat, polls_by_calls=by_calls)
    }
    assert costs == {
        (metrics.Account(context, owner).name, metrics.KERNEL_MARGINAL): pytest.approx(
            ns + (EVENT - STATED) * EVENTS[owner, context] - (stat if owner == "rxe" else 0)
        )
        for (owner, context), ns in PARTS.items()
        if owner != "benchmark" or not by_calls
    }


@pytest.mark.parametrize("size", [0, 500])
def test_the_kernel_s_part_of_a_message_and_of_a_mb(size: int) -> None:
    """Of whoever works for messages; not the program itself, nor the idle loop."""
    values = list(message_cost.parts(watched(FEW), watched(MANY), COST))
    kernel = {value.metric: value.value for value in message_cost.of_kernel(values, size)}
    each = pytest.approx(sum(PARTS.values()))
    assert kernel.pop("cpu.per_message") == each
    assert kernel == ({"cpu.per_mb": pytest.approx(sum(PARTS.values()) * 2000)} if size else {})
    assert not list(message_cost.of_kernel([], size))


TIMER_LIST = """now at 16408262961 nsecs
  .tick_stopped   : 0
  .idle_entrytime : 16400000000 nsecs
  .idle_sleeptime : 14000000000 nsecs
  .iowait_sleeptime: 25000000 nsecs
  .tick_stopped   : {stopped}
  .idle_entrytime : 16400000000 nsecs
  .idle_sleeptime : 15000000000 nsecs
  .iowait_sleeptime: 0 nsecs
"""


@pytest.mark.parametrize("stopped", [0, 1])
def test_idle_time_is_of_all_processors(stopped: int) -> None:
    """A processor that is idle now, with its tick stopped, has been so since its entry."""
    work = machine_work.parse(TIMER_LIST.format(stopped=stopped))
    assert work is not None
    assert (work.now, work.processors) == (16408262961, 2)
    assert work.idle == 29025000000 + stopped * 8262961


STAT = """now at 9000000000 nsecs
cpu  100 0 60 1400 5 0 3 0 0 0
cpu0 50 0 30 700 5 0 3 0 0 0
cpu1 50 0 30 700 0 0 0 0 0 0
"""


def test_a_kernel_that_tells_ticks_only() -> None:
    """Linux 7.x; user, nice and system come before what is idle and waits for a disk."""
    work = machine_work.parse(STAT)
    assert work is not None
    assert (work.idle, work.processors) == (1405 * 10**7, 2)
    assert work.step_ns == 2 * 10**7


@pytest.mark.parametrize("text", ["", "now at 1 nsecs\n", "  .idle_sleeptime : 1 nsecs\n"])
def test_a_kernel_without_that_account(text: str) -> None:
    assert machine_work.parse(text) is None


class Machine:
    """One processor, which works half of the time before the benchmark, and then all of it."""

    name, has_root = "n1", True

    def __init__(self) -> None:
        self.readings = [(0, 0), (200_000_000, 100_000_000), (10**9, 10**8), (3 * 10**9, 10**8)]
        self.slept: list[str] = []

    @property
    def root(self) -> Machine:
        return self

    def run(self, argv: Sequence[str], *, check: bool = True) -> Completed:
        assert not check or argv[0] == "sleep"
        if argv[0] == "sleep":
            self.slept.append(argv[1])
            return Completed(tuple(argv), 0, "", "")
        now, idle = self.readings.pop(0)
        return Completed(tuple(argv), 0, f"now at {now} nsecs\n  .idle_sleeptime : {idle}\n", "")


def test_others_are_counted_before_the_benchmark() -> None:
    machine, work, others = Machine(), dict[str, machine_work.Work](), dict[str, float]()
    with machine_work.count_work(cast("list[Node]", [machine]), work, others):
        assert (others, machine.slept) == ({"n1": 0.5}, ["0.2"])
    assert work == {"n1": machine_work.Work(2 * 10**9)}


def test_nobody_looks_where_nothing_else_runs() -> None:
    machine, work = Machine(), dict[str, machine_work.Work]()
    with machine_work.count_work(cast("list[Node]", [machine]), work):
        pass
    assert (work, machine.slept) == ({"n1": machine_work.Work(100_000_000)}, [])


PLAN = """
[plan]
name = "p"
transports = ["rxe-v2", "tcp"]
probes = {probes}
[[benchmark]]
tool = "{tool}"
test = "{test}"
sizes = [64]
{more}
"""


def cells(tool: str, test: str, more: str, probes: str) -> list[Cell]:
    plan = plan_file.from_toml(PLAN.format(tool=tool, test=test, more=more, probes=probes), "p")
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    return [cell for cell in plan.cells() if cell.repetition == 1]


def has_cost(
    tool: str = "pingpong", test: str = "latency", more: str = "", probes: str = '["rxecpu"]'
) -> list[bool]:
    return [cell.has_message_cost for cell in cells(tool, test, more, probes)]


def test_where_it_is_measured() -> None:
    assert has_cost() == [True, True]
    by_events = "events = true"
    assert sorted(has_cost("perftest", "send_lat", by_events)) == [False, True]
    assert has_cost("perftest", "send_lat") == [False, False]  # polls
    assert has_cost(more="message_cost = false") == [False, False]
    assert has_cost(more="iterations = 100") == [False, False]
    assert has_cost(probes='["rxestat"]') == [False, False]
    assert has_cost(probes="[]", more="message_cost = true") == [True, True]
    polls = "message_cost = true\niterations = 1000"
    assert sorted(has_cost("perftest", "send_lat", polls)) == [False, True]
    assert has_cost("mpibench", "latency", polls) == [True, True]


def test_tools_that_send_for_a_time() -> None:
    """What qperf sends in an eighth of the time is fewer messages, if that is a second."""
    assert has_cost("perftest", "send_lat", "events = true\nseconds = 4") == [True, True]
    only_tcp = 'transports = ["tcp"]\n'
    assert has_cost("qperf", "tcp_lat", f"{only_tcp}seconds = 4") == [True]
    assert has_cost("qperf", "tcp_lat", only_tcp) == [False]
    assert has_cost("iperf3", "tcp_bw", only_tcp) == [False]  # by count only if asked
    assert has_cost("iperf3", "tcp_bw", f"{only_tcp}message_cost = true") == [True]


def test_parts_of_a_time() -> None:
    text = 'transports = ["tcp"]\nmessage_cost = true\nseconds = 12'
    (cell,) = cells("qperf", "tcp_lat", text, "[]")
    assert [cell.with_part(part).benchmark.seconds for part in (1, 2, 8)] == [12, 6, 1]
    assert cell.is_timed
    (counted,) = cells("iperf3", "tcp_bw", text, '["rxecpu"]')
    assert not counted.is_timed
    assert (cell.sleeps, counted.sleeps, counted.benchmark.waits_by_calls) == (True, False, True)


@pytest.mark.parametrize(
    ("tool", "test", "more", "why"),
    [
        ("omb", "latency", "", "it takes a tool that counts its messages"),
        ("perftest", "send_lat", "PROBES []", "send_lat polls"),
        ("pingpong", "polled_latency", "PROBES []", "polled_latency polls"),
        ("iperf3", "tcp_bw", 'transports = ["tcp"]\nPROBES []', "tcp_bw polls"),
        ("pingpong", "latency", "iterations = 100", "100 iterations are too few to tell"),
        (
            "qperf",
            "tcp_lat",
            'transports = ["tcp"]\nseconds = 3',
            "3 seconds are too few to tell",
        ),
    ],
)
def test_where_it_cannot_be(tool: str, test: str, more: str, why: str) -> None:
    probes = "[]" if "PROBES []" in more else '["rxecpu"]'
    with pytest.raises(UsageError, match=f"message_cost: .*{why}"):
        has_cost(tool, test, f"message_cost = true\n{more.replace('PROBES []', '')}", probes)
