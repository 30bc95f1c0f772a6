# SPDX-License-Identifier: GPL-2.0-or-later
"""A figure of two drivers, one value for each round, and whether it moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rocelab.stats import paired
from rocelab.stats.summary import Interval, median


@dataclass(frozen=True)
class Difference:
    """What something costs on either side, a value for each round."""

    tool: str
    test: str
    transport: str
    size: int
    node: str
    unit: str
    base: tuple[float, ...]
    change: tuple[float, ...]
    difference: float
    interval: Interval | None
    """Of the difference, in real time; None where instructions are counted."""
    moved: bool

    @property
    def before(self) -> float:
        """What it cost on the base."""
        return median(self.base)

    @property
    def percent(self) -> float | None:
        """The difference as a share of the base; None of a base of 0."""
        return 100 * self.difference / self.before if self.before else None

    def is_beyond(self, threshold: float) -> bool:
        """Whether it costs more by more than `threshold` percent."""
        if not self.moved or self.difference <= 0:
            return False
        return self.percent is None or self.percent > threshold


def of_pairs(
    base: Sequence[float], change: Sequence[float], confidence: float
) -> tuple[float, Interval | None, bool]:
    """Return difference, interval, and whether that excludes zero; each round gives one pair."""
    gaps = [after - before for before, after in zip(base, change, strict=True)]
    shift = paired.shift(paired.averages(gaps), confidence)
    between = shift.interval
    return shift.estimate, between, between is not None and not between.low <= 0 <= between.high


_MINUS = "\N{MINUS SIGN}"


def percents(differences: Sequence[Difference]) -> str:
    """Return the smallest and the largest of the shares, as a sentence has them; or nothing."""
    shares = [each.percent for each in differences if each.percent is not None]
    if not shares:
        return ""
    ends = sorted({f"{share:+.1f}" for share in (min(shares), max(shares))}, key=float)
    return f"{' to '.join(ends).replace('-', _MINUS)} %"


def with_sign(value: float) -> str:
    """Return a difference as a sentence has it."""
    return f"{value:+,.0f}".replace("-", _MINUS)
