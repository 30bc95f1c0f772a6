# SPDX-License-Identifier: GPL-2.0-or-later
"""Cycles in kernel mode of two drivers, for each message: what no stage covers is in it, too.

They are those of one more message where the plan measures it (docs/numbers.md). Elsewhere all are
divided by the messages, from the start of the probe to its end: those of starting and ending the
benchmark are in them, on both sides. All else that the kernel does meanwhile is in them, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from rocelab import metrics
from rocelab.compare.difference import Difference, of_pairs, percents
from rocelab.record import read

_PLACE = ("tool", "test", "transport", "size", "node")
_PER = {metrics.MARGINAL: "message", "per_message": "message", "per_packet": "packet"}
"""By kind. A driver that sends fewer packets does not cost more by that, so messages come first."""


@dataclass(frozen=True)
class Cycles(Difference):
    """Cycles of one machine in one step."""

    per: str
    """`message`, or `packet` where the benchmark does not count its messages."""


@dataclass(frozen=True)
class Pair:
    """What is to be judged: where, of what, and the values of either side's rounds."""

    place: tuple[str, str, str, int, str]
    per: str
    base: tuple[float, ...]
    change: tuple[float, ...]


def pairs(base: Sequence[Path], change: Sequence[Path]) -> tuple[Pair, ...]:
    """Return what all rounds of both sides counted."""
    sides = [_counts(paths) for paths in (base, change)]
    by_place: dict[tuple[str, str, str, int, str], Pair] = {}
    for kind, per in _PER.items():
        for (place, kind_of_row), values in sides[0].items():
            other = sides[1].get((place, kind_of_row))
            if kind_of_row == kind and other is not None and place not in by_place:
                by_place[place] = Pair(place, per, values, other)
    return tuple(by_place[place] for place in sorted(by_place))


def _counts(
    paths: Sequence[Path],
) -> dict[tuple[tuple[str, str, str, int, str], str], tuple[float, ...]]:
    """By place and kind: a value for each run, where all runs have one."""
    counts: dict[tuple[tuple[str, str, str, int, str], str], list[float]] = {}
    for path in paths:
        table = read.results(path).filter(
            pl.col("metric") == metrics.KERNEL_CYCLES, pl.col("size").is_not_null()
        )
        for row in table.iter_rows(named=True):
            tool, test, transport, size, node = (row[name] for name in _PLACE)
            key = (tool, test, transport, size, node), row["kind"]
            counts.setdefault(key, []).append(row["value"])
    return {key: tuple(values) for key, values in counts.items() if len(values) == len(paths)}


def judge(counted: Sequence[Pair], confidence: float) -> tuple[Cycles, ...]:
    """Judge each pair; the largest difference first, those that did not move last."""
    cycles = []
    for pair in counted:
        difference, interval, moved = of_pairs(pair.base, pair.change, confidence)
        cycles.append(
            Cycles(
                *pair.place,
                unit=metrics.CYCLES,
                base=pair.base,
                change=pair.change,
                difference=difference,
                interval=interval,
                moved=moved,
                per=pair.per,
            )
        )
    return tuple(sorted(cycles, key=lambda each: (not each.moved, -abs(each.difference))))


def sentence(cycles: Sequence[Cycles]) -> str:
    """Return what moved, in percent; empty if none were counted."""
    if not cycles:
        return ""
    parts = []
    for per in dict.fromkeys(_PER.values()):
        moved = [each for each in cycles if each.moved and each.per == per]
        if moved:
            parts.append(f"kernel cycles per {per} {percents(moved)}")
    if not parts:
        return "no difference in kernel cycles"
    count = sum(each.moved for each in cycles)
    rest = f" ({count} of {len(cycles)} moved)" if count < len(cycles) else ""
    return f"{', '.join(parts)}{rest}"
