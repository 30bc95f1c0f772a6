# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare transports size by size: lower, higher, or undecided.

Two medians differ if their confidence intervals do not overlap (a conservative rule). With too few
repetitions for intervals there is no inference: a verdict then only describes the data, and only
if every repetition of one is below every repetition of the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rocelab import metrics, units
from rocelab.group_by import group_by
from rocelab.plans.plan import ENOUGH_REPETITIONS
from rocelab.record.read import Run, Series
from rocelab.report import series_order, wording
from rocelab.report.figure import Column, Table
from rocelab.stats.summary import Spread

Verdict = Literal["lower", "higher", "undecided"]
_REFERENCE = "tcp"


@dataclass(frozen=True)
class Quantity:
    """A metric that transports are compared by: its name in a sentence, and a heading."""

    metric: str
    name: str
    label: str


COMPARED = (
    Quantity(metrics.LATENCY, "mean latency", "Latency"),
    Quantity(metrics.BANDWIDTH, "bandwidth", "Bandwidth"),
)


@dataclass(frozen=True)
class Comparison:
    """Two transports at one size: series of the same quantity and kind."""

    one: Series
    other: Series

    @property
    def verdict(self) -> Verdict:
        """Whether the first is lower or higher than the other, or undecided."""
        return compare(self.one.spread, self.other.spread)


def compare(one: Spread, other: Spread) -> Verdict:
    """Say whether `one` is below or above `other`, if their repetitions decide it."""
    if one.interval and other.interval:
        low, high = one.interval, other.interval
        if low.high < high.low:
            return "lower"
        return "higher" if low.low > high.high else "undecided"
    if min(one.count, other.count) < 2:
        return "undecided"
    if one.high < other.low:
        return "lower"
    return "higher" if one.low > other.high else "undecided"


def comparisons(run: Run, metric: str) -> Iterator[list[Comparison]]:
    """Compare each transport with the reference of its benchmark, size by size.

    The reference is tcp if it ran, else the first transport. Sizes with a single repetition on
    either side are left out.
    """
    groups = group_by(run.by_size(metric), lambda i: (i.accelerator, i.kind, i.benchmark))
    for series in groups.values():
        order = series_order.transports(series)
        reference = _REFERENCE if _REFERENCE in order else order[0]
        known = {item.size: item for item in series if item.transport == reference}
        for transport in order:
            pairs = [
                Comparison(item, known[item.size])
                for item in sorted(series, key=lambda i: i.size)
                if item.transport == transport != reference and item.size in known
            ]
            pairs = [c for c in pairs if min(c.one.spread.count, c.other.spread.count) > 1]
            if pairs:
                yield pairs


def table(run: Run) -> Table:
    """Return every comparison with its verdict."""
    rows = [
        (
            c.one.benchmark,
            quantity.name,
            c.one.transport,
            c.other.transport,
            units.size(c.one.size),
            amount(c.one.spread.median, c.one.unit, c.one.accelerator),
            amount(c.other.spread.median, c.other.unit, c.other.accelerator),
            c.verdict,
        )
        for quantity in COMPARED
        for pairs in comparisons(run, quantity.metric)
        for c in pairs
    ]
    return Table(
        "All comparisons, size by size. A verdict needs confidence intervals that do not overlap, "
        f"or, with fewer than {ENOUGH_REPETITIONS} repetitions, values that do not overlap at all; "
        "each row is judged separately",
        (
            Column("benchmark"),
            Column("quantity"),
            Column("transport"),
            Column("against"),
            Column("size", numeric=True),
            Column("median", numeric=True),
            Column("median of the other", numeric=True),
            Column("verdict"),
        ),
        tuple(rows),
        folded=True,
    )


def amount(value: float, unit: str, accelerator: str) -> str:
    """Return a value as a sentence writes it: `1.76 emulated ms`."""
    factor, name = units.scale(unit, [value])
    return f"{units.number(value / factor)} {wording.time_unit(name, accelerator)}"
