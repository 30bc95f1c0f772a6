# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that compare two quantities of a run."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace

from rocelab.studies import describe, equivalence, evidence, judging, words
from rocelab.studies.claims import Average, Compare
from rocelab.studies.evidence import Evidence, How
from rocelab.studies.samples import Results, Samples, not_positive, usable
from rocelab.studies.verdict import Found, untested


def compare(check: Compare, results: Results) -> Found:
    """Carry out a comparison."""
    if check.switches not in (None, results.switches):
        ran = "does not say how many switches it went through; `--switches` records it"
        if results.switches is not None:
            ran = f"went through {results.switches} switches"
        return untested(f"because {results.called} {ran}, but the claim is about {check.switches}")
    samples_or_reason = usable(results, check.first, check.second)
    if isinstance(samples_or_reason, str):
        return untested(samples_or_reason)
    first, second = samples_or_reason
    sizes = sorted(s for s in first.by_size if s in second.by_size and s in check.sizes)
    if not sizes:
        return untested(_no_size(check, first))
    if check.how == "ratio" and (reason := not_positive(sizes, first, second)):
        return untested(reason)
    places = _places(check, first, second, sizes)
    if places is None:
        return untested("because no repetition has both sides of the comparison")
    judge_all = judging.some if check.over == "some size" else judging.every
    judged = judge_all(places, equivalence.of(check.bounds, check.how))
    unit = "" if check.how == "ratio" else f" {first.unit}"
    claimed = words.bounds_with_tolerance(check.bounds, check.how, unit)
    text = f"{words.pair(check)} {describe.estimates(places, unit)}, claimed {claimed}"
    return describe.verdict(judged, places, text, some=check.over == "some size")


def average(check: Average, results: Results) -> Found:
    """Carry out a comparison of several tests together."""
    means: list[dict[int, float]] = []
    for side in (check.first, check.second):
        values: list[Mapping[int, float]] = []
        for test in check.tests:
            samples_or_reason = usable(results, replace(side, test=test))
            if isinstance(samples_or_reason, str):
                return untested(samples_or_reason)
            if reason := not_positive(samples_or_reason[0].by_size, samples_or_reason[0]):
                return untested(reason)
            values += samples_or_reason[0].by_size.values()
        common = set[int].intersection(*map(set, values))
        means.append({r: statistics.geometric_mean(each[r] for each in values) for r in common})
    one = evidence.of_pairs(means[0], means[1], "ratio")
    if one is None:
        return untested("because no repetition has both sides of the comparison")
    places = {f"in the mean over {', '.join(check.tests)}": one}
    claimed = words.bounds_with_tolerance(check.bounds, "ratio")
    sides = f"{check.second.transport} / {check.first.transport}"
    text = f"{sides} {describe.estimates(places, '')}, claimed {claimed}"
    return describe.verdict(
        judging.every(places, equivalence.of(check.bounds, "ratio")), places, text
    )


def _places(
    check: Compare, first: Samples, second: Samples, sizes: list[int]
) -> dict[str, Evidence] | None:
    """The evidence at each size, or one for the best or the mean; None without a common one."""
    pairs: dict[str, tuple[Mapping[int, float], Mapping[int, float]]]
    if check.over == "best":
        pairs = {"for the best over all sizes": (first.best(sizes), second.best(sizes))}
    elif check.over == "mean":
        geometric = check.how == "ratio"
        pairs = {
            f"in the mean over {len(sizes)} sizes": (
                first.mean(sizes, geometric=geometric),
                second.mean(sizes, geometric=geometric),
            )
        }
    else:
        pairs = {f"at {size} bytes": (first.by_size[size], second.by_size[size]) for size in sizes}
    places = {}
    for place, sides in pairs.items():
        evidence = evidence_of(*sides, check.how, exact=not first.is_time)
        if evidence is None:
            return None
        places[place] = evidence
    return places


def evidence_of(
    first: Mapping[int, float], second: Mapping[int, float], how: How, *, exact: bool
) -> Evidence | None:
    """The evidence in what the same repetitions measured, or in counts, which are exact."""
    if exact and first and second:
        return evidence.of_counts(first, second, how)
    return evidence.of_pairs(first, second, how)


def _no_size(check: Compare, samples: Samples) -> str:
    top = max(samples.by_size)
    if top < check.sizes.low:
        return f"because this run's sizes end at {top} bytes, before {check.sizes.low}"
    high = "on" if check.sizes.high is None else f"to {check.sizes.high} bytes"
    return f"because this run has no size from {check.sizes.low} {high}"
