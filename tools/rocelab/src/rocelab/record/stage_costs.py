# SPDX-License-Identifier: GPL-2.0-or-later
"""What a packet cost in each stage of the driver, at both ends, by message size: the numbers.

A bar is the cost of one packet: of a typical one, or the mean over all. Where only some packets
pass a stage (`cqe`: those that complete a message), its time is spread over all packets of the bar;
`xmit` is not: where it is absent it was not seen, not skipped.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rocelab import accelerators, metrics, stage_table, units
from rocelab.record.read import Series

SENT = metrics.Stage("tx", "bth", "count").name
"""How many packets a node sent in a step."""
_FEW = 5
"""The middle half of fewer packets is one or two of them."""


@dataclass(frozen=True)
class Place:
    """Whose packets a panel shows: where, which way, and of which opcode class."""

    node: str
    direction: str
    opcode_class: str

    @property
    def title(self) -> str:
        """Name the panel."""
        verb = "sends" if self.direction == "tx" else "receives"
        return f"{self.node} {verb} {packet_name(self.opcode_class)}"


@dataclass(frozen=True)
class Cost:
    """One stage of one bar, in ns, means over repetitions: means add up, medians do not.

    `per_packet` is over all packets of the bar, `cost` and `mean` over the `packets` that passed
    the stage: `cost` is the bar's figure, from which `atypical` of them differ much. `spread` is
    the smallest and the largest repetition of `per_packet`. `p50` and `p99` are of single packets
    (medians over repetitions), None where the results have none.
    """

    stage: str
    per_packet: float
    cost: float
    mean: float
    packets: int
    atypical: int
    spread: tuple[float, float]
    p50: float | None
    p99: float | None


@dataclass(frozen=True)
class Bar:
    """One message size at one place; `capsule` is encapsulation or decapsulation, ns per packet."""

    size: int
    costs: tuple[Cost, ...]
    capsule: float | None

    @property
    def total(self) -> float:
        """The sum of all stages but `stage_table.APART`, in ns per packet."""
        return sum(cost.per_packet for cost in self.costs if cost.stage not in stage_table.APART)

    def cost(self, stage: str) -> Cost | None:
        """Return one stage's cost, if it was measured."""
        return next((cost for cost in self.costs if cost.stage == stage), None)


def is_acknowledgement(opcode_class: str) -> bool:
    """Say whether an opcode class is the answers that carry no message."""
    return opcode_class == "ACKNOWLEDGE"


def packet_name(opcode_class: str) -> str:
    """Return an opcode class as a heading writes it: `RDMA WRITE`."""
    return opcode_class.replace("_", " ")


def is_packet_cost(series: Series) -> bool:
    """Say whether a series is what `bars` is made of."""
    return any(family.parse(series.metric) for family in (metrics.Stage, metrics.Capsule))


def packets_by_class(series: Iterable[Series]) -> Counter[str]:
    """How many data packets of each opcode class were sent, in all repetitions.

    The most frequent ones carry the messages. To connect, an MPI library also sends a few of other
    classes, whose costs say nothing about a message's.
    """
    sent = Counter[str]()
    for item in series:
        if item.metric == SENT and not is_acknowledgement(item.kind):
            sent[item.kind] += round(sum(item.values))
    return sent


def rare_classes(sent: Iterable[tuple[str, float]]) -> Counter[str]:
    """The opcode classes of too few packets for a cost of one, and how many there were.

    `sent` is each class with how many packets a node sent in a step; those with five in some step
    are not rare. Nothing, if all would be.
    """
    packets, most = Counter[str](), Counter[str]()
    for opcode_class, count in sent:
        packets[opcode_class] += round(count)
        most[opcode_class] = max(most[opcode_class], round(count))
    rare = {name for name, count in most.items() if count < _FEW}
    return Counter({name: packets[name] for name in rare if rare != most.keys()})


def without_rare(rare: Counter[str]) -> str:
    """Say what a table or figure leaves out."""
    packets = (f"{n:,} {packet_name(name)}" for name, n in sorted(rare.items()))
    return f"Packets of kinds that are too rare for a cost are left out: {', '.join(packets)}."


