# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's results as checks ask for them: one value a repetition, by size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from rocelab.accelerators import is_emulated
from rocelab.studies.study import Operand

_TIMES = frozenset({"ns", "bytes/s", "1/s"})
_SMALLER_IS_BETTER = frozenset({"ns"})
_SHARES_OF_TIME = ("cpu.",)


@dataclass(frozen=True)
class Samples:
    """One operand's values: by size, of each repetition the mean over the nodes that gave one."""

    by_size: dict[int, list[float]]
    unit: str
    is_time: bool
    """Whether the quantity is a time, a rate or a share of time."""

    def best(self, sizes: list[int]) -> list[float]:
        """Of each repetition the best value over the sizes."""
        choose = min if self.unit in _SMALLER_IS_BETTER else max
        return [choose(values) for values in zip(*(self.by_size[s] for s in sizes), strict=False)]


@dataclass(frozen=True)
class Ranks:
    """With how many a benchmark ran."""

    together: int
    per_node: int


@dataclass(frozen=True)
class Results:
    """The table of a run's results (docs/formats/results.md), and what run.json says of them."""

    table: pl.DataFrame
    switches: int | None = None
    """Between the first node and the others; None: nobody said."""
    called: str = "this run"
    ranks: Mapping[str, Ranks] = field(default_factory=dict)
    """Of MPI benchmarks, by their titles."""

    @property
    def accelerators(self) -> list[str]:
        """Under which accelerators it was measured."""
        return sorted(self.table["accelerator"].unique())

    @property
    def repetitions(self) -> int:
        """How many repetitions the run has at most."""
        return int(self.table["repetition"].n_unique())

    def of(self, operand: Operand) -> Samples | None:
        """An operand's values; None when the run has none."""
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
        is_time = unit in _TIMES or operand.metric.startswith(_SHARES_OF_TIME)
        return Samples(by_size, unit, is_time)

    def finished(self, test: str, transport: str) -> int:
        """Repetitions in which a benchmark over a transport gave results."""
        return int(self.table.filter(test=test, transport=transport)["repetition"].n_unique())


def usable(results: Results, *operands: Operand) -> tuple[Samples, ...] | str:
    """The operands' samples, or why the run cannot answer."""
    found = []
    for operand in operands:
        samples = results.of(operand)
        if samples is None:
            return nothing(operand.transport, operand.text, results)
        if unlike := _other_ranks(operand, results):
            return unlike
        found.append(samples)
    named = results.accelerators
    if any(samples.is_time for samples in found):
        if any(map(is_emulated, named)):
            return f"because the nodes were emulated ({', '.join(named)}): no real time"
        if len(named) > 1:
            return (
                f"because {results.called} has times of several accelerators ({', '.join(named)})"
            )
    if any(value <= 0 for samples in found for some in samples.by_size.values() for value in some):
        return "because a measured value is not above 0"
    return tuple(found)


def _other_ranks(operand: Operand, results: Results) -> str:
    """Why what was measured is not what the claim names; empty when it is."""
    if operand.ranks is None and operand.ranks_per_node is None:
        return ""
    ran = results.ranks.get(operand.test)
    if ran is None:
        return f"because {results.called} does not say with how many ranks {operand.test} ran"
    for number, claimed, what in (
        (ran.together, operand.ranks, ""),
        (ran.per_node, operand.ranks_per_node, " a node"),
    ):
        if claimed not in (None, number):
            ranks = f"{number} rank{'' if number == 1 else 's'}{what}"
            return f"because {operand.test} ran with {ranks}, the claim is about {claimed}"
    return ""


def nothing(transport: str, what: str, results: Results) -> str:
    """Why a run says nothing of what is asked for."""
    if results.table.filter(transport=transport).is_empty():
        return f"because {results.called} has nothing over {transport}"
    return f"because {results.called} has no {what}"
