# SPDX-License-Identifier: GPL-2.0-or-later
"""A plan: what to measure, how often and in which order."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

from rocelab.bench.catalog import TESTS, TRANSPORTS, Test, Transport, measured_by

ENOUGH_REPETITIONS = 6
"""Fewest samples whose median has a 95 % confidence interval (rocelab.run.stats)."""


@dataclass(frozen=True)
class LinkPlan:
    """What every data interface is given for what it sends, by tc(8); 0: nothing of the sort."""

    rate_mbit: int = 0
    delay_us: int = 0
    loss_ppm: int = 0
    """Packets in a million that are thrown away."""

    @property
    def is_shaped(self) -> bool:
        """Whether anything is asked for."""
        return bool(self.rate_mbit or self.delay_us or self.loss_ppm)


AS_IT_IS = LinkPlan()
"""A link of which nothing is asked."""


@dataclass(frozen=True)
class TestbedPlan:
    """Where to measure."""

    __test__ = False  # the name is not a pytest class

    provider: str
    line: str
    mtu: int
    """MTU of the data link in bytes."""
    icount: bool = False
    """Whether the clock counts instructions (provider `veth` only)."""
    native: bool = False
    """Whether both ends are on this very machine, not in a virtual one (provider `veth` only)."""
    nodes: int = 2
    switches: int | None = 0
    """Between the first node and the others; none: back to back. Between hosts of one's own they
    are there already, and this says how many; None: nobody said."""
    link: LinkPlan = AS_IT_IS

    @property
    def lacks_switch(self) -> bool:
        """Whether there are more nodes than a link has ends, and nothing between them.

        What is between hosts of one's own is there.
        """
        return self.provider != "ssh" and self.nodes > 2 and not self.switches


@dataclass(frozen=True)
class MpiPlan:
    """What only MPI benchmarks have."""

    ranks: int
    ranks_per_node: int
    """Ranks are placed in blocks of so many, the last one on the last of the nodes."""
    method: str
    """Whose loop mpibench follows: `osu`, `imb` or `skampi`."""
    window: int
    """Messages in flight in mpibench's streams."""
    yield_when_idle: bool
    """Whether a rank that waits gives its processor away: it changes what is measured."""
    sweep: bool
    """All sizes in one mpirun: then wire, counters and stages are those of all sizes together."""
    mca: tuple[str, ...]
    """Parameters of Open MPI as `name=value`, as coll_tuned's choices of algorithms."""
    problem: str = ""
    """How large an application benchmark's problem is; empty: others have none."""

    @property
    def nodes(self) -> int:
        """How many nodes have a rank."""
        return -(-self.ranks // self.ranks_per_node)


@dataclass(frozen=True)
class Benchmark:
    """One benchmark of a plan."""

    tool: str
    test: str
    sizes: tuple[int, ...]
    """Message sizes in bytes."""
    iterations: int
    """Messages per size, where the tool counts messages."""
    seconds: int
    """Duration per size, where the tool counts time."""
    timeout: int
    """Seconds after which one size is given up."""
    qp_timeout: int
    """Local ACK timeout of verbs queue pairs: 4.096 µs times 2^qp_timeout."""
    path_mtu: int | None
    """RoCE path MTU in bytes; None: the largest that the link carries."""
    transports: tuple[str, ...]
    label: str = ""
    """Tells benchmarks of the same test apart, as of two algorithms; empty: there is one."""
    mpi: MpiPlan | None = None
    cpu_util: bool = False
    """Whether perftest gives its own CPU utilization: then `seconds` count, not `iterations`."""

    @property
    def title(self) -> str:
        """The test, with its label if it has one: what cells and results call it."""
        return f"{self.test}-{self.label}" if self.label else self.test

    @property
    def nodes(self) -> int:
        """How many of the testbed's nodes take part: the first ones."""
        return self.mpi.nodes if self.mpi else 2

    def steps(self) -> tuple[tuple[int, ...], ...]:
        """The sizes of each step: one process, or pair of processes, goes through them."""
        if self.mpi is not None and self.mpi.sweep:
            return (self.sizes,)
        return tuple((size,) for size in self.sizes)

    def measured_over(self, transport: str) -> Test:
        """The test that measures this benchmark over one of its transports."""
        test = measured_by(TESTS[self.tool, self.test], TRANSPORTS[transport])
        assert test is not None, "a plan holds no benchmark that its transports cannot carry"
        return test


@dataclass(frozen=True)
class Cell:
    """One benchmark over one transport, once."""

    benchmark: Benchmark
    transport: Transport
    repetition: int

    @property
    def name(self) -> str:
        """The cell's folder: made of words from the catalog and a number, safe as a path."""
        bench = self.benchmark
        return f"{bench.tool}-{bench.title}.{self.transport.name}.r{self.repetition:02d}"

    @property
    def test(self) -> Test:
        """What measures it."""
        return self.benchmark.measured_over(self.transport.name)


@dataclass(frozen=True)
class Plan:
    """Everything that a run needs to know; built by `plan_file`, which checks it."""

    name: str
    repetitions: int
    seed: int
    transports: tuple[str, ...]
    probes: tuple[str, ...]
    testbed: TestbedPlan
    benchmarks: tuple[Benchmark, ...]
    study: str = ""
    """The published study (rocelab.studies) whose claims the run answers; empty: none."""

    def cells(self) -> tuple[Cell, ...]:
        """All cells in the order in which they run: the same for the same plan, always.

        A randomised block design: each repetition holds every (benchmark, transport) once, in
        an order of its own, so that a drift of the machine falls on all of them alike.
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
        return any("rxe-v1" in benchmark.transports for benchmark in self.benchmarks)

    @property
    def rxe(self) -> bool:
        """Whether any cell needs the instrumented driver, and a device of it."""
        return any(cell.transport.is_rxe for cell in self.cells())

    def warnings(self) -> tuple[str, ...]:
        """What the plan's author should know before it runs."""
        if self.repetitions < ENOUGH_REPETITIONS:
            few = f"{self.repetitions} repetitions give no confidence interval"
            return (f"{few}: that takes {ENOUGH_REPETITIONS} or more",)
        return ()

    def to_dict(self) -> dict[str, Any]:
        """The plan as `plan_file.from_dict` reads it, with every default filled in."""
        return {
            "plan": {
                "name": self.name,
                "repetitions": self.repetitions,
                "seed": self.seed,
                "transports": list(self.transports),
                "probes": list(self.probes),
                "study": self.study,
            },
            "testbed": _given(self.testbed),
            "benchmark": [_given(benchmark) for benchmark in self.benchmarks],
        }

    def _draw(self, name: str) -> bytes:
        # a hash and not `random`: its shuffle is not promised to stay the same across versions
        return hashlib.sha256(f"{self.seed}:{name}".encode()).digest()


def _given(of: TestbedPlan | Benchmark) -> dict[str, object]:
    """A table's keys, but those that say nothing."""
    return {key: _plain(value) for key, value in asdict(of).items() if value is not None}


def _plain(value: object) -> object:
    """A value as TOML and JSON have it: lists for tuples, all the way down."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
