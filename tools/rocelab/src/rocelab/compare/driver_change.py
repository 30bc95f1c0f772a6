# SPDX-License-Identifier: GPL-2.0-or-later
"""Judge two drivers by what packets cost in each stage: which stages moved, and how far.

On a clock that counts instructions, the cheapest packet of most stages costs the same each time, so
any difference is real. Where the rounds of one side differ (a stage that depends on the state of
the IP stack or of a slab), a difference must exceed that. What most packets pay and the cheapest
does not, the typical packet shows; what some packets pay, the mean. A mean has what interrupts and
refilled caches add, which must be exceeded, too, and says nothing if only few packets are not
typical: interrupts hit those.
In real time, each round gives one pair; a stage moved if the interval of the paired differences
excludes zero, at a confidence that holds for all figures together. Where the processor counts
cycles, those of the kernel are judged in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from rocelab import accelerators, metrics, stage_table
from rocelab.compare import driver_counters, kernel_cycles
from rocelab.compare.difference import Difference, of_pairs, percents, with_sign
from rocelab.errors import CellError
from rocelab.record import read
from rocelab.record.folder import RunFolder
from rocelab.stats import paired
from rocelab.stats.summary import CONFIDENCE, Interval

_KEY = ("tool", "test", "transport", "size", "node", "kind", "direction", "stage")
_FIGURES = ("min", "mean", "count")
_OPTIONAL = (metrics.TYPICAL, "atypical")
"""Figures that older versions did not record."""
_CHANCE = 0.01
"""Typical packets of two runs of one driver are that close: they differed by 0.24 % at most."""
_INTERRUPTED = 1 / 50
"""Packets of a stage that an interrupt hits, at most: 2 of 200 observed."""
_OF_ONE_KIND = 3 / 4
"""Packets that must be like the typical one, so that it contains no other kind."""
_DISTURBANCE = 40_000
"""Instructions that interrupts and a refill of the page allocator add to one step: observed up to
36,000 (`alloc` of 300 READ responses of 4 KiB)."""
_FEW_ROUNDS = 3
"""Means of two rounds are seldom as far apart as means can be: of the 90 ways to compare two with
two of six runs of one driver, 13 gave a difference beyond that."""
_WAKES = "cqe"
"""Whether it wakes the process that it completes for depends on whether that sleeps already, and
waking costs more than all else in it. So its mean says nothing, nor does its cheapest packet if
every packet of a side woke somebody."""
_POLLING = ("write_lat", "net")
"""Test and stage: the process polls, the driver works once in a timer tick, and the first IP ID in
a tick takes a random number. Whether all packets of a run pay for that is chance."""
_IP_ID = 100
"""Instructions that such an IP ID takes at most: 71 observed."""


@dataclass(frozen=True)
class Stage(Difference):
    """One stage of one kind of packet."""

    opcode: str
    direction: str
    stage: str
    figure: str
    """Of which packet it is: the cheapest (`min`), a `typical` one, or the `mean` of all."""
    noise: float
    """What the difference had to exceed, where instructions are counted."""


@dataclass(frozen=True)
class Answer:
    """What the change does."""

    accelerator: str
    rounds: int
    stages: tuple[Stage, ...]
    """The largest difference first, those that did not move last."""
    only: tuple[tuple[str, ...], tuple[str, ...]]
    """Packets that only base, or only change, has: stages by opcode."""
    counters: tuple[driver_counters.Moved, ...]
    """Numbers of packets, and the driver's counters of trouble, that moved."""
    cycles: tuple[kernel_cycles.Cycles, ...] = ()
    """In real time, where the processor counts them; in the same order."""

    @property
    def moved(self) -> tuple[Stage, ...]:
        """The stages that moved."""
        return tuple(stage for stage in self.stages if stage.moved)

    @property
    def figures(self) -> int:
        """How many figures are judged together."""
        return len(self.stages) + len(self.cycles)

    @property
    def moved_cycles(self) -> tuple[kernel_cycles.Cycles, ...]:
        """The counts of cycles that moved."""
        return tuple(each for each in self.cycles if each.moved)

    def beyond(self, threshold: float) -> tuple[Difference, ...]:
        """Return the stages and cycles that cost more by more than `threshold` percent."""
        return tuple(each for each in (*self.stages, *self.cycles) if each.is_beyond(threshold))

    def is_beyond(self, threshold: float) -> bool:
        """Whether something costs more than that allows, or the driver counts more trouble."""
        more = any(counter.is_worse for counter in self.counters)
        return more or bool(self.beyond(threshold))

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        counted = driver_counters.sentence(self.counters)
        parts = (
            self._of_stages,
            "" if self.is_blind else kernel_cycles.sentence(self.cycles),
            f"the driver counts {counted}" if counted else "",
        )
        return "; ".join(filter(None, parts))

    @property
    def is_blind(self) -> bool:
        """Whether there were too few rounds to tell of any stage whether it moved."""
        timed = not accelerators.of(self.accelerator).counts_instructions
        return timed and all(stage.interval is None for stage in self.stages)

    @property
    def _of_stages(self) -> str:
        if self.is_blind:
            number, all_of = self.rounds, len(self.stages)
            return (
                f"{number} round{'s' * (number > 1)} cannot tell whether any of {all_of} stages "
                f"moved: that takes {rounds_needed(self.figures)}"
            )
        if not self.moved:
            return f"no difference in any of {len(self.stages)} stages"
        groups: dict[str, list[Stage]] = {}
        for stage in self.moved:
            groups.setdefault(f"{stage.stage} of {_WAYS[stage.direction]} packets", []).append(
                stage
            )
        parts = [f"{name} {_range_text(stages)}" for name, stages in groups.items()]
        rest = len(self.stages) - len(self.moved)
        none = "no other stage moved" if self.cycles else "nothing else moved"
        return f"{', '.join(parts)}; {none if rest else 'every stage moved'}"


