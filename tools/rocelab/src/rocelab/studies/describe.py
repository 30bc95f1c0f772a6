# SPDX-License-Identifier: GPL-2.0-or-later
"""Describe evidence and what it decides."""

from __future__ import annotations

from rocelab.stats.sample_size import MAX_PAIRS
from rocelab.stats.summary import CONFIDENCE
from rocelab.studies import words
from rocelab.studies.evidence import Evidence
from rocelab.studies.judging import Judged, Places
from rocelab.studies.verdict import Found, Verdict


def verdict(judged: Judged, places: Places, text: str, *, some: bool = False) -> Found:
    """Return the verdict, with `text` and the deciding fact as the reason.

    `some`: the claim is about some place, not about every one.
    """
    many = len(places) > 1
    match judged.verdict:
        case Verdict.NOT_DECIDED:
            return Found(judged.verdict, f"{_why_undecided(judged, places)}: {text}", judged.more)
        case Verdict.DOES_NOT_HOLD if many and judged.where:
            return Found(judged.verdict, f"{text}; not so {_list_places(judged.where)}")
        case Verdict.DOES_NOT_HOLD if many and some:
            return Found(judged.verdict, f"{text}; reached at no size")
        case Verdict.HOLDS if many and judged.where:
            return Found(judged.verdict, f"{text}; reached {_list_places(judged.where)}")
    return Found(judged.verdict, text)


def estimates(places: Places, unit: str) -> str:
    """The estimates in words: one or two with their intervals, more as a range."""
    shown = list(places.items())
    if len(shown) > 2:
        values = [evidence.estimate for evidence in places.values()]
        return (
            f"{words.number(min(values))} to {words.number(max(values))}{unit} "
            f"at {len(shown)} sizes"
        )
    return ", ".join(
        f"{words.number(evidence.estimate)}{_interval(evidence)}{unit} {place}"
        for place, evidence in shown
    )


def _why_undecided(judged: Judged, places: Places) -> str:
    """Why it is not decided, and how many more repetitions would decide."""
    count = min(evidence.count for evidence in places.values())
    have = "1 repetition does" if count == 1 else f"{count} repetitions do"
    why = f"because {have} not decide {_list_places(judged.where)}"
    if any(evidence.interval(CONFIDENCE) is None for evidence in places.values()):
        have = "1 repetition gives" if count == 1 else f"{count} repetitions give"
        why = f"because {have} no confidence interval"
    if judged.more is None:
        return f"{why}: it is so near to a limit that even {MAX_PAIRS} may not"
    return f"{why}; about {judged.more} more would decide"


def _list_places(where: tuple[str, ...]) -> str:
    if len(where) == 1:
        return where[0]
    return f"{where[0]} and {len(where) - 1} other{'' if len(where) == 2 else 's'}"


def _interval(evidence: Evidence) -> str:
    between = evidence.interval(CONFIDENCE)
    if between is None:
        return ""
    return f" ({words.number(between.low)} to {words.number(between.high)})"
