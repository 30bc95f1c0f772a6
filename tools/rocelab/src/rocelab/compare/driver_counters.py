# SPDX-License-Identifier: GPL-2.0-or-later
"""Which packets, and which of the driver's counters of trouble, differ between two drivers.

Stages say what a packet costs, not that an ACK is missing, or that packets are sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from rocelab import metrics
from rocelab.record import read
from rocelab.stats.summary import median

TROUBLE = (
    "duplicate_request",
    "out_of_seq_request",
    "rcvd_rnr_err",
    "send_rnr_err",
    "rcvd_seq_err",
    "retry_exceeded_err",
    "retry_rnr_exceeded_err",
    "completer_retry_err",
    "send_err",
    "rcvd_drops",
)
"""Counters that stay at 0 while all goes well (drivers/infiniband/sw/rxe/rxe_hw_counters.c)."""
_MIN_SHARE = 0.01
"""Of the packets: a probe that attaches or detaches in between may miss one or two."""
_SENT = metrics.Packets("tx").name
_KEY = ("tool", "test", "transport", "size", "node", "metric", "kind")


@dataclass(frozen=True)
class Moved:
    """A number of one step that differs, one value for each round."""

    tool: str
    test: str
    transport: str
    size: int
    node: str
    counter: str
    """A counter of trouble, or `sent` and the opcode class of packets."""
    base: tuple[float, ...]
    change: tuple[float, ...]

    @property
    def is_worse(self) -> bool:
        """Whether it says that more went wrong; another number of packets does not."""
        return self.counter in TROUBLE and self.difference > 0

    @property
    def difference(self) -> float:
        """Change minus base, of the medians."""
        return median(self.change) - median(self.base)


def counters_that_moved(
    base: Sequence[Path], change: Sequence[Path], *, exact: bool
) -> tuple[Moved, ...]:
    """Return the counters of which every round of one side exceeds every round of the other.

    Packets are compared if `exact`, where all rounds of either side sent as many, and where that
    differs by over 1 %.
    """
    names = [metrics.Counter("driver", name).name for name in TROUBLE]
    names += [_SENT] if exact else []
    tables = [_increases(paths, names) for paths in (base, change)]
    counters = []
    for key in sorted(tables[0].keys() | tables[1].keys()):
        before, after = (
            tuple(table.get(key, {}).get(number, 0.0) for number in range(len(paths)))
            for table, paths in zip(tables, (base, change), strict=True)
        )
        apart = max(before) < min(after) or max(after) < min(before)
        tool, test, transport, size, node, metric, kind = key
        if metric == _SENT:
            apart = apart and min(*map(min, (before, after))) > 0
            apart = apart and all(min(side) == max(side) for side in (before, after))
            apart = apart and abs(after[0] - before[0]) > _MIN_SHARE * before[0]
        if apart:
            counter = f"sent {kind}" if metric == _SENT else metric.removeprefix("driver.")
            counters.append(Moved(tool, test, transport, size, node, counter, before, after))
    return tuple(counters)


_Key = tuple[str, str, str, int, str, str, str]


def _increases(paths: Sequence[Path], names: Sequence[str]) -> dict[_Key, dict[int, float]]:
    """By place and counter: the increase in each round that has it."""
    increases: dict[_Key, dict[int, float]] = {}
    for number, path in enumerate(paths):
        table = read.results(path).filter(
            pl.col("metric").is_in(names) & pl.col("size").is_not_null()
        )
        for row in table.iter_rows(named=True):
            key: _Key = tuple(row[name] for name in _KEY)
            increases.setdefault(key, {})[number] = row["value"]
    return increases


def sentence(counters: Sequence[Moved]) -> str:
    """Return what the counters say, the sum over all steps of each; empty if none moved."""
    sums: dict[str, float] = {}
    for counter in counters:
        sums[counter.counter] = sums.get(counter.counter, 0.0) + counter.difference
    minus = "\N{MINUS SIGN}"
    return ", ".join(
        f"{name} {difference:+,.0f}".replace("-", minus) for name, difference in sums.items()
    )
