# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare confidence intervals with a claim's bounds, and describe them."""

from __future__ import annotations

from collections.abc import Mapping

from rocelab.stats import two_samples
from rocelab.stats.summary import CONFIDENCE
from rocelab.stats.two_samples import Apart
from rocelab.studies import words
from rocelab.studies.claims import Bounds

LESS = Bounds(0.0, 1.0)
"""Bounds of a ratio that means "smaller"."""


def within(apart: Apart, bounds: Bounds) -> bool | None:
    """True if the interval is within the bounds, False if outside, None if undecided."""
    if apart.interval is None:
        return None
    low, high = apart.interval.low, apart.interval.high
    # a bound of 1 means smaller or larger; a ratio of exactly 1 is neither
    above = low > bounds.low if bounds.low == 1 else low >= bounds.low
    below = high < bounds.high if bounds.high == 1 else high <= bounds.high
    if above and below:
        return True
    return False if high < bounds.low or low > bounds.high else None


def all_within(
    pairs: Mapping[str, Apart], bounds: Bounds, text: str, confidence: float = CONFIDENCE
) -> tuple[bool | None, str]:
    """Whether all intervals are within the bounds, and `text` with the deciding fact added."""
    judged = {place: within(apart, bounds) for place, apart in pairs.items()}
    if outside := [place for place, answer in judged.items() if answer is False]:
        return False, f"{text}; outside {outside[0]}"
    if all(judged.values()):
        return True, text
    return None, f"{why_undecided(pairs, confidence)} {text}"


def why_undecided(pairs: Mapping[str, Apart], confidence: float = CONFIDENCE) -> str:
    """Why the intervals decide neither way."""
    if any(apart.interval is None for apart in pairs.values()):
        least = next(count for count in range(1, 100) if two_samples.enough(count, confidence))
        return f"because a confidence interval takes {least} repetitions:"
    return "because the confidence intervals cross the claim's bounds:"


def describe(pairs: Mapping[str, Apart], unit: str) -> str:
    """The estimates in words: one or two with their intervals, more as a range."""
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
