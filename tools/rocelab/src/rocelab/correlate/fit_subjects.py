# SPDX-License-Identifier: GPL-2.0-or-later
"""Extract the points of a fit from results.parquet: measured times and stage times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from rocelab import metrics, stage_table
from rocelab.correlate.fit import Estimate, Fit, Point, Regime, fits, rest
from rocelab.plans.catalog import MPI_TOOLS, TRANSPORTS
from rocelab.record import adapter

_ACKNOWLEDGE = "ACKNOWLEDGE"
_LONGEST = 1e18
"""ns; a larger value cannot be a measurement, and its square would overflow."""
_SHORTEST = 1e-3
"""ns; a smaller time of a message cannot be a measurement, and its square would vanish."""
BYTES, PACKETS, HEADERS = "bytes", "packets", "header bytes"
ADAPTER_PACKETS = "packets and answers"
"""As an adapter counts them: acknowledgements are among them."""
CPU = "kernel CPU"
"""Of one more message (docs/numbers.md), without user mode: there one benchmark polls and another
waits."""
CPU_WITH_START = f"{CPU} with start"
"""The same of runs with one count of messages: the start of the programs and the probes are in
it."""
OWNERS = ("benchmark", "rxe", "network")
_MARGINAL = (metrics.MARGINAL, metrics.KERNEL_MARGINAL)
_SEVERAL = 1.5
_SEVERAL_ANSWERED = 2.5
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

    @property
    def benchmark(self) -> str:
        """Tool and test, as in headings."""
        return f"{self.tool} {self.test}"

    @property
    def has_stages(self) -> bool:
        """Whether stages were seen; without them, the rest is all that was measured."""
        return any(point.stages for point in self.points)

    def fits(self) -> list[Fit]:
        """The lines of the rest."""
        return fits(self.points)

    def rest(self) -> dict[int, Estimate]:
        """The time that no stage covers, by size."""
        return rest(self.points)

    def mean(self, amount: str) -> dict[int, float]:
        """The mean of an amount by size, of those sizes that have it."""
        known: defaultdict[int, list[float]] = defaultdict(list)
        for point in self.points:
            if amount in point.amounts:
                known[point.size].append(point.amounts[amount])
        return {size: sum(values) / len(values) for size, values in known.items()}


_Group = tuple[str, str, str, str]
_Step = tuple[int, int]


def subjects(values: Iterable[Value]) -> list[Subject]:
    """Return the benchmarks that have a measured time, and stages or an amount to fit it to."""
    groups: defaultdict[_Group, defaultdict[_Step, list[Value]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for value in values:
        key = (value.accelerator, value.tool, value.test, value.transport)
        groups[key][value.size, value.repetition].append(value)
    return [subject for key, steps in groups.items() for subject in _subject(key, steps)]


def _subject(key: _Group, steps: Mapping[_Step, list[Value]]) -> Iterator[Subject]:
    quantities: defaultdict[tuple[str, str], list[Point]] = defaultdict(list)
    for (size, repetition), values in sorted(steps.items()):
        measurement = _measurement(values)
        if measurement is None:
            continue
        quantity, kind, measured = measurement
        messages = _messages(values, size)
        stages = _stages(values, messages, waits=quantity == "latency")
        amounts = dict(_amounts(values, messages))
        seen = stages is not None or amounts
        if not seen or not _SHORTEST <= measured <= _LONGEST or (stages or 0.0) > _LONGEST:
            continue
        transport = TRANSPORTS.get(key[3])
        if stages is None and (transport is None or transport.is_rxe):
            continue  # its rest is not known
        amounts = {BYTES: float(size), **amounts}
        regime = _regime(values, size, amounts)
        quantities[quantity, kind].append(
            Point(size, repetition, measured, stages or 0.0, regime, amounts)
        )
    for (quantity, kind), points in quantities.items():
        yield Subject(*key, quantity, kind, tuple(points))


def _measurement(values: Iterable[Value]) -> tuple[str, str, float] | None:
    for value in values:
        if value.metric == metrics.LATENCY and value.kind in _LATENCIES:
            return "latency", value.kind, value.value
        if value.metric == metrics.MESSAGE_RATE and value.value > 0:
            return "inverse_bandwidth", value.kind, 1e9 / value.value
    return None


def _stages(values: list[Value], messages: float, *, waits: bool) -> float | None:
    """Stage time of a message, ns: all its packets at both ends, without acknowledgements.

    Leaves out `reply`, which sends another packet. Counts the wait in the queue only for a latency,
    which contains it; when messages follow each other closely, that wait is another message's time.
    """
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
    per_message = total / messages if messages and seen == {"tx", "rx"} else None
    return per_message if per_message is not None and per_message >= 0 else None


def _messages(values: list[Value], size: int) -> float:
    """Messages in both directions: what the benchmark counted, else by the bytes on the wire.

    The bytes include those of retransmissions and, in MPI, of the library: there they do not count.
    """
    counted = sum(value.value for value in values if value.metric == metrics.MESSAGES)
    if counted > 0:
        return counted
    carried = sum(value.value for value in values if value.metric == metrics.PAYLOAD_BYTES)
    known = size > 0 and carried > 0 and values[0].tool not in MPI_TOOLS
    return carried / size if known else 0.0


def _amounts(values: list[Value], messages: float) -> Iterator[tuple[str, float]]:
    """What the rest is fitted to, per message, besides its bytes."""
    if not messages:
        return
    known = {value.metric: value.value for value in values}
    frames = known.get(metrics.DATA_FRAMES, 0.0)
    if 0 < frames <= _LONGEST:
        yield PACKETS, frames / messages
        if 0 < (headers := known.get(metrics.HEADER_BYTES, 0.0)) <= _LONGEST:
            yield HEADERS, headers * frames / messages
    if (packets := _adapter_packets(values)) > 0:
        yield ADAPTER_PACKETS, packets / messages
    name, spent = CPU, _cpu_by_owner(values, _MARGINAL)
    # starting mpirun takes far more CPU time than its messages do
    if not spent and values[0].tool not in MPI_TOOLS:
        name = CPU_WITH_START
        spent = {owner: ns / messages for owner, ns in _cpu_by_owner(values, ("time",)).items()}
    if spent:
        yield name, sum(spent.values())
        for owner in OWNERS:
            if spent.get(owner):
                yield f"{name} {owner}", spent[owner]


def _cpu_by_owner(values: list[Value], kinds: Container[str]) -> dict[str, float]:
    """CPU time in the kernel, both nodes together, by owner."""
    spent: defaultdict[str, float] = defaultdict(float)
    for value in values:
        account = metrics.Account.parse(value.metric)
        if account is None or value.kind not in kinds or not 0 <= value.value <= _LONGEST:
            continue
        if account.context != "user" and "." not in account.context and account.owner in OWNERS:
            spent[account.owner] += value.value
    return dict(spent)


def _adapter_packets(values: list[Value]) -> float:
    """What the devices of both nodes sent."""
    counters: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for value in values:
        counter = metrics.Counter.parse(value.metric, "adapter")
        if counter is not None and 0 <= value.value <= _LONGEST:
            counters[value.node][counter.counter] = int(value.value)
    return float(sum(adapter.sent_and_received(each).sent or 0 for each in counters.values()))


def _regime(values: list[Value], size: int, amounts: Mapping[str, float]) -> Regime:
    """Whether a message is one packet: by the path MTU, else by the frames on the wire.

    Retransmissions and what an MPI library sends at its start make the frames a little more.
    """
    mtu = next((value.value for value in values if value.metric == metrics.PATH_MTU), None)
    several = (
        size > mtu
        if mtu is not None
        else amounts.get(PACKETS, 1.0) >= _SEVERAL
        or amounts.get(ADAPTER_PACKETS, 1.0) >= _SEVERAL_ANSWERED
    )
    return Regime.SEVERAL if several else Regime.ONE