def figure_of(series: Iterable[Series]) -> str:
    """Return `metrics.TYPICAL` where instructions are counted and every stage has it.

    Otherwise `metrics.MEAN`: times vary so much that few packets are near the median, and medians
    do not add up; of all sizes together no packet is typical; older versions did not record it.
    """
    known: dict[str, set[tuple[object, ...]]] = {metrics.MEAN: set(), metrics.TYPICAL: set()}
    for item in series:
        metric = metrics.Stage.parse(item.metric)
        if metric and metric.figure in known:
            place = item.test, item.transport, item.node, item.kind, item.size, item.repetitions
            known[metric.figure].add((*place, metric.direction, metric.stage))
            counts = accelerators.of(item.accelerator).counts_instructions
            if item.size == units.ALL_SIZES or not counts:
                return metrics.MEAN
    same = known[metrics.MEAN] == known[metrics.TYPICAL]
    return metrics.TYPICAL if same else metrics.MEAN


def bars(series: Sequence[Series], figure: str) -> dict[Place, list[Bar]]:
    """Return the bars of series that share benchmark, transport and accelerator.

    `figure` is one that all of them have (`figure_of`); `stage_table.APART` are means.
    """
    tree: dict[Place, dict[int, dict[str, dict[str, Series]]]] = {}
    capsules: dict[tuple[Place, int], float] = {}
    for item in series:
        if metric := metrics.Stage.parse(item.metric):
            direction, stage, statistic = metric
            if stage in stage_table.BY_DIRECTION[direction]:
                place = Place(item.node, direction, item.kind)
                sizes = tree.setdefault(place, {})
                sizes.setdefault(item.size, {}).setdefault(stage, {})[statistic] = item
        elif (capsule := metrics.Capsule.parse(item.metric)) and capsule.figure == figure:
            place = Place(item.node, capsule.direction, item.kind)
            capsules[place, item.size] = item.spread.mean
    result: dict[Place, list[Bar]] = {}
    for place in _path_order(list(tree)):
        drawn = [
            Bar(size, costs, capsules.get((place, size)))
            for size, passed in sorted(tree[place].items())
            if (costs := _costs(place.direction, passed, figure))
        ]
        if drawn:
            result[place] = drawn
    return result


def _costs(direction: str, passed: dict[str, dict[str, Series]], figure: str) -> tuple[Cost, ...]:
    # of waits, none is typical
    figures = {stage: metrics.MEAN if stage in stage_table.APART else figure for stage in passed}
    values = {
        stage: _by_repetition(s[figures[stage]])
        for stage, s in passed.items()
        if {figures[stage], metrics.MEAN, "count"} <= set(s)
    }
    counts = {stage: _by_repetition(passed[stage]["count"]) for stage in values}
    shares: dict[str, dict[int, float]] = {}
    for stage, by_repetition in values.items():
        for repetition, value in by_repetition.items():
            packets = max(known.get(repetition, 0.0) for known in counts.values())
            count = counts[stage].get(repetition, 0.0)
            if packets > 0 and count > 0:
                weight = 1.0 if stage in stage_table.OBSERVED else count / packets
                shares.setdefault(stage, {})[repetition] = value * weight
    repetitions = {repetition for known in shares.values() for repetition in known}
    for stage, known in shares.items():
        if (
            stage not in stage_table.OBSERVED
        ):  # no packet of that repetition passed it, so it cost nothing
            known.update(dict.fromkeys(repetitions - known.keys(), 0.0))
    return tuple(
        Cost(
            stage,
            per_packet=statistics.fmean(shares[stage].values()),
            cost=statistics.fmean(values[stage].values()),
            mean=statistics.fmean(passed[stage][metrics.MEAN].values),
            packets=int(sum(counts[stage].values())),
            atypical=_atypical(passed[stage], figures[stage]),
            spread=(min(shares[stage].values()), max(shares[stage].values())),
            p50=_median(passed[stage].get("p50")),
            p99=_median(passed[stage].get("p99")),
        )
        for stage in stage_table.BY_DIRECTION[direction]
        if stage in shares
    )


def _by_repetition(series: Series) -> dict[int, float]:
    return dict(zip(series.repetitions, series.values, strict=True))


def _atypical(passed: dict[str, Series], figure: str) -> int:
    counts = passed.get("atypical") if figure == metrics.TYPICAL else None
    return 0 if counts is None else int(sum(counts.values))


def _median(series: Series | None) -> float | None:
    return None if series is None else series.spread.median


def _path_order(places: Sequence[Place]) -> list[Place]:
    """Order places as a packet meets them: sent here, received there, and then the way back."""
    nodes = sorted({place.node for place in places})

    def key(place: Place) -> tuple[str, int, int]:
        position = nodes.index(place.node)
        # with two nodes, what n2 receives is what n1 sent
        sender = position if place.direction == "tx" or len(nodes) != 2 else 1 - position
        return place.opcode_class, sender, 0 if place.direction == "tx" else 1

    return sorted(places, key=key)
