# SPDX-License-Identifier: GPL-2.0-or-later
"""Values from one machine's rxecpu document (docs/formats/rxecpu.md) for results.parquet."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rocelab import metrics
from rocelab.directory import Directory
from rocelab.errors import CellError
from rocelab.plans.benchmarks.tool import Value
from rocelab.record import probe_document

SCHEMA = "rocelab.rxecpu/1"
OWNERS = ("benchmark", "rxe", "network", "other")
COMMUNICATION = ("benchmark", "rxe", "network")
"""The owners whose time the transport costs."""
_CONTEXTS = frozenset({"user", "syscall", "fault", "kthread", "hardirq", "softirq"})
_TOLERANCE = 0.01
"""Of wall times CPUs: how much of it the parts may be off."""
_SOFTIRQ = re.compile(r"softirq\.([a-z_]{1,16})", re.ASCII)

Account = tuple[str, str]
"""Context (of softirqs with their kind) and owner."""


@dataclass(frozen=True)
class Traffic:
    """What moved while the time was counted, to divide it by; 0: not known."""

    packets: int
    """Sent and received by the nodes whose time it is."""
    messages: float
    """Carried by the wire, both directions."""
    megabytes: float
    """Message bytes carried by the wire, both directions, in 10^6."""


@dataclass(frozen=True)
class Split:
    """All CPU time of one machine during one step, in ns."""

    wall_ns: int
    cpus: int
    idle: int
    busy: Mapping[Account, int]
    events: int
    lost: int
    late: int
    event_ns: float = 0.0
    """What accounting for one event takes, without the way to it; 0: not known."""
    stretches: Mapping[Account, int] = field(default_factory=dict)
    """How many stretches of time each busy account is the sum of; each has one event's cost."""
    idle_stretches: int = 0

    def of(self, owners: tuple[str, ...], *, user: bool = True) -> int:
        """Busy time of some owners; without `user`: in the kernel only."""
        return sum(
            ns
            for (context, owner), ns in self.busy.items()
            if owner in owners and (user or context != "user")
        )

    def values(self, traffic: Traffic) -> Iterator[Value]:
        """Everything as values."""
        parts: defaultdict[Account, int] = defaultdict(int)
        for (context, owner), ns in self.busy.items():
            parts[context.partition(".")[0], owner] += ns
            if "." in context:
                yield Value(metrics.Account(context, owner).name, "time", ns, "ns")
        for (context, owner), ns in sorted(parts.items()):
            account = metrics.Account(context, owner).name
            yield Value(account, "time", ns, "ns")
            for name, amount in (("message", traffic.messages), ("packet", traffic.packets)):
                if amount:
                    yield Value(account, f"per_{name}", ns / amount, "ns")
        busy = self.of(OWNERS)
        yield Value(metrics.CPU_IDLE, "time", self.idle, "ns")
        yield Value(metrics.CPU_WALL, "time", self.wall_ns, "ns")
        yield Value(metrics.CPU_CORES, "counter", self.cpus, "1")
        yield Value(metrics.CPU_BUSY_CORES, "cores", busy / self.wall_ns, "1")
        yield Value(metrics.CPU_UTILIZATION, "per_core", busy / (self.wall_ns * self.cpus), "1")
        for kind, user in (("communication", True), ("kernel", False)):
            spent = self.of(COMMUNICATION, user=user)
            for name, amount in (
                ("packet", traffic.packets),
                ("message", traffic.messages),
                ("mb", traffic.megabytes),
            ):
                if amount:
                    yield Value(metrics.CpuPer(name).name, kind, spent / amount, "ns")
        yield Value(metrics.CPU_EVENTS, "counter", self.events, "1")
        yield Value(metrics.CPU_EVENTS_LOST, "counter", self.lost, "1")
        yield Value(metrics.CPU_EVENTS_LATE, "counter", self.late, "1")


def file_name(machine: str) -> str:
    """Where a machine's document lies in a step's folder; it is named by its nodes."""
    return f"rxecpu.{machine}.json"


def splits(step: Directory, nodes: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...], Split]]:
    """(name, its nodes, split) of each machine of a step. Raises CellError."""
    for name, some in (*((node, (node,)) for node in nodes), ("+".join(nodes), nodes)):
        if step.exists(file_name(name)):
            yield name, some, read(step, name)


def read(step: Directory, machine: str) -> Split:
    """Read a machine's document from a step's folder. Raises CellError when it is damaged."""
    return parse(probe_document.read(step, file_name(machine)))


def parse_text(text: str | bytes) -> Split:
    """Parse a document as rxecpu writes it. Raises CellError."""
    return parse(probe_document.parse(text, "rxecpu's document"))


def parse(document: object) -> Split:
    """Check a document, and above all that its parts sum to wall times CPUs. Raises CellError."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise CellError(f"rxecpu's document does not say {SCHEMA}")
    try:
        split = _split(document)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CellError(f"rxecpu's document has no valid {error!a:.60}") from error
    whole = split.wall_ns * split.cpus
    total = split.idle + sum(split.busy.values())
    if abs(total - whole) > _TOLERANCE * whole:
        raise CellError(
            f"its parts sum to {total / whole:.1%} of wall times CPUs",
            cause="a CPU stood still while the accounts began or ended, or events were lost",
        )
    return split


def _split(document: Mapping[str, Any]) -> Split:
    busy: defaultdict[Account, int] = defaultdict(int)
    stretches: defaultdict[Account, int] = defaultdict(int)
    idle = idle_stretches = 0
    for row in document["rows"]:
        ns, parts = _count(row["ns"]), _count(row.get("stretches", 0))
        if row["context"] == "idle":
            idle += ns
            idle_stretches += parts
        else:
            account = _context(row["context"]), _owner(row["owner"])
            busy[account] += ns
            stretches[account] += parts
    wall, cpus = _count(document["duration_ns"]), _count(document["cpus"])
    if not wall or not cpus:
        raise ValueError(wall, cpus)
    events, lost, late = (_count(document[key]) for key in ("events", "lost", "late"))
    event_ns = document.get("event_ns")
    return Split(
        *(wall, cpus, idle),
        busy=dict(sorted(busy.items())),
        events=events,
        lost=lost,
        late=late,
        event_ns=float(event_ns) if isinstance(event_ns, int | float) else 0.0,
        stretches=dict(stretches),
        idle_stretches=idle_stretches,
    )


def _count(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 1 << 63:
        raise ValueError(number)
    return number


def _context(text: object) -> str:
    """Names from a node become metric names: known ones only."""
    if not isinstance(text, str) or not (text in _CONTEXTS or _SOFTIRQ.fullmatch(text)):
        raise ValueError(text)
    return text


def _owner(text: object) -> str:
    if text not in OWNERS:
        raise ValueError(text)
    return str(text)
