# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's results as checks need them: by size, one value per repetition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from rocelab import metrics
from rocelab.accelerators import is_emulated
from rocelab.studies.claims import Operand

_TIMES = frozenset({"ns", "bytes/s", "1/s"})
_SMALLER_IS_BETTER = frozenset({"ns"})


@dataclass(frozen=True)
class Samples:
    """One operand's values by size: for each repetition the mean over the nodes that have one."""

    by_size: dict[int, list[float]]
    unit: str
    is_time: bool
    """Whether the quantity is a time, a rate or a share of time."""

    def best(self, sizes: list[int]) -> list[float]:
        """The best value over the sizes, for each repetition."""
        choose = min if self.unit in _SMALLER_IS_BETTER else max
        return [choose(values) for values in zip(*(self.by_size[s] for s in sizes), strict=False)]


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
    """Ranks of MPI benchmarks, by title."""

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
            test=operand.test, metric=operand.metric, transport=operand.transport
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
        by_size: dict[int, list[float]] = {}
        for size, _, value in means.iter_rows():
            by_size.setdefault(int(size), []).append(float(value))
        unit = str(rows["unit"][0])
        is_time = unit in _TIMES or metrics.is_share_of_time(operand.metric)
        return Samples(by_size, unit, is_time)

    def finished(self, test: str, transport: str) -> int:
        """Number of repetitions in which a benchmark over a transport gave results."""
        return int(self.table.filter(test=test, transport=transport)["repetition"].n_unique())


def usable(results: Results, *operands: Operand) -> tuple[Samples, ...] | str:
    """The operands' samples, or the reason why the run cannot test the claim."""
    found = []
    for operand in operands:
        samples = results.samples(operand)
        if samples is None:
            return why_no_data(operand.transport, operand.text, results)
        if reason := _other_ranks(operand, results):
            return reason
        found.append(samples)
    named = results.accelerators
    if any(samples.is_time for samples in found):
        if any(map(is_emulated, named)):
            return f"because the nodes were emulated ({', '.join(named)}) and have no real time"
        if len(named) > 1:
            return (
                f"because {results.called} has times from several accelerators ({', '.join(named)})"
            )
    if any(value <= 0 for samples in found for some in samples.by_size.values() for value in some):
        return "because a measured value is not above 0"
    return tuple(found)


def _other_ranks(operand: Operand, results: Results) -> str:
    """Why the ranks are not those that the claim names; empty if they are."""
    if operand.ranks is None and operand.ranks_per_node is None:
        return ""
    ran = results.ranks.get(operand.test)
    if ran is None:
        return f"because {results.called} does not say how many ranks {operand.test} ran with"
    for number, claimed, what in (
        (ran.together, operand.ranks, ""),
        (ran.per_node, operand.ranks_per_node, " per node"),
    ):
        if claimed not in (None, number):
            ranks = f"{number} rank{'' if number == 1 else 's'}{what}"
            return f"because {operand.test} ran with {ranks}, but the claim is about {claimed}"
    return ""


def why_no_data(transport: str, what: str, results: Results) -> str:
    """Why a run has no data for a check."""
    if results.table.filter(transport=transport).is_empty():
        return f"because {results.called} has nothing over {transport}"
    return f"because {results.called} has no {what}"
