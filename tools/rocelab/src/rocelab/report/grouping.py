# SPDX-License-Identifier: GPL-2.0-or-later
"""Sort series into figures: accelerators and kinds apart, transports in one fixed order."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from rocelab.report import fmt, palette
from rocelab.report.figure import Column
from rocelab.report.runfolder import Series

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

_ORDER = {name: position for position, name in enumerate(palette.TRANSPORTS)}


def by(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Group items by a key, groups and members in the order of their coming."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def transports(series: Iterable[Series]) -> list[str]:
    """Return the transports of `series` in the order of every legend: known ones first."""
    return sorted({item.transport for item in series}, key=transport_rank)


def transport_rank(name: str) -> tuple[int, str]:
    """Return a sort key for transports: design.md's order, then unknown ones by name."""
    return _ORDER.get(name, len(_ORDER)), name


def slug(*words: str) -> str:
    """Return words as a file name and anchor: only a-z, 0-9 and hyphens, at most 80 characters."""
    text = re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")
    return text[:80].strip("-") or "figure"


SPREAD_COLUMNS = tuple(
    Column(label, numeric=True)
    for label in ("repetitions", "median", "95 % CI", "mean", "st. dev.", "smallest", "largest")
)
"""The columns that `spread_cells` fills."""


def spread_cells(series: Series, factor: float = 1.0) -> tuple[str, ...]:
    """Return the numbers of one series, divided by `factor`, for `SPREAD_COLUMNS`."""
    spread = series.spread
    interval = (
        f"{fmt.number(spread.interval.low / factor, 4)} to "
        f"{fmt.number(spread.interval.high / factor, 4)}"
        if spread.interval
        else "none"
    )
    return (
        str(spread.count),
        fmt.number(spread.median / factor, 4),
        interval,
        fmt.number(spread.mean / factor, 4),
        fmt.number(spread.stdev / factor, 4) if spread.stdev is not None else fmt.ABSENT,
        fmt.number(spread.low / factor, 4),
        fmt.number(spread.high / factor, 4),
    )
