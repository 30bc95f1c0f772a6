# SPDX-License-Identifier: GPL-2.0-or-later
"""Where an interval must lie for a claim to hold; if it lies outside, the claim does not.

A test of equivalence (two one-sided tests): a claim of a range is about that range widened by the
tolerance. A claim of "smaller" or "larger" is about a difference above the tolerance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rocelab.stats.summary import Interval
from rocelab.studies.claims import DEFAULT_TOLERANCE, Bounds
from rocelab.studies.evidence import How


@dataclass(frozen=True)
class Margins:
    """Limits of a ratio or a difference."""

    low: float
    high: float

    def contains(self, between: Interval | None) -> bool:
        """Whether the interval satisfies the claim."""
        return between is not None and self.low <= between.low and between.high <= self.high

    def excludes(self, between: Interval | None) -> bool:
        """Whether the interval contradicts the claim."""
        return between is not None and (between.high < self.low or between.low > self.high)

    def depth(self, estimate: float, how: How) -> float:
        """How far inside an estimate is, on the scale of its deviation; negative: outside."""
        at, low, high = (_scale(value, how) for value in (estimate, self.low, self.high))
        return min(at - low, high - at)


def of(bounds: Bounds, how: How) -> Margins:
    """Return a claim's margins."""
    step = bounds.tolerance.value
    if how == "difference":
        if not bounds.tolerance.source:
            step *= max(abs(end) for end in (bounds.low, bounds.high) if math.isfinite(end))
        return Margins(bounds.low - step, bounds.high + step)
    low = 1 + step if bounds.low == 1 else bounds.low * (1 - step)
    high = 1 - step if bounds.high == 1 else bounds.high * (1 + step)
    return Margins(low, high)


def _scale(value: float, how: How) -> float:
    if how == "difference":
        return value
    return math.log(value) if value > 0 else -math.inf


LESS = of(Bounds(0.0, 1.0), "ratio")
"""A ratio that means "smaller"."""
NOT_LESS = Margins(LESS.high, math.inf)
"""A ratio that means "not smaller"."""
NOT_MORE = Margins(0.0, 1 + 2 * DEFAULT_TOLERANCE)
"""A ratio that means "not larger by 5 % or more"."""
