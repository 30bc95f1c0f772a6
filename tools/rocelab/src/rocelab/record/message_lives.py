# SPDX-License-Identifier: GPL-2.0-or-later
"""The lives of single messages that results.parquet holds, one for each size of a benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rocelab import metrics, stage_table
from rocelab.group_by import group_by
from rocelab.record.read import Run, Series

PLACES = ("tx", "rx", "answer_tx", "answer_rx")
_STAGES = {
    place: frozenset(stage_table.IN_TIME["tx" if place.endswith("tx") else "rx"])
    for place in PLACES
}
_LONGEST = 1e18
"""ns; what says more, or less than its negative, was not measured."""
_REQUESTER = metrics.LifeSpan("requester").name
_NEEDED = frozenset({"requester", "wire", "responder", "requester_side", "responder_side"})


@dataclass(frozen=True)
class Life:
    """One message, in ns: `stages` by place and stage, `spans` by name."""

    size: int
    repetition: int
    of: int
    requester: str
    responder: str
    stages: Mapping[str, Mapping[str, float]]
    spans: Mapping[str, float]
    measured: tuple[str, float] | None
    """Kind and mean, ns, of the latency that the benchmark measured then, if it measures one."""

    def length(self, place: str) -> float:
        """All of a packet's time at one end."""
        return sum(self.stages[place].values())


@dataclass(frozen=True)
class Subject:
    """A benchmark over a transport, and a message's life by size."""

    accelerator: str
    benchmark: str
    transport: str
    driver: str
    program: str
    lives: tuple[Life, ...]


def subjects(run: Run) -> list[Subject]:
    """Return what there is, in the order of the results."""
    found = [
        item for item in run.series if item.metric == metrics.LATENCY or _is_of_a_life(item.metric)
    ]
    result = []
    for names, series in group_by(
        found, lambda i: (i.accelerator, i.benchmark, i.transport)
    ).items():
        lives = tuple(_lives(series))
        if lives:
            result.append(Subject(*names, series[0].driver, series[0].program, lives))
    return result


def _is_of_a_life(metric: str) -> bool:
    parts = (metrics.LifeStage.parse(metric), metrics.LifeSpan.parse(metric))
    return metric == metrics.LIFE_OF or any(parts)


def _lives(series: Sequence[Series]) -> Iterator[Life]:
    for size, members in sorted(group_by(series, lambda item: item.size).items()):
        total = next(
            (item for item in members if item.metric == metrics.LifeSpan("requester").name), None
        )
        if total is None:
            continue
        # the message of the repetition in the middle: a real one, never a mean of several
        ordered = sorted(zip(total.values, total.repetitions, strict=True))
        _, repetition = ordered[(len(ordered) - 1) // 2]
        life = _life(size, repetition, members)
        if life is not None:
            yield life


def _life(size: int, repetition: int, members: Sequence[Series]) -> Life | None:
    stages: dict[str, dict[str, float]] = {place: {} for place in PLACES}
    spans: dict[str, float] = {}
    nodes: dict[str, str] = {}
    of = 0
    measured = None
    for item in members:
        values = dict(zip(item.repetitions, item.values, strict=True))
        if repetition not in values:
            continue
        if item.metric == metrics.LATENCY:
            measured = (item.kind, values[repetition])
            continue
        if item.metric == metrics.LIFE_OF:
            of = int(values[repetition])
        elif span := metrics.LifeSpan.parse(item.metric):
            spans[span.span] = values[repetition]
        elif (part := metrics.LifeStage.parse(item.metric)) and part.stage in _STAGES[part.place]:
            stages[part.place][part.stage] = values[repetition]
            nodes[part.place] = item.node
    if not spans.keys() >= _NEEDED or set(nodes) != set(PLACES) or spans["requester"] <= 0:
        return None
    times = [*spans.values(), *(ns for known in stages.values() for ns in known.values())]
    if max(map(abs, times)) > _LONGEST:
        return None
    return Life(size, repetition, of, nodes["tx"], nodes["rx"], stages, spans, measured)
