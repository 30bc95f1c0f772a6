# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver's events on a node, read through tracefs as a person would (docs/events.md)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rocelab.testbed.node import Node

TRACING = "/sys/kernel/tracing"
PACKETS = ("rxe_tx_packet", "rxe_rx_packet", "rxe_rx_done")
STAGES = {
    "rxe_tx_packet": ("wqe", "alloc", "bth", "route", "net", "copy", "icrc"),
    "rxe_rx_packet": ("parse", "icrc"),
    "rxe_rx_done": ("queue", "exec", "copy", "cqe", "reply"),
}


@dataclass(frozen=True)
class Tasks:
    """The tasks of a queue pair; 6.12 merged the first two."""

    requester: str
    completer: str
    responder: str

    @classmethod
    def of(cls, line: str) -> Tasks:
        """A kernel line's."""
        if line == "6.1":
            return cls("requester", "completer", "responder")
        return cls("send", "send", "recv")

    def names(self) -> set[str]:
        """All of them."""
        return {self.requester, self.completer, self.responder}


# tracefs, perf script and trace-cmd report differ in what surrounds the name
_LINE = re.compile(r"\s(?:rxe:)?((?:rxe|sched)_\w+):\s+(\S.*)$")
# tracefs: COMM-PID [CPU] FLAGS SECONDS.MICROSECONDS: of the task, on CLOCK_MONOTONIC here
_TASK = re.compile(r"-(\d+) +\[\d+\] \S+ +(\d+)\.(\d{6}):")
_LOST = re.compile(r"entries-in-buffer/entries-written: (\d+)/(\d+)")


@dataclass(frozen=True)
class Event:
    """One line of the trace."""

    name: str
    fields: dict[str, str]
    pid: int = -1
    """The task in whose context it happened; -1 where the tool says it otherwise than tracefs."""
    time_us: int = -1
    """CLOCK_MONOTONIC; -1 if the tool prints no such time."""

    def __getitem__(self, key: str) -> str:
        return self.fields[key]

    def number(self, key: str) -> int:
        """A field that is a decimal number."""
        return int(self.fields[key])

    def stages(self) -> dict[str, int]:
        """Nanoseconds by stage, for a packet event."""
        return {stage: self.number(f"{stage}_ns") for stage in STAGES[self.name]}


def parse(text: str) -> list[Event]:
    """Events of a tracefs `trace` file, in its order; also of what perf and trace-cmd print.

    AssertionError if the buffer lost some.
    """
    if lost := _LOST.search(text):
        assert lost[1] == lost[2], f"the trace buffer was too small: {lost[0]}"
    events = []
    for line in text.splitlines():
        if match := _LINE.search(line):
            pairs = (word.split("=", 1) for word in match[2].split(" ") if "=" in word)
            task = _TASK.search(line)
            where = (int(task[1]), int(task[2] + task[3])) if task else ()
            events.append(Event(match[1], dict(pairs), *where))
    return events


def named(events: Iterable[Event], name: str) -> list[Event]:
    """Only the events of that name."""
    return [event for event in events if event.name == name]


def count(events: Iterable[Event], key: str) -> Counter[str]:
    """How often each value of a field occurs."""
    return Counter(event[key] for event in events)


@dataclass
class Trace:
    """Events seen while a context lasted; filled when it ends."""

    events: list[Event] = field(default_factory=list)

    def named(self, name: str) -> list[Event]:
        """Only the events of that name."""
        return named(self.events, name)


# one command each: on a kernel that checks itself a program takes seconds to start
_BEGIN = """
set -e
cd "$1"
echo "$2" >buffer_size_kb
echo mono >trace_clock
echo >trace
shift 2
for event; do echo 1 >"events/$event/enable"; done
"""
_END = """
set -e
cd "$1"
shift
for event; do echo 0 >"events/$event/enable"; done
cat trace
echo >trace
"""


@contextmanager
def tracing(node: Node, *names: str, buffer_kb: int = 16384) -> Iterator[Trace]:
    """Trace events on a node: those of the driver (all if none is named), or `sched/...`."""
    events = [name if "/" in name else f"rxe/{name}" for name in names] or ["rxe"]
    trace = Trace()
    node.run(["sh", "-c", _BEGIN, "sh", TRACING, str(buffer_kb), *events])
    try:
        yield trace
    finally:
        text = node.run(["sh", "-c", _END, "sh", TRACING, *events], timeout=120).stdout
    trace.events = parse(text)
