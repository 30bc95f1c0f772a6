# SPDX-License-Identifier: GPL-2.0-or-later
"""Extract the points of a fit from results.parquet: measured times and stage times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rocelab import metrics, stage_table
from rocelab.correlate.fit import Estimate, Fit, Point, fit, rest

_ACKNOWLEDGE = "ACKNOWLEDGE"
_LONGEST = 1e18
"""ns; a larger value cannot be a measurement, and its square would overflow."""
_CPU = (metrics.CpuPer("packet").name, "kernel")
"""Without user mode: there one benchmark polls and another waits."""
_LATENCIES = ("one_way_half_rtt", "round_trip")


@dataclass(frozen=True)
class Value:
    """The columns of one row of results.parquet that a fit needs."""

    accelerator: str
    tool: str
    test: str
    transport: str
    size: int
    repetition: int
    node: str
    metric: str
    kind: str
    value: float


@dataclass(frozen=True)
class Subject:
    """One benchmark over one transport, with the points to fit."""

    accelerator: str
    tool: str
    test: str
    transport: str
    quantity: str
    """`latency` or `inverse_bandwidth`, both in ns per message."""
    kind: str
    points: tuple[Point, ...]
    header_bytes: Mapping[int, float]
    """By size: header bytes of a message's packets, in one direction."""
    cpu_ns: Mapping[int, float]
    """By size: kernel CPU time per packet, the mean of both ends; empty without rxecpu."""

    @property
    def benchmark(self) -> str:
        """Tool and test, as in headings."""
        return f"{self.tool} {self.test}"

    def fit(self) -> Fit | None:
        """The line through all points."""
        return fit(self.points)

    def rest(self) -> dict[int, Estimate]:
        """The time that no stage covers, by size."""
        return rest(self.points)


_Group = tuple[str, str, str, str]
_Step = tuple[int, int]


def subjects(values: Iterable[Value]) -> list[Subject]:
    """Return the benchmarks that have both stages and a measured time."""
    groups: defaultdict[_Group, defaultdict[_Step, list[Value]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for value in values:
        key = (value.accelerator, value.tool, value.test, value.transport)
        groups[key][value.size, value.repetition].append(value)
    return [found for key, steps in groups.items() for found in _subject(key, steps)]


def _subject(key: _Group, steps: Mapping[_Step, list[Value]]) -> Iterator[Subject]:
    quantities: defaultdict[tuple[str, str], list[Point]] = defaultdict(list)
    headers: defaultdict[int, list[float]] = defaultdict(list)
    cpu: defaultdict[int, list[float]] = defaultdict(list)
    for (size, repetition), values in sorted(steps.items()):
        found = _measured(values)
        stages = _stages(values, size, waits=found is not None and found[0] == "latency")
        if found is None or stages is None:
            continue
        quantity, kind, measured = found
        if not (0 <= stages <= _LONGEST and 0 <= measured <= _LONGEST):
            continue
        quantities[quantity, kind].append(Point(size, repetition, stages, measured))
        if (carried := _headers(values, size)) is not None:
            headers[size].append(carried)
        cpu[size] += [
            value.value
            for value in values
            if (value.metric, value.kind) == _CPU and 0 <= value.value <= _LONGEST
        ]
    for (quantity, kind), points in quantities.items():
        yield Subject(*key, quantity, kind, tuple(points), _means(headers), _means(cpu))


def _means(known: Mapping[int, list[float]]) -> dict[int, float]:
    return {size: sum(values) / len(values) for size, values in known.items() if values}


def _measured(values: Iterable[Value]) -> tuple[str, str, float] | None:
    for value in values:
        if value.metric == metrics.LATENCY and value.kind in _LATENCIES:
            return "latency", value.kind, value.value
        if value.metric == metrics.MESSAGE_RATE and value.value > 0:
            return "inverse_bandwidth", value.kind, 1e9 / value.value
    return None


def _stages(values: list[Value], size: int, *, waits: bool) -> float | None:
    """Stage time of a message, ns: all its packets at both ends, without acknowledgements.

    Leaves out `reply`, which sends another packet. Counts the wait in the queue only for a latency,
    which contains it; when messages follow each other closely, that wait is another message's time.
    """
    messages = _messages(values, size)
    left_out = stage_table.ANSWERING if waits else stage_table.APART
    total = 0.0
    seen = set()
    for value in values:
        metric = metrics.Stage.parse(value.metric)
        if metric is None or metric.figure != "sum":
            continue
        direction, stage, _ = metric
        if value.kind != _ACKNOWLEDGE and not (direction == "rx" and stage in left_out):
            total += value.value
            seen.add(direction)
    return total / messages if messages and seen == {"tx", "rx"} else None


def _messages(values: Iterable[Value], size: int) -> float:
    """Messages on the wire in both directions, including retransmitted parts."""
    carried = sum(value.value for value in values if value.metric == metrics.PAYLOAD_BYTES)
    return carried / size if size > 0 else 0.0


def _headers(values: list[Value], size: int) -> float | None:
    known = {value.metric: value.value for value in values}
    messages = _messages(values, size)
    if not messages or not {metrics.HEADER_BYTES, metrics.DATA_FRAMES} <= known.keys():
        return None
    return known[metrics.HEADER_BYTES] * known[metrics.DATA_FRAMES] / messages
