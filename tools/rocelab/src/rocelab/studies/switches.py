# SPDX-License-Identifier: GPL-2.0-or-later
"""What a switch adds, from two runs of one study's plan: back to back, or through fewer, and more.

The repetitions of two runs do not interleave, so that whatever else changed in between is in the
difference, too: rocelab.compare.environment says what is known of that.
"""

from __future__ import annotations

from rocelab.run import two_samples
from rocelab.run.stats import CONFIDENCE, Interval
from rocelab.run.two_samples import Apart
from rocelab.studies import intervals, words
from rocelab.studies.samples import Results, Samples, usable
from rocelab.studies.study import Adds

_ASK = (
    "because one run has one topology: run the plan with and without a switch (`rocelab study run "
    "--switches 1`), then `rocelab study report` this run with `--beside` the other"
)


def adds(check: Adds, results: Results, beside: Results | None) -> tuple[bool | None, str]:
    """Whether a switch adds what the claim says; None: that cannot be told, because."""
    if beside is None:
        return None, _ASK
    switches = _between(results, beside)
    if isinstance(switches, str):
        return None, switches
    fewer, more = (results, beside) if switches > 0 else (beside, results)
    operands = (check.of, check.beyond) if check.beyond else (check.of,)
    without, through = usable(fewer, *operands), usable(more, *operands)
    if isinstance(without, str):
        return None, without
    if isinstance(through, str):
        return None, through
    return _judged(check, without, through, abs(switches))


def _between(results: Results, beside: Results) -> int | str:
    """How many more switches the other run went through; or why the two do not compare."""
    if results.switches is None or beside.switches is None:
        return (
            "because a run does not say how many switches were between its hosts: `rocelab study "
            "run --switches` writes it down"
        )
    if results.switches == beside.switches:
        return f"because both runs went through as many switches: {results.switches}"
    if results.accelerators != beside.accelerators:
        both = " and ".join(", ".join(run.accelerators) for run in (results, beside))
        return f"because the two runs were measured under {both}"
    return beside.switches - results.switches


def _judged(
    check: Adds, without: tuple[Samples, ...], through: tuple[Samples, ...], switches: int
) -> tuple[bool | None, str]:
    common = set.intersection(*(set(samples.by_size) for samples in (*without, *through)))
    sizes = sorted(size for size in common if size in check.sizes)
    if not sizes:
        return None, "because the runs have no size in common that the claim is about"
    # two differences, each so sure that both together are as sure as one is
    confidence = 1 - (1 - CONFIDENCE) / len(without)
    pairs = {
        f"at {size} bytes": _each(
            [
                two_samples.difference(few.by_size[size], many.by_size[size], confidence)
                for few, many in zip(without, through, strict=True)
            ],
            switches,
        )
        for size in sizes
    }
    unit = f" {without[0].unit}"
    bounds = words.bounds(check.bounds, unit)
    told = f"{words.added(check)}: {intervals.told(pairs, unit)}, claimed {bounds}"
    if switches > 1:
        told = f"{told}; of {switches} switches, divided by {switches}"
    return intervals.everywhere(pairs, check.bounds, told, confidence)


def _each(added: list[Apart], switches: int) -> Apart:
    """Of one switch; of the first beyond the second, where there are two."""
    first, *others = added
    low, high = _ends(first)
    estimate = first.estimate
    coverage = first.interval.coverage if first.interval else 0.0
    for other in others:
        below, above = _ends(other)
        estimate, low, high = estimate - other.estimate, low - above, high - below
        coverage -= 1 - (other.interval.coverage if other.interval else 0.0)
    known = all(apart.interval for apart in added)
    between = Interval(low / switches, high / switches, coverage) if known else None
    return Apart(estimate / switches, between)


def _ends(of: Apart) -> tuple[float, float]:
    return (of.interval.low, of.interval.high) if of.interval else (of.estimate, of.estimate)
