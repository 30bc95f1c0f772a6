# SPDX-License-Identifier: GPL-2.0-or-later
"""A plan: what to measure, how often and in which order."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from typing import Any

from rocelab.accelerators import Counting
from rocelab.plans.catalog import (
    STACKS,
    TESTS,
    TOOL_PACKAGES,
    TRANSPORTS,
    Provider,
    Test,
    Transport,
    counterpart,
)
from rocelab.plans.command import CommandPlan
from rocelab.plans.fault import ENDING, FaultPlan

ENOUGH_REPETITIONS = 6
"""Fewest samples whose median has a 95 % confidence interval (rocelab.stats.summary)."""

LARGE_MESSAGE = 8192
"""Bytes above which OSU's benchmarks have fewer iterations (LARGE_MESSAGE_SIZE)."""
FEWEST_ITERATIONS = 10
"""Of any size."""

COUNTED_TOOLS = frozenset({"perftest", "pingpong", "mpibench", "iperf3"})
"""Tools that can send as many messages as they are told, and whose other work does not depend on
it."""
TIMED_TOOLS = frozenset({"qperf"})
"""Tools that send for a time, and say how many messages fitted."""
FEWEST_COUNTED = 200
"""Iterations from which the cost of a message is measured."""
FEWEST_SECONDS = 4
"""The same for tools that send for a time: an eighth of it is a second at least."""


@dataclass(frozen=True)
class LinkPlan:
    """How tc(8) shapes what each data interface sends; 0 leaves a property alone."""

    rate_mbit: int = 0
    delay_us: int = 0
    loss_ppm: int = 0
    """Packets to drop, per million."""

    @property
    def is_shaped(self) -> bool:
        """Whether the link is shaped at all."""
        return bool(self.rate_mbit or self.delay_us or self.loss_ppm)


UNSHAPED = LinkPlan()
"""A link that is not shaped."""


@dataclass(frozen=True)
class TestbedPlan:
    """Where to measure."""

    __test__ = False  # despite its name, not a pytest class

    provider: Provider
    line: str
    mtu: int
    """MTU of the data link in bytes."""
    icount: bool = False
    """Whether the clock counts instructions (provider `veth` only)."""
    lockstep: bool = False
    """Whether both machines run on one virtual clock (provider `qemu`, two nodes)."""
    emulation: Counting = "icount"
    """How virtual machines count where KVM does not work, if they can."""
    native: bool = False
    """Whether both ends are on this machine itself, without a VM (provider `veth` only)."""
    nodes: int = 2
    switches: int | None = 0
    """Switches between the first node and the others; 0: back to back. For your own hosts it only
    states how many there are; None: unknown."""
    link: LinkPlan = UNSHAPED
    faults: tuple[FaultPlan, ...] = ()
    """What benchmarks may have happen on the data link."""
    fresh: bool = False
    """Whether each repetition runs on machines booted for it (virtual machines only)."""
    pin: bool | None = None
    """Whether processes keep to their adapter's NUMA node; None: on hosts of your own."""
    packages: tuple[str, ...] = ()
    """Debian packages that virtual machines have in addition to what every node has."""

    @property
    def may_lockstep(self) -> bool:
        """Whether this is what can run on one virtual clock."""
        two = self.provider == Provider.QEMU and self.nodes == 2 and not self.switches
        return two and not self.faults and not self.link.is_shaped

    @property
    def emulated_as(self) -> Counting:
        """How these virtual machines count where KVM does not work."""
        return self.emulation if self.may_lockstep else "icount"

    @property
    def is_pinned(self) -> bool:
        """Whether processes keep to their adapter's NUMA node."""
        return self.provider.own_hosts if self.pin is None else self.pin

    @property
    def lacks_switch(self) -> bool:
        """Whether there are more than two nodes and no switch; your own hosts bring theirs."""
        return not self.provider.own_hosts and self.nodes > 2 and not self.switches


