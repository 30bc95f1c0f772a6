# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of metrics in results.parquet (docs/formats/results.md): made and parsed here only.

A family of metrics is a named tuple: its fields are the parts of the name, `name` joins them, and
`parse` returns them from a name, or None for a metric of another family.
"""

from __future__ import annotations

from typing import NamedTuple, Self

from rocelab import stage_table

BANDWIDTH = "bandwidth"
MESSAGE_RATE = "message_rate"
TRANSFER_TIME = "transfer.time"

MESSAGES = "benchmark.messages"
"""What the benchmark itself sent, in both directions, without what its library adds."""
PATH_MTU = "benchmark.path_mtu"

WIRE_FRAMES = "wire.frames"
DATA_FRAMES = "wire.data_frames"
PAYLOAD_BYTES = "wire.payload_bytes"
HEADER_BYTES = "wire.header_bytes"

PROBE_LOST = "probe.lost"
PROBE_CLOCK = "probe.clock"

CPU_IDLE = "cpu.idle"
CPU_WALL = "cpu.wall"
CPU_CORES = "cpu.cores"
CPU_BUSY_CORES = "cpu.busy_cores"
CPU_UTILIZATION = "cpu.utilization"
CPU_EVENTS = "cpu.events"
CPU_EVENTS_LOST = "cpu.events.lost"
CPU_EVENTS_LATE = "cpu.events.late"

MESSAGE_COST = "cost.message"
"""What all processors worked for one more message, without probes (docs/numbers.md); kind:
`marginal`, `start` for what does not depend on their number, or `residual`, how far a third count
is from the line through the other two, as a share of the cost."""
WATCHING_COST = "cost.watching"
"""What the probes add to it; kind: `marginal`."""
OTHERS = "cost.others"
"""How many processors of a machine other programs kept busy shortly before its cost was measured;
kind: `cores`."""
MARGINAL, START, RESIDUAL = "marginal", "start", "residual"
KERNEL_MARGINAL = "marginal_kernel"
"""Kind of the kernel's work for one more message: by account where the program polls, and in sum
(`CpuPer`) of all programs."""

CPU_AMOUNTS = ("packet", "message", "mb")

KERNEL_CYCLES = "cycles.kernel"
"""Cycles of all processors of a machine in kernel mode; kind: `counter`, `per_packet`,
`per_message`, or `marginal`, of one more message."""
CYCLES = "cycles"
"""Their unit."""

LIFE_OF = "life.of"

MEAN, TYPICAL = "mean", "typical"
"""Figures of a stage: over all packets, or over those near the median (docs/formats/results.md)."""

_CPU = "cpu."


def _parts(name: str) -> list[str]:
    """The parts of a name; none if one is empty."""
    parts = name.split(".")
    return parts if all(parts) else []


class Latency(NamedTuple):
    """A figure of the messages' latency; kind: what was timed (`rocelab.plans.catalog.Kind`)."""

    figure: str
    """`mean`, `min`, `p50`, `p99`, `max` or `stdev`, or the number of `samples`; `rank_min` and
    `rank_max` are the means of two ranks."""

    @property
    def name(self) -> str:
        """As results.parquet has it."""
        return f"latency.{self.figure}"


LATENCY = Latency("mean").name
FASTEST_RANK = Latency("rank_min").name
SLOWEST_RANK = Latency("rank_max").name


class Stage(NamedTuple):
    """A figure of one stage of the driver; kind: the opcode class."""

    direction: str
    stage: str
    figure: str
    """`count` or `atypical`, or a time: `sum`, `min`, `max`, `mean`, `typical`, `p50`, `p99`."""

    @property
    def name(self) -> str:
        """As results.parquet has it."""
        return f"stage.{self.direction}.{self.stage}.{self.figure}"

    @property
    def unit(self) -> str:
        """Of the figure."""
        return "1" if self.figure in ("count", "atypical") else "ns"

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return the parts of a name."""
        match _parts(name):
            case "stage", "tx" | "rx" as direction, stage, figure:
                return cls(direction, stage, figure)
        return None


class Capsule(NamedTuple):
    """Time of encapsulation or decapsulation, ns; kind: the opcode class."""

    whole: str
    figure: str
    """`mean` or `typical`: of which figure of the stages it is the sum."""

    @property
    def name(self) -> str:
        """As results.parquet has it."""
        return f"{self.whole}.{self.figure}"

    @property
    def direction(self) -> str:
        """Of the packets."""
        return stage_table.CAPSULES[self.whole][0]

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return the parts of a name."""
        match _parts(name):
            case whole, figure if whole in stage_table.CAPSULES and figure in (MEAN, TYPICAL):
                return cls(whole, figure)
        return None


