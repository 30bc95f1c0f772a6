# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's results as checks need them: by size, one value per repetition."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from rocelab import metrics
from rocelab.accelerators import INSTRUCTIONS, is_emulated
from rocelab.studies.claims import Operand

_TIMES = frozenset({"ns", "bytes/s", "1/s"})
_SMALLER_IS_BETTER = frozenset({"ns", INSTRUCTIONS})


@dataclass(frozen=True)
class Samples:
    """One operand's values by size and repetition: the mean over the nodes that have one."""

    by_size: Mapping[int, Mapping[int, float]]
    unit: str
    is_time: bool
    """Whether the quantity is a time, a rate or a share of time."""

    def best(self, sizes: Sequence[int]) -> dict[int, float]:
        """The best value over the sizes, for each repetition that has them all."""
        choose = min if self.unit in _SMALLER_IS_BETTER else max
        return {r: choose(values) for r, values in self._each(sizes)}

    def mean(self, sizes: Sequence[int], *, geometric: bool) -> dict[int, float]:
        """The mean over the sizes, for each repetition that has them all."""
        mean = statistics.geometric_mean if geometric else statistics.fmean
        return {r: mean(values) for r, values in self._each(sizes)}

    def _each(self, sizes: Sequence[int]) -> Iterator[tuple[int, list[float]]]:
        columns = [self.by_size[size] for size in sizes]
        for repetition in sorted(set[int].intersection(*map(set, columns))):
            yield repetition, [column[repetition] for column in columns]


@dataclass(frozen=True)
class Ranks:
    """How many ranks a benchmark ran with."""

    together: int
    per_node: int


@dataclass(frozen=True)
class Results:
    """A run's results (docs/formats/results.md) and the facts about them in run.json."""

    table: pl.DataFrame
    switches: int | None = None
    """Switches between the first node and the others; None: not recorded."""
    called: str = "this run"
    ranks: Mapping[str, Ranks] = field(default_factory=dict)
    """Ranks of MPI benchmarks, by tool and title."""
    stalled: frozenset[str] = frozenset()
    """Names of cells that did not end in time, or whose nodes stopped answering."""
    seconds: float | None = None
    """How long a repetition took; None: unknown."""

    @property
    def accelerators(self) -> list[str]:
        """The accelerators under which it was measured."""
        return sorted(self.table["accelerator"].unique())

    @property
    def repetitions(self) -> int:
        """The most repetitions that any benchmark has."""
        return int(self.table["repetition"].n_unique())

    def samples(self, operand: Operand) -> Samples | None:
        """An operand's values; None if the run has none."""
        rows = self.table.filter(
            tool=operand.tool,
            test=operand.test,
            metric=operand.metric,
            transport=operand.transport,
        ).drop_nulls("size")
        if operand.kind:
            rows = rows.filter(kind=operand.kind)
        if rows.is_empty():
            return None
        means = (
            rows.group_by("size", "repetition")
            .agg(pl.col("value").mean())
            .sort("size", "repetition")
        )
        by_size: dict[int, dict[int, float]] = {}
        for size, repetition, value in means.iter_rows():
            by_size.setdefault(int(size), {})[int(repetition)] = float(value)
        unit = str(rows["unit"][0])
        is_time = unit in _TIMES or (
            unit != INSTRUCTIONS and metrics.is_share_of_time(operand.metric)
        )
        return Samples(by_size, unit, is_time)

    def hung(self, tool: str, test: str, transport: str) -> int:
        """Number of repetitions in which a benchmark over a transport stalled."""
        return sum(name.startswith(f"{tool}-{test}.{transport}.") for name in self.stalled)

    def repetitions_of(self, tool: str, test: str, transport: str) -> int:
        """Number of repetitions in which a benchmark over a transport gave results."""
        rows = self.table.filter(tool=tool, test=test, transport=transport)
        return int(rows["repetition"].n_unique())


def usable(results: Results, *operands: Operand) -> tuple[Samples, ...] | str:
    """The operands' samples, or the reason why the run cannot test the claim."""
    every = []
    for operand in operands:
        samples = results.samples(operand)
        if samples is None:
            return why_no_data(operand.transport, operand.text, results)
        if reason := _other_ranks(operand, results):
            return reason
        every.append(samples)
    named = results.accelerators
    if any(samples.is_time for samples in every):
        if any(map(is_emulated, named)):
            return f"because the nodes were emulated ({', '.join(named)}) and have no real time"
        if len(named) > 1:
            return (
                f"because {results.called} has times from several accelerators ({', '.join(named)})"
            )
    return tuple(every)


def not_positive(sizes: Iterable[int], *samples: Samples) -> str:
    """Why a ratio at these sizes has no meaning; empty if it has one."""
    for size in sizes:
        if any(value <= 0 for some in samples for value in some.by_size[size].values()):
            return f"because a measured value at {size} bytes is not above 0"
    return ""


def _other_ranks(operand: Operand, results: Results) -> str:
    """Why the ranks are not those that the claim names; empty if they are."""
    if operand.ranks is None and operand.ranks_per_node is None:
        return ""
    ran = results.ranks.get(operand.benchmark)
    if ran is None:
        return f"because {results.called} does not say how many ranks {operand.benchmark} ran with"
    for number, claimed, where in (
        (ran.together, operand.ranks, ""),
        (ran.per_node, operand.ranks_per_node, " per node"),
    ):
        if claimed not in (None, number):
            ranks = f"{number} rank{'' if number == 1 else 's'}{where}"
            return f"because {operand.benchmark} ran with {ranks}, but the claim is about {claimed}"
    return ""


def why_no_data(transport: str, data: str, results: Results) -> str:
    """Why a run has no data for a check."""
    if results.table.filter(transport=transport).is_empty():
        return f"because {results.called} has nothing over {transport}"
    return f"because {results.called} has no {data}"
