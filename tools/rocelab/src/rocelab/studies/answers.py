# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run says to a study's claims: it holds, it does not, or it cannot be tested here.

A claim about a quantity is judged at each size by the confidence interval of the ratio (or the
difference), rocelab.run.two_samples: inside the claim's bounds is a yes, outside a no, across
a bound neither. Emulated nodes have no real time, so they answer only what is counted. What a
switch adds is answered by two runs: rocelab.studies.switches.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rocelab.run import two_samples
from rocelab.run.stats import Interval
from rocelab.run.two_samples import Apart
from rocelab.studies import intervals, switches, words
from rocelab.studies.samples import Results, Samples, nothing, usable
from rocelab.studies.study import (
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


class Verdict(StrEnum):
    """What a claim comes to."""

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


def answers(study: Study, results: Results, beside: Results | None = None) -> list[Answer]:
    """The run's answer to each of the study's claims.

    `beside`: of another run of the study, through more or fewer switches, for what one adds.
    """
    return [Answer(claim, *_answer(claim, results, beside)) for claim in study.claims]


def _answer(claim: Claim, results: Results, beside: Results | None) -> _Found:
    verdict, because = _judge(claim.check, results, beside)
    if not claim.needs:
        return verdict, because
    if verdict is Verdict.UNTESTED:
        return verdict, claim.needs
    return Verdict.UNTESTED, f"{claim.needs} This run by itself: {because}"


def _judge(check: Check, results: Results, beside: Results | None) -> _Found:
    match check:
        case Compare():
            return _compare(check, results)
        case Falls():
            return _falls(check, results)
        case Dips():
            return _dips(check, results)
        case Adds():
            holds, because = switches.adds(check, results, beside)
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
        pairs = {"of the best over all sizes": method(first.best(sizes), second.best(sizes))}
    unit = "" if check.how == "ratio" else f" {first.unit}"
    return _verdict(check, pairs, unit)


_Method = Callable[[Sequence[float], Sequence[float]], Apart]


def _method(check: Compare, samples: Samples) -> _Method:
    method: _Method = two_samples.ratio if check.how == "ratio" else two_samples.difference
    if samples.is_time:
        return method
    return lambda first, second: _exactly(method, first, second)


def _exactly(method: _Method, first: Sequence[float], second: Sequence[float]) -> Apart:
    """Of counts: nothing is uncertain but how far they range."""
    every = [method([a], [b]).estimate for a in first for b in second]
    return Apart(method(first, second).estimate, Interval(min(every), max(every), 1.0))


def _verdict(check: Compare, pairs: dict[str, Apart], unit: str) -> _Found:
    claimed = words.bounds(check.bounds, unit)
    told = f"{words.pair(check)} {intervals.told(pairs, unit)}, claimed {claimed}"
    if check.over != "some size":
        holds, because = intervals.everywhere(pairs, check.bounds, told)
        return _VERDICTS[holds], because
    judged = {place: intervals.within(apart, check.bounds) for place, apart in pairs.items()}
    if reached := [place for place, answer in judged.items() if answer]:
        return Verdict.HOLDS, f"{told}; reached {reached[0]}"
    if None not in judged.values():
        return Verdict.DOES_NOT_HOLD, f"{told}; reached at no size"
    return Verdict.UNTESTED, f"{intervals.few(pairs)} {told}"


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
    told = f"from {sizes[0]} to {sizes[-1]} bytes it changes by the factor {factor}"
    rises = [
        f"{small} to {large} bytes"
        for small, large in itertools.pairwise(sizes)
        if intervals.within(two_samples.ratio(values[small], values[large]), intervals.LESS)
        is False
    ]
    if rises:
        return Verdict.DOES_NOT_HOLD, f"{told}, and rises from {rises[0]}"
    down = intervals.within(ends, intervals.LESS)
    if down is None:
        return Verdict.UNTESTED, f"{intervals.few({'': ends})} {told}"
    return (Verdict.HOLDS if down else Verdict.DOES_NOT_HOLD), told


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
                f"because the sizes of this run end at {top} bytes, before {check.at}",
            )
        return Verdict.UNTESTED, f"because this run has no size of {check.at} bytes and one before"
    apart = two_samples.ratio(values[before], values[check.at])
    factor = words.number(apart.estimate)
    told = f"at {check.at} bytes it is {factor} times what it is at {before} bytes"
    down = intervals.within(apart, intervals.LESS)
    if down is None:
        return Verdict.UNTESTED, f"{intervals.few({'': apart})} {told}"
    return (Verdict.HOLDS if down is check.present else Verdict.DOES_NOT_HOLD), told


def _stalls(check: Stalls, results: Results) -> _Found:
    ended = {test: results.finished(test, check.transport) for test in check.tests}
    if not any(ended.values()):
        return Verdict.UNTESTED, nothing(check.transport, ", ".join(check.tests), results)
    told = ", ".join(
        f"{count} of {results.repetitions} repetitions of {test}" for test, count in ended.items()
    )
    if all(count == results.repetitions for count in ended.values()):
        return Verdict.DOES_NOT_HOLD, f"{told} over {check.transport} came to their end"
    return (
        Verdict.UNTESTED,
        f"because {told} over {check.transport} have results, and results do not say why others "
        "have none; the report does",
    )


def _no_size(check: Compare, samples: Samples) -> str:
    top = max(samples.by_size)
    if top < check.sizes.low:
        return f"because the sizes of this run end at {top} bytes, before {check.sizes.low}"
    return f"because this run has no size from {check.sizes.low} to {check.sizes.high} bytes"


def counted(found: Iterable[Answer]) -> dict[Verdict, int]:
    """How many claims came to each verdict."""
    totals = dict.fromkeys(Verdict, 0)
    for answer in found:
        totals[answer.verdict] += 1
    return totals