@dataclass(frozen=True)
class MpiPlan:
    """Settings of MPI benchmarks."""

    ranks: int
    ranks_per_node: int
    """Ranks are placed in blocks of this size; the last block may be smaller."""
    method: str
    """Whose loop mpibench follows: `osu`, `imb` or `skampi`."""
    window: int
    """Messages in flight in mpibench's streams."""
    yield_when_idle: bool
    """Whether a waiting rank yields its processor; this affects the results."""
    sweep: bool
    """Whether one mpirun measures many sizes (`rocelab.plans.steps`): capture, counters and stages
    then cover them all."""
    mca: tuple[str, ...]
    """Parameters of Open MPI as `name=value`, such as coll_tuned's algorithms."""
    problem: str = ""
    """Problem size of an application benchmark; empty for others."""

    @property
    def nodes(self) -> int:
        """Number of nodes that have a rank."""
        return -(-self.ranks // self.ranks_per_node)


def title(test: str, label: str) -> str:
    """The test, with its label if it has one: what cells and results call a benchmark."""
    return f"{test}-{label}" if label else test


@dataclass(frozen=True)
class Benchmark:
    """One benchmark of a plan."""

    tool: str
    test: str
    sizes: tuple[int, ...]
    """Message sizes in bytes."""
    iterations: int
    """Messages per size, if the tool counts messages."""
    seconds: int
    """Duration per size, if the tool runs for a time."""
    timeout: int
    """Seconds after which a step is aborted, unless its rate promises that it takes longer."""
    qp_timeout: int
    """Local ACK timeout of verbs queue pairs: 4.096 µs times 2^qp_timeout."""
    path_mtu: int | None
    """RoCE path MTU in bytes; None: the largest that the link carries."""
    transports: tuple[str, ...]
    label: str = ""
    """Distinguishes benchmarks of the same test, for example with different algorithms."""
    mpi: MpiPlan | None = None
    cpu_util: bool = False
    """Whether perftest reports CPU utilization; it then runs for `seconds`, not `iterations`."""
    events: bool = False
    """Whether perftest sleeps until a completion instead of polling."""
    traffic_class: int | None = None
    """Of RoCE and InfiniBand packets (IPv4's TOS, the GRH's traffic class); None: the tool's."""
    service_level: int | None = None
    """Of verbs queue pairs: InfiniBand's SL, or the priority of a VLAN; None: the tool's."""
    faults: tuple[FaultPlan, ...] = ()
    """What happens on the data link in each step."""
    large_iterations: int | None = None
    """Messages per size above 8 KiB, as OSU's benchmarks have it; None: `iterations`."""
    counted_iterations: int | None = None
    """`iterations` on nodes that count instructions; None: no other number."""
    volume: int | None = None
    """The most bytes of messages per size, as IMB has it: fewer iterations; None: no limit."""
    depth: int | None = None
    """Requests that fio keeps in flight; None: one."""
    retry_count: int | None = None
    """Times that perftest sends a request again; None: its choice."""
    rx_depth: int | None = None
    """Receives that the server keeps posted; None: the tool's choice."""
    optional: bool = False
    """Whether a run leaves it out where the nodes lack its suite, instead of failing."""
    message_cost: bool = False
    """Whether each step is also measured with fewer messages: what each one costs is the slope."""
    command: CommandPlan | None = None
    """A user's own command."""

    def where_counted(self) -> Benchmark:
        """Return the benchmark for nodes that count instructions, which need fewer messages."""
        return replace(self, iterations=self.counted_iterations or self.iterations)

    def with_part(self, divisor: int) -> Benchmark:
        """Return the benchmark with one message in `divisor` of each size."""
        large = self.large_iterations
        return replace(
            self,
            iterations=self.iterations // divisor,
            seconds=max(1, self.seconds // divisor),
            large_iterations=None if large is None else large // divisor,
            volume=None if self.volume is None else self.volume // divisor,
        )

    @property
    def sleeps(self) -> bool:
        """Whether both ends sleep until a message comes, on every transport."""
        return self.events or (self.tool, self.test) == ("pingpong", "latency")

    @property
    def waits_by_calls(self) -> bool:
        """Whether it polls by system calls, so that these depend on how long it waits.

        MPI yields its processor or asks epoll. iperf3's main thread polls while another one sends,
        for a second at least: version 3.18 worked 0.95 s for 500 and for 4,000 messages.
        """
        return self.mpi is not None or self.tool == "iperf3"

    @property
    def ends_with_error(self) -> bool:
        """Whether one of its faults ends the client's connection."""
        return any(fault.action in ENDING for fault in self.faults)

    @property
    def measures_its_end(self) -> bool:
        """Whether that end is what is measured; a user's command says itself what it has."""
        return self.ends_with_error and self.command is None

    def iterations_of(self, size: int) -> int:
        """Return the number of messages of a size, if the tool counts messages."""
        large = self.large_iterations is not None and size > LARGE_MESSAGE
        count = self.large_iterations if large and self.large_iterations else self.iterations
        if self.volume is not None and size:
            count = min(count, max(FEWEST_ITERATIONS, self.volume // size))
        return count

    @property
    def title(self) -> str:
        """The test, with its label if it has one: its name in cells and results."""
        return title(self.test, self.label)

    @property
    def nodes(self) -> int:
        """Number of nodes that take part; they are the testbed's first ones."""
        return self.mpi.nodes if self.mpi else 2

    def test_over(self, transport: str) -> Test:
        """Return the test that measures this benchmark over one of its transports."""
        test = counterpart(TESTS[self.tool, self.test], TRANSPORTS[transport])
        assert test is not None, "plan_file refuses benchmarks that a transport cannot carry"
        return test


def cell_name(tool: str, title: str, transport: str, repetition: int) -> str:
    """Return a cell's name."""
    return f"{tool}-{title}.{transport}.r{repetition:02d}"


@dataclass(frozen=True)
class Cell:
    """One benchmark over one transport, once."""

    benchmark: Benchmark
    transport: Transport
    repetition: int

    @property
    def name(self) -> str:
        """The name of the cell's folder: words from the catalog and a number, safe in a path."""
        bench = self.benchmark
        return cell_name(bench.tool, bench.title, self.transport.name, self.repetition)

    @property
    def test(self) -> Test:
        """The test that measures it."""
        return self.benchmark.test_over(self.transport.name)

    @property
    def has_message_cost(self) -> bool:
        """Whether its steps are measured at several counts of messages."""
        if not self.benchmark.message_cost or self.benchmark.cpu_util:
            return False
        if self.test.tool in TIMED_TOOLS:
            return self.benchmark.seconds >= FEWEST_SECONDS
        return self.test.tool in COUNTED_TOOLS

    @property
    def is_timed(self) -> bool:
        """Whether its program sends for the plan's `seconds`, as many messages as fit."""
        if self.test.tool == "iperf3":
            return not self.benchmark.message_cost
        return self.test.tool in TIMED_TOOLS or self.benchmark.cpu_util

    @property
    def sleeps(self) -> bool:
        """Whether both ends sleep until a message comes."""
        return self.test.tool in TIMED_TOOLS or self.benchmark.sleeps

    def with_part(self, divisor: int) -> Cell:
        """Return the cell with one message in `divisor`."""
        return replace(self, benchmark=self.benchmark.with_part(divisor))


@dataclass(frozen=True)
class Plan:
    """Everything that defines a run; `plan_file` builds and checks it."""

    name: str
    repetitions: int
    seed: int
    transports: tuple[str, ...]
    probes: tuple[str, ...]
    testbed: TestbedPlan
    benchmarks: tuple[Benchmark, ...]
    study: str = ""
    """The published study (rocelab.studies) whose claims the run checks; empty: none."""
    counted_repetitions: int | None = None
    """`repetitions` on nodes that count instructions; None: no other number."""
    timing_pass: bool | None = None
    """Whether a step that probes watch is measured without them first; None: where clocks tell real
    time."""

    stacks: bool = False
    """Whether rxecpu records stacks, which the report shows as flame graphs."""

    @property
    def observe(self) -> tuple[str, ...]:
        """The probes that run, and STACKS if rxecpu is to record them."""
        return (*self.probes, *((STACKS,) if self.stacks else ()))

    def where_counted(self) -> Plan:
        """Return the plan for nodes that count instructions, which need not be repeated."""
        return replace(
            self,
            repetitions=self.counted_repetitions or self.repetitions,
            benchmarks=tuple(benchmark.where_counted() for benchmark in self.benchmarks),
        )

    def cells(self) -> tuple[Cell, ...]:
        """Return all cells in the order in which they run, which depends only on the plan.

        This is a randomised block design: each repetition has every (benchmark, transport) once,
        in its own order, so that a drift of the machine affects all of them equally.
        """
        return tuple(
            cell
            for repetition in range(1, self.repetitions + 1)
            for cell in sorted(
                (
                    Cell(benchmark, TRANSPORTS[transport], repetition)
                    for benchmark in self.benchmarks
                    for transport in benchmark.transports
                ),
                key=lambda cell: self._draw(cell.name),
            )
        )

    @property
    def roce_v1(self) -> bool:
        """Whether the rxe devices must offer RoCE v1."""
        asked = {name for benchmark in self.benchmarks for name in benchmark.transports}
        return any(TRANSPORTS[name].is_rxe and TRANSPORTS[name].roce == 1 for name in asked)

    @property
    def rxe(self) -> bool:
        """Whether any cell needs the instrumented driver and an rxe device."""
        return any(cell.transport.is_rxe for cell in self.cells())

    @property
    def packages(self) -> tuple[str, ...]:
        """Debian packages that its virtual machines have in addition: what it names, and tools'."""
        tools = {benchmark.tool for benchmark in self.benchmarks}
        of_tools = {name for tool in tools for name in TOOL_PACKAGES.get(tool, ())}
        return tuple(sorted({*self.testbed.packages, *of_tools}))

    def with_boots(self, boots: int) -> Plan:
        """Return the plan with so many repetitions, each on machines booted for it.

        A boot places code, data and interrupts differently, which shifts all that it measures.
        Repetitions on one boot share that shift and cannot show it.
        """
        where = replace(self.testbed, fresh=True)
        return replace(self, repetitions=boots, counted_repetitions=None, testbed=where)

    def warnings(self) -> tuple[str, ...]:
        """Return warnings to print before the plan runs."""
        if self.repetitions < ENOUGH_REPETITIONS:
            one = self.repetitions == 1
            few = "1 repetition gives" if one else f"{self.repetitions} repetitions give"
            few += " no confidence interval"
            return (f"{few}: that takes {ENOUGH_REPETITIONS} or more",)
        return ()

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in the form that `plan_file.from_dict` reads, with all defaults."""
        counted = self.counted_repetitions
        return {
            "plan": {
                "name": self.name,
                "repetitions": self.repetitions,
                "seed": self.seed,
                "transports": list(self.transports),
                "probes": list(self.probes),
                "study": self.study,
                **({"counted_repetitions": counted} if counted is not None else {}),
                **({"timing_pass": self.timing_pass} if self.timing_pass is not None else {}),
                **({"stacks": True} if self.stacks else {}),
            },
            "testbed": _table(self.testbed),
            "benchmark": [_table(benchmark) for benchmark in self.benchmarks],
        }

    def _draw(self, name: str) -> bytes:
        # a hash, because `random` may shuffle differently in another version of Python
        return hashlib.sha256(f"{self.seed}:{name}".encode()).digest()


def _table(part: TestbedPlan | Benchmark) -> dict[str, object]:
    """Return the table for a part of the plan, without keys that are None.

    The testbed has the faults by name, a benchmark only their names.
    """
    table = {key: _plain(value) for key, value in asdict(part).items() if value is not None}
    if isinstance(part, TestbedPlan) and part.pin is not None:
        table["pin"] = {"numa": part.pin}
    faults = table.pop("faults")
    if part.faults and isinstance(part, TestbedPlan):
        each = faults if isinstance(faults, list) else []
        table["faults"] = {fault.pop("name"): fault for fault in each}
    elif part.faults:
        table["faults"] = [fault.name for fault in part.faults]
    return table


def _plain(value: object) -> object:
    """Convert a value for TOML and JSON: tuples become lists, recursively."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
