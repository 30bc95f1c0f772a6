# SPDX-License-Identifier: GPL-2.0-or-later
"""Check a study's claims against a run: each holds, does not hold, or cannot be tested here.

A claim about a quantity is judged at each size by the confidence interval of the ratio or the
difference (rocelab.stats.two_samples). The claim holds if the interval is within its bounds, does
not hold if it is outside, and is undecided if it crosses a bound. Emulated nodes have no real
time, so they answer only claims about counts. What a switch adds takes two runs
(rocelab.studies.switches).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rocelab.stats import two_samples
from rocelab.stats.summary import Interval
from rocelab.stats.two_samples import Apart
from rocelab.studies import intervals, switches, words
from rocelab.studies.claims import (
    Adds,
    Check,
    Claim,
    Compare,
    Dips,
    Falls,
    Stalls,
    Study,
    Untestable,
)
from rocelab.studies.samples import Results, Samples, usable, why_no_data


class Verdict(StrEnum):
    """The outcome of a claim's check."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    UNTESTED = "cannot be tested here"


@dataclass(frozen=True)
class Answer:
    """A claim's verdict and the reason for it."""

    claim: Claim
    verdict: Verdict
    because: str


_Found = tuple[Verdict, str]
_VERDICTS = {True: Verdict.HOLDS, False: Verdict.DOES_NOT_HOLD, None: Verdict.UNTESTED}


def answers(study: Study, results: Results, other: Results | None = None) -> list[Answer]:
    """The run's answer to each of the study's claims.

    `other` is a run of the same study through more or fewer switches, for claims about switches.
    """
    return [Answer(claim, *_answer(claim, results, other)) for claim in study.claims]


def _answer(claim: Claim, results: Results, other: Results | None) -> _Found:
    verdict, because = _judge(claim.check, results, other)
    if not claim.needs:
        return verdict, because
    if verdict is Verdict.UNTESTED:
        return verdict, claim.needs
    return Verdict.UNTESTED, f"{claim.needs} This run alone gives: {because}"


def _judge(check: Check, results: Results, other: Results | None) -> _Found:
    match check:
        case Compare():
            return _compare(check, results)
        case Falls():
            return _falls(check, results)
        case Dips():
            return _dips(check, results)
        case Adds():
            holds, because = switches.adds(check, results, other)
            return _VERDICTS[holds], because
        case Stalls():
            return _stalls(check, results)
        case Untestable():
            return Verdict.UNTESTED, check.because


def _compare(check: Compare, results: Results) -> _Found:
    found = usable(results, check.first, check.second)
    if isinstance(found, str):
        return Verdict.UNTESTED, found
    first, second = found
    sizes = sorted(s for s in first.by_size if s in second.by_size and s in check.sizes)
    if not sizes:
        return Verdict.UNTESTED, _no_size(check, first)
    method = _method(check, first)
    pairs = {
        f"at {size} bytes": method(first.by_size[size], second.by_size[size]) for size in sizes
    }
    if check.over == "best":
        pairs = {"for the best over all sizes": method(first.best(sizes), second.best(sizes))}
    unit = "" if check.how == "ratio" else f" {first.unit}"
    return _verdict(check, pairs, unit)


_Method = Callable[[Sequence[float], Sequence[float]], Apart]


def _method(check: Compare, samples: Samples) -> _Method:
    method: _Method = two_samples.ratio if check.how == "ratio" else two_samples.difference
    if samples.is_time:
        return method
    return lambda first, second: _of_counts(method, first, second)


def _of_counts(method: _Method, first: Sequence[float], second: Sequence[float]) -> Apart:
    """Compare counts, which are exact: the interval is the range of all pairs."""
    every = [method([a], [b]).estimate for a in first for b in second]
    return Apart(method(first, second).estimate, Interval(min(every), max(every), 1.0))


