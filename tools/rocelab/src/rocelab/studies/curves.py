# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks of how a quantity changes with the message size."""

from __future__ import annotations

import itertools

from rocelab.studies import comparisons, describe, equivalence, judging, words
from rocelab.studies.claims import Dips, Falls
from rocelab.studies.evidence import Evidence
from rocelab.studies.samples import Results, Samples, not_positive, usable
from rocelab.studies.verdict import Found, Verdict, untested


def falls(check: Falls, results: Results) -> Found:
    """Carry out a check that a quantity falls with size."""
    samples_or_reason = usable(results, check.operand)
    if isinstance(samples_or_reason, str):
        return untested(samples_or_reason)
    (samples,) = samples_or_reason
    sizes = sorted(size for size in samples.by_size if size in check.sizes)
    if len(sizes) < 2:
        return untested("because the run has fewer than two of the sizes")
    steps = _steps(samples, list(itertools.pairwise(sizes)))
    ends = _steps(samples, [(sizes[0], sizes[-1])])
    if isinstance(steps, str) or isinstance(ends, str):
        return untested(steps if isinstance(steps, str) else str(ends))
    factor = words.number(next(iter(ends.values())).estimate)
    text = f"from {sizes[0]} to {sizes[-1]} bytes it changes by a factor of {factor}"
    rises, whole = judging.every(steps, equivalence.NOT_MORE), judging.every(ends, equivalence.LESS)
    if rises.verdict is Verdict.DOES_NOT_HOLD:
        text = f"{text}, but it rises {rises.where[0]}"
        return Found(rises.verdict, text)
    if whole.verdict is Verdict.HOLDS:
        return describe.verdict(rises, steps, text)
    return describe.verdict(whole, ends, text)


def dips(check: Dips, results: Results) -> Found:
    """Carry out a check that a quantity is smaller at a size than at the previous one."""
    samples_or_reason = usable(results, check.operand)
    if isinstance(samples_or_reason, str):
        return untested(samples_or_reason)
    (samples,) = samples_or_reason
    pairs = [pair for pair in itertools.pairwise(sorted(samples.by_size)) if pair[1] in check.sizes]
    steps = _steps(samples, pairs) if pairs else _no_step(check, max(samples.by_size))
    if isinstance(steps, str):
        return untested(steps)
    text = f"it changes by a factor of {describe.estimates(steps, '')}"
    if check.present:
        return describe.verdict(judging.some(steps, equivalence.LESS), steps, text, some=True)
    return describe.verdict(judging.every(steps, equivalence.NOT_LESS), steps, text)


def _steps(samples: Samples, pairs: list[tuple[int, int]]) -> dict[str, Evidence] | str:
    """The ratio of a size's values to those of a smaller one, or why it has no meaning."""
    steps = {}
    for pair in pairs:
        if reason := not_positive(pair, samples):
            return reason
        small, large = (samples.by_size[size] for size in pair)
        evidence = comparisons.evidence_of(small, large, "ratio", exact=not samples.is_time)
        if evidence is None:
            return "because no repetition has two sizes that follow each other"
        steps[f"from {pair[0]} to {pair[1]} bytes"] = evidence
    return steps


def _no_step(check: Dips, top: int) -> str:
    low = check.sizes.low
    if top < low:
        return f"because this run's sizes end at {top} bytes, before {low}"
    which = f"{low} bytes" if low == check.sizes.high else "the claim"
    return f"because this run has no size of {which}, or none before it"
