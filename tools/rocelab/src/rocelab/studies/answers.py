# SPDX-License-Identifier: GPL-2.0-or-later
"""Check a study's claims against a run: holds, does not hold, not decided, cannot be tested here.

A claim about a quantity is judged by the confidence interval of the ratio or the difference between
the same repetitions of both sides (rocelab.studies.evidence), against the claim's bounds and their
tolerance (rocelab.studies.equivalence), at the sizes that the study asked about
(rocelab.studies.judging).
Emulated nodes have no real time, so they answer only claims about counts and, where they count
instructions, about work. What a switch adds takes two runs (rocelab.studies.switch_cost).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rocelab.accelerators import is_emulated
from rocelab.studies import comparisons, curves, switch_cost, words
from rocelab.studies.claims import (
    Adds,
    Average,
    Check,
    Claim,
    Compare,
    Dips,
    Falls,
    Stalls,
    Study,
    Untestable,
)
from rocelab.studies.samples import Results, why_no_data
from rocelab.studies.verdict import Found, Verdict, untested


@dataclass(frozen=True)
class Answer:
    """A claim's verdict and the reason for it."""

    claim: Claim
    verdict: Verdict
    because: str


def answers(study: Study, results: Results, other: Results | None = None) -> list[Answer]:
    """The run's answer to each of the study's claims.

    `other` is a run of the same study through more or fewer switches, for claims about switches.
    """
    return [_answer(claim, results, other) for claim in study.claims]


def _answer(claim: Claim, results: Results, other: Results | None) -> Answer:
    finding = judge(claim.check, results, other)
    verdict, because = finding.verdict, finding.because
    if finding.more is not None and results.seconds is not None:
        takes = words.duration(finding.more * results.seconds)
        because = f"{because}; at this run's pace, {finding.more} more take about {takes}"
    if claim.needs and verdict is Verdict.UNTESTED:
        because = claim.needs
    elif claim.analogue and verdict is not Verdict.UNTESTED:
        because = f"{because}. An analogue: {claim.analogue}"
    elif claim.needs:
        verdict, because = Verdict.UNTESTED, f"{claim.needs} This run alone gives: {because}"
    return Answer(claim, verdict, because)


def judge(check: Check, results: Results, other: Results | None = None) -> Found:
    """Carry out a check."""
    match check:
        case Compare():
            finding = comparisons.compare(check, results)
        case Average():
            finding = comparisons.average(check, results)
        case Falls():
            finding = curves.falls(check, results)
        case Dips():
            finding = curves.dips(check, results)
        case Adds():
            finding = switch_cost.adds(check, results, other)
        case Stalls():
            finding = _stalls(check, results)
        case Untestable():
            finding = untested(check.because)
    return finding


def _stalls(check: Stalls, results: Results) -> Found:
    ended = {
        test: results.repetitions_of(check.tool, test, check.transport) for test in check.tests
    }
    hung = {test: results.hung(check.tool, test, check.transport) for test in check.tests}
    if not any(ended.values()) and not any(hung.values()):
        return untested(why_no_data(check.transport, ", ".join(check.tests), results))
    text = ", ".join(
        f"{count} of {results.repetitions} repetitions of {test}" for test, count in ended.items()
    )
    if all(count == results.repetitions for count in ended.values()):
        return Found(Verdict.DOES_NOT_HOLD, f"{text} over {check.transport} finished")
    if any(hung.values()):
        count = ", ".join(f"{each} of {test}" for test, each in hung.items())
        stopped = f"repetitions over {check.transport} did not end in time: {count}"
        if any(map(is_emulated, results.accelerators)):
            return untested(f"because {stopped}, but the nodes were emulated, which is slow")
        return Found(Verdict.HOLDS, stopped)
    return untested(
        f"because only {text} over {check.transport} have results; the report says why the others "
        "have none"
    )


def count_by_verdict(answers: Iterable[Answer]) -> dict[Verdict, int]:
    """How many claims have each verdict."""
    totals = dict.fromkeys(Verdict, 0)
    for answer in answers:
        totals[answer.verdict] += 1
    return totals
