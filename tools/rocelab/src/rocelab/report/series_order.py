# SPDX-License-Identifier: GPL-2.0-or-later
"""Order series in figures: transports in one fixed order, and the columns of their spread."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocelab import units
from rocelab.record.read import Series
from rocelab.report import palette
from rocelab.report.figure import Column

_ORDER = {name: position for position, name in enumerate(palette.TRANSPORTS)}


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


_SPREAD = ("repetitions", "median", "95 % CI", "mean", "st. dev.", "smallest", "largest")
_ONE = ("one repetition",)


def spread_columns(series: Iterable[Series]) -> tuple[Column, ...]:
    """Return the columns that `spread_cells` fills: one, where nothing was repeated."""
    names = _SPREAD if is_repeated(series) else _ONE
    return tuple(Column(label, numeric=True) for label in names)


def is_repeated(series: Iterable[Series]) -> bool:
    """Say whether any of `series` has more than one repetition."""
    return any(item.spread.count > 1 for item in series)


def spread_cells(series: Series, factor: float, *, repeated: bool) -> tuple[str, ...]:
    """Return the numbers of one series, divided by `factor`, for `spread_columns`."""
    spread = series.spread
    if not repeated:
        return (units.number(spread.median / factor, 4),)
    interval = (
        f"{units.number(spread.interval.low / factor, 4)} to "
        f"{units.number(spread.interval.high / factor, 4)}"
        if spread.interval
        else "none"
    )
    return (
        str(spread.count),
        units.number(spread.median / factor, 4),
        interval,
        units.number(spread.mean / factor, 4),
        units.number(spread.stdev / factor, 4) if spread.stdev is not None else units.ABSENT,
        units.number(spread.low / factor, 4),
        units.number(spread.high / factor, 4),
    )
