# SPDX-License-Identifier: GPL-2.0-or-later
"""Confidence intervals against the bounds of a claim, and in words."""

from __future__ import annotations

from collections.abc import Mapping

from rocelab.run import two_samples
from rocelab.run.stats import CONFIDENCE
from rocelab.run.two_samples import Apart
from rocelab.studies import words
from rocelab.studies.study import Bounds

LESS = Bounds(0.0, 1.0)
"""Of a ratio that says smaller."""


def within(apart: Apart, bounds: Bounds) -> bool | None:
    """Whether the interval lies in the bounds, or outside; None: the repetitions do not tell."""
    if apart.interval is None:
        return None
    low, high = apart.interval.low, apart.interval.high
    # a bound of 1 means smaller or larger, and no change is neither
    above = low > bounds.low if bounds.low == 1 else low >= bounds.low
    below = high < bounds.high if bounds.high == 1 else high <= bounds.high
    if above and below:
        return True
    return False if high < bounds.low or low > bounds.high else None


def everywhere(
    pairs: Mapping[str, Apart], bounds: Bounds, told: str, confidence: float = CONFIDENCE
) -> tuple[bool | None, str]:
    """Whether all intervals lie in the bounds, and `told` with what decided it."""
    judged = {place: within(apart, bounds) for place, apart in pairs.items()}
    if outside := [place for place, answer in judged.items() if answer is False]:
        return False, f"{told}; outside {outside[0]}"
    if all(judged.values()):
        return True, told
    return None, f"{few(pairs, confidence)} {told}"


def few(pairs: Mapping[str, Apart], confidence: float = CONFIDENCE) -> str:
    """Why the intervals are neither a yes nor a no."""
    if any(apart.interval is None for apart in pairs.values()):
        least = next(count for count in range(1, 100) if two_samples.enough(count, confidence))
        return f"because so few repetitions have no confidence interval (it takes {least}):"
    return "because the confidence intervals reach across the claim's bounds:"


def told(pairs: Mapping[str, Apart], unit: str) -> str:
    """The estimates, in words: each one with its interval, or the range of many."""
    shown = list(pairs.items())
    if len(shown) > 2:
        smallest, largest = (f(pairs.values(), key=_estimate) for f in (min, max))
        return (
            f"{words.number(smallest.estimate)} to {words.number(largest.estimate)}{unit} "
            f"at {len(shown)} sizes"
        )
    return ", ".join(
        f"{words.number(apart.estimate)}{_interval(apart)}{unit} {place}" for place, apart in shown
    )


def _estimate(apart: Apart) -> float:
    return apart.estimate


def _interval(apart: Apart) -> str:
    if apart.interval is None:
        return ""
    return f" ({words.number(apart.interval.low)} to {words.number(apart.interval.high)})"