_WAYS = {"tx": "sent", "rx": "received"}


def _range_text(stages: Sequence[Stage]) -> str:
    low, high = (choose(stages, key=lambda stage: stage.difference) for choose in (min, max))
    unit = stages[0].unit
    if f"{low.difference:.0f}" == f"{high.difference:.0f}":
        text = f"{with_sign(high.difference)} {unit}"
        shares = percents(stages)
        return f"{text} ({shares})" if shares else text
    return f"{with_sign(low.difference)} to {with_sign(high.difference)} {unit}"


def judge(base: Sequence[Path], change: Sequence[Path]) -> Answer:
    """Compare run folders, one pair for each round. Raises CellError if they share no stage."""
    accelerator = str(RunFolder(base[0]).meta().get("accelerator"))
    known = accelerators.of(accelerator)
    counts = known.counts_instructions
    tables = [_stages(paths) for paths in (base, change)]
    both = tables[0].join(tables[1], on=[*_KEY, "unit"], suffix="_2").sort(_KEY)
    if both.is_empty():
        raise CellError(
            "base and change have no stage in common",
            cause="the probe saw no packets, or the drivers name their stages differently",
            action="Look at both runs with `rocelab show`.",
        )
    cycles = kernel_cycles.pairs(base, change) if known.is_real_time else ()
    confidence = 1 - (1 - CONFIDENCE) / (len(both) + len(cycles))
    apart = {name: _apart(both, name) for name in ("min", "mean", metrics.TYPICAL)}
    stages = []
    for row in both.iter_rows(named=True):
        pairs = {
            name: (row[name], row[f"{name}_2"])
            for name in (*_FIGURES, *_OPTIONAL)
            if all(len(row[side] or ()) == len(base) for side in (name, f"{name}_2"))
        }
        if counts:
            where = row["direction"], row["stage"]
            least = _IP_ID if (row["test"], row["stage"]) == _POLLING else 0
            judged = _judge_counts(
                row["stage"],
                pairs,
                max(least, apart["min"][where]),
                max(least, _FEW_ROUNDS * (apart[metrics.TYPICAL][where] or 0)),
                apart["mean"][where],
            )
        else:
            judged = _judge_times(pairs, confidence)
        figure = pairs[judged[0]]
        stages.append(
            Stage(
                **{key: row[key] for key in _KEY if key != "kind"},
                opcode=row["kind"],
                figure=judged[0],
                unit=row["unit"] if counts or known.is_real_time else f"emulated {row['unit']}",
                base=tuple(figure[0]),
                change=tuple(figure[1]),
                difference=judged[1],
                interval=judged[2],
                noise=judged[3],
                moved=judged[4],
            )
        )
    ordered = sorted(stages, key=lambda stage: (not stage.moved, -abs(stage.difference)))
    # in real time, one round says nothing of chance
    enough = counts or len(base) > 1
    return Answer(
        accelerator,
        len(base),
        tuple(ordered),
        (_alone(tables), _alone(tables[::-1])),
        driver_counters.counters_that_moved(base, change, exact=counts) if enough else (),
        kernel_cycles.judge(cycles, confidence),
    )


_Pairs = dict[str, tuple[list[float], list[float]]]
_Judged = tuple[str, float, Interval | None, float, bool]
"""The figure that says it, difference, interval, noise, whether it moved."""