def _verdict(check: Compare, pairs: dict[str, Apart], unit: str) -> _Found:
    claimed = words.bounds(check.bounds, unit)
    text = f"{words.pair(check)} {intervals.describe(pairs, unit)}, claimed {claimed}"
    if check.over != "some size":
        holds, because = intervals.all_within(pairs, check.bounds, text)
        return _VERDICTS[holds], because
    judged = {place: intervals.within(apart, check.bounds) for place, apart in pairs.items()}
    if reached := [place for place, answer in judged.items() if answer]:
        return Verdict.HOLDS, f"{text}; reached {reached[0]}"
    if None not in judged.values():
        return Verdict.DOES_NOT_HOLD, f"{text}; reached at no size"
    return Verdict.UNTESTED, f"{intervals.why_undecided(pairs)} {text}"


def _falls(check: Falls, results: Results) -> _Found:
    found = usable(results, check.of)
    if isinstance(found, str):
        return Verdict.UNTESTED, found
    values = found[0].by_size
    sizes = sorted(size for size in values if size in check.sizes)
    if len(sizes) < 2:
        return Verdict.UNTESTED, "because the run has fewer than two of the sizes"
    ends = two_samples.ratio(values[sizes[0]], values[sizes[-1]])
    factor = words.number(ends.estimate)
    text = f"from {sizes[0]} to {sizes[-1]} bytes it changes by a factor of {factor}"
    rises = [
        f"{small} to {large} bytes"
        for small, large in itertools.pairwise(sizes)
        if intervals.within(two_samples.ratio(values[small], values[large]), intervals.LESS)
        is False
    ]
    if rises:
        return Verdict.DOES_NOT_HOLD, f"{text}, but it rises from {rises[0]}"
    down = intervals.within(ends, intervals.LESS)
    if down is None:
        return Verdict.UNTESTED, f"{intervals.why_undecided({'': ends})} {text}"
    return (Verdict.HOLDS if down else Verdict.DOES_NOT_HOLD), text


def _dips(check: Dips, results: Results) -> _Found:
    found = usable(results, check.of)
    if isinstance(found, str):
        return Verdict.UNTESTED, found
    values = found[0].by_size
    before = max((size for size in values if size < check.at), default=None)
    if check.at not in values or before is None:
        if (top := max(values)) < check.at:
            return (
                Verdict.UNTESTED,
                f"because this run's sizes end at {top} bytes, before {check.at}",
            )
        return (
            Verdict.UNTESTED,
            f"because this run has no size of {check.at} bytes, or none before it",
        )
    apart = two_samples.ratio(values[before], values[check.at])
    factor = words.number(apart.estimate)
    text = f"at {check.at} bytes it is {factor} times its value at {before} bytes"
    down = intervals.within(apart, intervals.LESS)
    if down is None:
        return Verdict.UNTESTED, f"{intervals.why_undecided({'': apart})} {text}"
    return (Verdict.HOLDS if down is check.present else Verdict.DOES_NOT_HOLD), text


def _stalls(check: Stalls, results: Results) -> _Found:
    ended = {test: results.finished(test, check.transport) for test in check.tests}
    if not any(ended.values()):
        return Verdict.UNTESTED, why_no_data(check.transport, ", ".join(check.tests), results)
    text = ", ".join(
        f"{count} of {results.repetitions} repetitions of {test}" for test, count in ended.items()
    )
    if all(count == results.repetitions for count in ended.values()):
        return Verdict.DOES_NOT_HOLD, f"{text} over {check.transport} finished"
    return (
        Verdict.UNTESTED,
        f"because only {text} over {check.transport} have results; the report says why the others "
        "have none",
    )


def _no_size(check: Compare, samples: Samples) -> str:
    top = max(samples.by_size)
    if top < check.sizes.low:
        return f"because this run's sizes end at {top} bytes, before {check.sizes.low}"
    return f"because this run has no size from {check.sizes.low} to {check.sizes.high} bytes"


def counted(found: Iterable[Answer]) -> dict[Verdict, int]:
    """How many claims have each verdict."""
    totals = dict.fromkeys(Verdict, 0)
    for answer in found:
        totals[answer.verdict] += 1
    return totals
