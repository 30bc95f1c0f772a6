# SPDX-License-Identifier: GPL-2.0-or-later
"""Decide a claim over several sizes, with one level of confidence for all of them.

"At every size" holds if each interval satisfies the claim: that needs no correction, since all must
(R. L. Berger, Technometrics 24 (1982), 295-300). It does not hold if one contradicts it, and there
Holm's correction (Scand. J. Stat. 6 (1979), 65-70) keeps the chance of a false alarm at 5 % however
many sizes there are. "At some size" is the mirror image.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rocelab.stats import sample_size
from rocelab.stats.summary import CONFIDENCE, Interval
from rocelab.studies.equivalence import Margins
from rocelab.studies.evidence import Evidence
from rocelab.studies.verdict import Verdict

Places = Mapping[str, Evidence]
"""The evidence by the place that an answer names, such as "at 64 bytes"."""


@dataclass(frozen=True)
class Judged:
    """A verdict, the places that decided it, and how many more repetitions would decide."""

    verdict: Verdict
    where: tuple[str, ...] = ()
    more: int | None = None
    """None: more than anyone will make, or nothing is missing."""


def every(places: Places, margins: Margins) -> Judged:
    """Judge a claim that each place must satisfy."""
    inside = {
        p for p, evidence in places.items() if margins.contains(evidence.interval(CONFIDENCE))
    }
    others = {p: evidence for p, evidence in places.items() if p not in inside}
    if against := _holm(others, len(places), margins.excludes):
        return Judged(Verdict.DOES_NOT_HOLD, against)
    if not others:
        return Judged(Verdict.HOLDS)
    strict = _bonferroni(len(places))
    agreeing, contrary = _sides(others, margins, CONFIDENCE, strict)
    return Judged(
        Verdict.NOT_DECIDED, tuple(others), _fewest(contrary) if contrary else _most(agreeing)
    )


def some(places: Places, margins: Margins) -> Judged:
    """Judge a claim that one place must satisfy."""
    if reached := _holm(places, len(places), margins.contains):
        return Judged(Verdict.HOLDS, reached)
    outside = {
        p for p, evidence in places.items() if margins.excludes(evidence.interval(CONFIDENCE))
    }
    others = {p: evidence for p, evidence in places.items() if p not in outside}
    if not others:
        return Judged(Verdict.DOES_NOT_HOLD)
    strict = _bonferroni(len(places))
    agreeing, contrary = _sides(others, margins, strict, CONFIDENCE)
    return Judged(
        Verdict.NOT_DECIDED, tuple(others), _fewest(agreeing) if agreeing else _most(contrary)
    )


def _holm(
    places: Places, count: int, decides: Callable[[Interval | None], bool]
) -> tuple[str, ...]:
    """Return the places that decide, of `count` that were tested."""
    rejected: list[str] = []
    while True:
        confidence = _bonferroni(count - len(rejected))
        further = [
            place
            for place, evidence in places.items()
            if place not in rejected and decides(evidence.interval(confidence))
        ]
        if not further:
            return tuple(place for place in places if place in rejected)
        rejected += further


def _bonferroni(count: int) -> float:
    return 1 - (1 - CONFIDENCE) / max(count, 1)


def _sides(
    places: Places, margins: Margins, inside: float, outside: float
) -> tuple[list[int | None], list[int | None]]:
    """Return how many repetitions are missing at places that satisfy the claim by their estimate,
    and at the others, for intervals of these confidences."""
    sides: tuple[list[int | None], list[int | None]] = ([], [])
    for evidence in places.values():
        depth = margins.depth(evidence.estimate, evidence.how)
        confidence = inside if depth >= 0 else outside
        sides[depth < 0].append(_missing(evidence, abs(depth), confidence))
    return sides


def _missing(evidence: Evidence, margin: float, confidence: float) -> int | None:
    least = evidence.fewest(confidence)
    if evidence.stdev is None:
        return max(1, least - evidence.count)
    needed = sample_size.pairs_needed(margin, evidence.stdev, confidence)
    return None if needed is None else max(1, max(needed, least) - evidence.count)


def _fewest(counts: list[int | None]) -> int | None:
    return min((count for count in counts if count is not None), default=None)


def _most(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return max(known) if known and len(known) == len(counts) else None
