# SPDX-License-Identifier: GPL-2.0-or-later
"""What a packet cost in each stage of the driver, as a table that fits the terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import polars as pl
from rich.console import RenderableType

from rocelab import accelerators, metrics, stage_table
from rocelab.plans.catalog import Test
from rocelab.record import stage_costs
from rocelab.stats.summary import mean
from rocelab.terminal import grid

_COVERAGE = {
    "total": "mean latency of one message",
    "stages": "  in these stages (without reply)",
    "outside": "  outside the driver",
}
"""Both directions of the ping-pong together (coverage in docs/formats/results.md)."""
_TYPICAL = "Typical: the mean of the middle half of the packets. Over an eighth away from it are"
_RECEIVED = metrics.Stage("rx", "parse", "count").name


@dataclass(frozen=True)
class _Columns:
    """The columns of a table of stages."""

    places: dict[str, pl.DataFrame]
    """Results of a message size, or of an opcode class, by title."""
    packets: str
    """Which packets they are of."""
    figure: str
    """`mean`, or `typical` where instructions are counted and the run has it."""
    sizes: tuple[pl.DataFrame, ...] = ()
    """Results of each size where the columns are sizes."""
    rare: Counter[str] = field(default_factory=Counter[str])
    """The packets that are left out, by opcode class."""

    @classmethod
    def of_sizes(cls, rows: pl.DataFrame, name: str, sizes: Iterable[int], *, counts: bool) -> Self:
        """Return a column for each size, of the packets that carry the data."""
        of_class = rows.filter(kind=name)
        return cls(
            {f"{size} B": of_class.filter(size=size) for size in sizes},
            f"{name} packet",
            metrics.TYPICAL if counts and _has_typical(of_class) else metrics.MEAN,
            tuple(rows.filter(size=size) for size in sizes),
        )

    @classmethod
    def of_classes(cls, rows: pl.DataFrame, *, counts: bool) -> Self:
        """Return a column for each opcode class that was sent, as an MPI library chose."""
        is_data = (pl.col("metric") == stage_costs.SENT) & (pl.col("kind") != "ACKNOWLEDGE")
        sent = rows.filter(is_data)
        rare = stage_costs.rare_classes(sent.select("kind", "value").iter_rows())
        of_class = {name: rows.filter(kind=name) for name in sorted({*sent["kind"]} - rare.keys())}
        one_size = sent["size"].null_count() == 0 and sent["size"].n_unique() == 1
        has_typical = counts and one_size and all(map(_has_typical, of_class.values()))
        packets = "packet" if one_size else "packet of all sizes"
        return cls(
            {
                name.removeprefix("RDMA_").replace("_", "\n"): some
                for name, some in of_class.items()
            },
            f"{next(iter(of_class))} {packets}" if len(of_class) == 1 else packets,
            metrics.TYPICAL if has_typical else metrics.MEAN,
            rare=rare,
        )


def render(
    title: str, rows: pl.DataFrame, test: Test, sizes: Iterable[int], unit: str, columns: int
) -> Iterator[RenderableType]:
    """Stage times per data packet, at its sender and its receiver; stages in rows.

    Columns are sizes, or opcode classes.
    """
    counts = unit == accelerators.INSTRUCTIONS
    if test.data_class:
        chosen = _Columns.of_sizes(rows, test.data_class, sizes, counts=counts)
    else:
        chosen = _Columns.of_classes(rows, counts=counts)
    places, figure = chosen.places, chosen.figure
    together = pl.concat([rows.clear(), *places.values()])
    sender = _busiest(together, stage_costs.SENT)
    receiver = _busiest(together, _RECEIVED)
    if sender is None or receiver is None:
        return
    how = f"{figure} {unit} per {chosen.packets}"
    how += ", mean over repetitions" if figure == metrics.TYPICAL else ", over all repetitions"
    yield grid.heading(title, how, columns)
    atypical: list[str] = []
    lines: list[tuple[str, ...]] = []
    bold: list[int] = []

    def add(
        label: str, frames: Iterable[pl.DataFrame], metric: str, *, strong: bool = False
    ) -> None:
        cells = [_mean(column, metric) for column in frames]
        if any(cells):
            bold.extend([len(lines)] if strong else [])
            lines.append((label, *cells))

    for whole, (direction, parts) in stage_table.CAPSULES.items():
        node = sender if direction == "tx" else receiver
        here = [column.filter(node=node) for column in places.values()]
        for name in stage_table.BY_DIRECTION[direction]:
            apart = name in stage_table.APART
            statistic = metrics.MEAN if apart else figure
            note = "" if statistic == figure else f"{statistic}, "
            wait = f" ({note}emulated ns)" if apart and counts else ""
            add(f"{direction} {name}{wait}", here, metrics.Stage(direction, name, statistic).name)
            if statistic == metrics.TYPICAL:
                atypical += _atypical(here, direction, name)
        sums = f"{whole} ({' + '.join(parts)})" if columns >= grid.WIDTH else whole
        add(sums, here, metrics.Capsule(whole, figure).name, strong=True)
    if not counts:
        for name, label in _COVERAGE.items():
            add(label, chosen.sizes, metrics.Coverage(name).name, strong=True)
    yield from grid.fit(("stage", *places), lines, columns, bold=bold)
    if atypical:
        at_all = ", at all sizes" if len(chosen.sizes) > 1 else ""
        text = f"{_TYPICAL}{at_all}: {', '.join(atypical)}."
        yield grid.paragraph(text, min(columns, grid.WIDTH), style="dim")
    if chosen.rare:
        yield grid.paragraph(
            stage_costs.without_rare(chosen.rare), min(columns, grid.WIDTH), style="dim"
        )


def _has_typical(rows: pl.DataFrame) -> bool:
    """Whether every stage has it, as `stage_costs.figure_of` asks."""
    counts = Counter(
        stage.figure for name in rows["metric"] if (stage := metrics.Stage.parse(name))
    )
    return counts[metrics.MEAN] == counts[metrics.TYPICAL]


def _atypical(columns: Sequence[pl.DataFrame], direction: str, stage: str) -> Iterator[str]:
    """How many packets are not typical; nothing where all are."""

    def number(figure: str) -> float:
        name = metrics.Stage(direction, stage, figure).name
        return math.fsum(value for one in columns for value in one.filter(metric=name)["value"])

    packets, atypical = number("count"), number("atypical")
    if atypical:
        share = atypical / packets
        yield f"{direction} {stage} {atypical:,.0f} of {packets:,.0f} ({share:.1%})"


def _mean(rows: pl.DataFrame, metric: str) -> str:
    """The mean, not the median: only means of stages add up to the mean of their sum."""
    values = rows.filter(metric=metric)
    return "" if values.is_empty() else f"{mean(values['value'].to_list()):,.0f}"


def _busiest(rows: pl.DataFrame, metric: str) -> str | None:
    """The node that saw the most packets: in a READ the server sends the data."""
    counts = rows.filter(pl.col("metric") == metric).group_by("node").agg(pl.col("value").sum())
    if counts.is_empty():
        return None
    return str(counts.sort("value", "node", descending=[True, False])["node"][0])
