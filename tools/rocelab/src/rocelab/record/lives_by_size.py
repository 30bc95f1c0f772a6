# SPDX-License-Identifier: GPL-2.0-or-later
"""The lives of single messages that results.parquet holds, one for each size of a benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rocelab import metrics
from rocelab.group_by import group_by
from rocelab.record import message_life
from rocelab.record.message_life import MessageLife
from rocelab.record.read import Run, Series

_REQUESTER = metrics.LifeSpan("requester").name


@dataclass(frozen=True)
class LifeOfSize:
    """The life of a message of `size` bytes, from the repetition with the median time."""

    size: int
    repetition: int
    life: MessageLife
    measured: tuple[str, float] | None
    """Kind and mean, ns, of the latency that the benchmark measured then, if it measures one."""


@dataclass(frozen=True)
class Subject:
    """A benchmark over a transport, and a message's life by size."""

    accelerator: str
    benchmark: str
    transport: str
    driver: str
    program: str
    lives: tuple[LifeOfSize, ...]


def subjects(run: Run) -> list[Subject]:
    """Return what there is, in the order of the results."""
    items = [
        item
        for item in run.series
        if item.metric == metrics.LATENCY or message_life.is_part(item.metric)
    ]
    result = []
    for names, series in group_by(
        items, lambda i: (i.accelerator, i.benchmark, i.transport)
    ).items():
        lives = tuple(_lives(series))
        if lives:
            result.append(Subject(*names, series[0].driver, series[0].program, lives))
    return result


def _lives(series: Sequence[Series]) -> Iterator[LifeOfSize]:
    for size, members in sorted(group_by(series, lambda item: item.size).items()):
        total = next((item for item in members if item.metric == _REQUESTER), None)
        if total is None:
            continue
        # the message of the repetition in the middle: a real one, never a mean of several
        ordered = sorted(zip(total.values, total.repetitions, strict=True))
        _, repetition = ordered[(len(ordered) - 1) // 2]
        there = [
            (item, item.values[item.repetitions.index(repetition)])
            for item in members
            if repetition in item.repetitions
        ]
        life = message_life.from_values((item.node, item.metric, value) for item, value in there)
        latencies = [(item.kind, value) for item, value in there if item.metric == metrics.LATENCY]
        if life is not None:
            yield LifeOfSize(size, repetition, life, latencies[-1] if latencies else None)