def _apart(both: pl.DataFrame, figure: str) -> dict[tuple[str, str], float]:
    """By direction and stage: how far the rounds of one side are apart in this figure.

    Taken from all kinds of packets together: what disturbs one kind in these few rounds disturbs
    another in the next.
    """
    sides = [pl.col(name).list for name in (figure, f"{figure}_2")]
    widest = pl.max_horizontal(*(side.max() - side.min() for side in sides)).max()
    grouped = both.group_by("direction", "stage").agg(widest.alias("widest"))
    return {(row[0], row[1]): row[2] for row in grouped.iter_rows()}


def _judge_counts(
    stage: str, pairs: _Pairs, least_apart: float, typical_apart: float, mean_apart: float
) -> _Judged:
    least, mean = _gap(pairs["min"]), _gap(pairs["mean"])
    noise = max(
        _FEW_ROUNDS * mean_apart,
        _DISTURBANCE / max(1.0, min(*pairs["count"][0], *pairs["count"][1])),
    )
    if stage == _WAKES:
        cheapest = min(*pairs["min"][0], *pairs["min"][1])
        return "min", least, None, least_apart, least_apart < abs(least) < cheapest
    judged: _Judged = "min", least, None, least_apart, abs(least) > least_apart
    typical = pairs.get(metrics.TYPICAL)
    if typical and _are_typical(pairs, _OF_ONE_KIND):
        usual, chance = _gap(typical), max(typical_apart, _CHANCE * min(typical[0]))
        if abs(usual - least) > chance:
            judged = metrics.TYPICAL, usual, None, chance, abs(usual) > chance
    if abs(mean - judged[1]) <= noise or _are_typical(pairs, 1 - _INTERRUPTED):
        return judged
    return "mean", mean, None, noise, abs(mean) > noise


def _gap(pair: tuple[list[float], list[float]]) -> float:
    """The second side less the first: what disturbs a count only adds to it."""
    return min(pair[1]) - min(pair[0])


def _are_typical(pairs: _Pairs, share: float) -> bool:
    """Whether it is known that at least this share of the packets is, in all rounds."""
    if "atypical" not in pairs:
        return False
    return all(
        atypical <= (1 - share) * count
        for some, counts in zip(pairs["atypical"], pairs["count"], strict=True)
        for atypical, count in zip(some, counts, strict=True)
    )


def _judge_times(pairs: _Pairs, confidence: float) -> _Judged:
    difference, between, moved = of_pairs(*pairs["mean"], confidence)
    return "mean", difference, between, 0.0, moved


def _stages(paths: Sequence[Path]) -> pl.DataFrame:
    """One row for each stage that is work, with its figures, one value for each run."""
    runs = [
        read.results(path).with_columns(pl.lit(number).alias("round"))
        for number, path in enumerate(paths)
    ]
    table = pl.concat(runs)
    parts = [metrics.Stage.parse(name) for name in table["metric"]]
    chosen = [
        part is not None
        and part.figure in (*_FIGURES, *_OPTIONAL)
        and part.stage not in stage_table.APART
        for part in parts
    ]
    table = table.with_columns(
        *(
            pl.Series(name, [getattr(part, name, "") for part in parts], dtype=pl.String)
            for name in ("direction", "stage", "figure")
        )
    ).filter(pl.Series(chosen, dtype=pl.Boolean))
    rows: pl.DataFrame | None = None
    for figure in (*_FIGURES, *_OPTIONAL):
        one = table.filter(pl.col("figure") == figure).sort("round")
        by = [*_KEY, "unit"] if figure == "mean" else list(_KEY)
        grouped = one.group_by(by, maintain_order=True).agg(pl.col("value").alias(figure))
        how: Literal["left", "inner"] = "left" if figure in _OPTIONAL else "inner"
        rows = grouped if rows is None else rows.join(grouped, on=list(_KEY), how=how)
    assert rows is not None
    # a packet that one round had and another lacked says nothing of the driver
    return rows.filter(pl.col("mean").list.len() == len(paths))


def _alone(tables: Sequence[pl.DataFrame]) -> tuple[str, ...]:
    ours = tables[0].join(tables[1], on=list(_KEY), how="anti")
    names = (f"{row['direction']} {row['kind']}" for row in ours.iter_rows(named=True))
    return tuple(sorted(set(names)))


def rounds_needed(figures: int) -> int:
    """Return the fewest pairs that give all of that many figures an interval together."""
    return paired.fewest((1 - (1 - CONFIDENCE) / figures) if figures else CONFIDENCE)