class Packets(NamedTuple):
    """Packets that rxestat saw; kind: the opcode class."""

    event: str
    """`tx`, `rx` or `done`."""
    switched: bool = False
    """Only those whose task was switched out in between."""

    @property
    def name(self) -> str:
        """As results.parquet has it."""
        return f"packets.{self.event}{'.switched' if self.switched else ''}"

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return the parts of a name."""
        match _parts(name):
            case "packets", event:
                return cls(event)
            case "packets", event, "switched":
                return cls(event, switched=True)
        return None


class Account(NamedTuple):
    """CPU time by context and owner, ns; kind: `time`, `per_message`, `per_packet`, `marginal` or
    `marginal_kernel`."""

    context: str
    """Of softirqs also with their kind: `softirq.net_rx`."""
    owner: str

    @property
    def name(self) -> str:
        """As results.parquet has it."""
        return f"{_CPU}{self.context}.{self.owner}"

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return the parts of a name."""
        match _parts(name):
            case "cpu", "events", _:
                return None
            case "cpu", *context, owner if 1 <= len(context) <= 2:
                return cls(".".join(context), owner)
        return None


class CpuPer(NamedTuple):
    """CPU time divided by what moved, ns; kind: `communication` or `kernel`, which contain the
    start of the programs and the probes, or `marginal_kernel`, which does not."""

    amount: str
    """One of `CPU_AMOUNTS`."""

    @property
    def name(self) -> str:
        """As results.parquet has it."""
        return f"{_CPU}per_{self.amount}"


class Coverage(NamedTuple):
    """Latency inside and outside the driver, ns; kind: that of the latency."""

    part: str
    """`total`, `stages` or `outside`."""

    @property
    def name(self) -> str:
        """As results.parquet has it."""
        return f"coverage.{self.part}"

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return the parts of a name."""
        return cls(name.removeprefix("coverage.")) if name.startswith("coverage.") else None


class Watched(NamedTuple):
    """What a benchmark measured while probes watched, where it was timed without them."""

    metric: str
    """The metric of the pass without them."""

    @property
    def name(self) -> str:
        """As results.parquet has it."""
        return f"watched.{self.metric}"

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return the parts of a name."""
        return cls(name.removeprefix("watched.")) if name.startswith("watched.") else None


class Joined(NamedTuple):
    """Frames and records of a join, counted; kind: `counter`."""

    way: str | None
    """Whether of sent or of received packets; None: of all."""
    quantity: str

    @property
    def name(self) -> str:
        """As results.parquet has it."""
        return ".".join(("join", *filter(None, (self.way, self.quantity))))

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return the parts of a name."""
        match _parts(name):
            case "join", quantity:
                return cls(None, quantity)
            case "join", "tx" | "rx" as way, quantity:
                return cls(way, quantity)
        return None


class LifeStage(NamedTuple):
    """A stage of the median message, ns; kind: `median_message`."""

    place: str
    """`tx`, `rx`, `answer_tx` or `answer_rx`."""
    stage: str

    @property
    def name(self) -> str:
        """As results.parquet has it."""
        return f"life.{self.place}.{self.stage}"

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return the parts of a name."""
        match _parts(name):
            case "life", "tx" | "rx" | "answer_tx" | "answer_rx" as place, stage:
                return cls(place, stage)
        return None


class LifeSpan(NamedTuple):
    """A span of time of the median message, ns; kind: `median_message`."""

    span: str

    @property
    def name(self) -> str:
        """As results.parquet has it."""
        return f"life.span.{self.span}"

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return the parts of a name."""
        return cls(name.removeprefix("life.span.")) if name.startswith("life.span.") else None


class Application(NamedTuple):
    """A figure that an application benchmark reports; kind: `application`."""

    figure: str

    @property
    def name(self) -> str:
        """As results.parquet has it."""
        return f"application.{self.figure}"

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return the parts of a name."""
        return cls(name.removeprefix("application.")) if name.startswith("application.") else None


COMPARED = (LATENCY, BANDWIDTH, MESSAGE_COST, Application("*").name)
"""Patterns of the metrics that runs are compared by unless others are asked for."""


class Counter(NamedTuple):
    """Increase of a counter; kind: `counter`."""

    group: str
    """`driver`, `netdev`, `link`, `adapter` or `tcp`."""
    counter: str

    @property
    def name(self) -> str:
        """As results.parquet has it."""
        return f"{self.group}.{self.counter}"

    @property
    def unit(self) -> str:
        """By its name; the driver's and the link's counters are of packets."""
        of_bytes = {
            "netdev": "bytes" in self.counter,
            "adapter": self.counter.endswith("bytes"),
        }
        return "bytes" if of_bytes.get(self.group) else "1"

    @classmethod
    def parse(cls, name: str, group: str) -> Self | None:
        """Return the parts of a name of this group."""
        prefix = f"{group}."
        return cls(group, name.removeprefix(prefix)) if name.startswith(prefix) else None


def is_work(name: str) -> bool:
    """Say whether a metric in ns is time that a processor worked, without waits.

    Where the clock counts instructions, it is a number of instructions. What includes a wait
    depends on how the host schedules the nodes.
    """
    if stage := Stage.parse(name):
        return stage.stage not in stage_table.APART
    if part := LifeStage.parse(name):
        return part.stage not in stage_table.APART | {stage_table.GAP}
    if Capsule.parse(name) or Account.parse(name):
        return True
    if name in (MESSAGE_COST, WATCHING_COST):
        return True
    return name == PROBE_CLOCK or name in {CpuPer(amount).name for amount in CPU_AMOUNTS}


def is_share_of_time(name: str) -> bool:
    """Say whether a metric depends on time whatever its unit is."""
    return name.startswith(_CPU)
