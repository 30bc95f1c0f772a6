# SPDX-License-Identifier: GPL-2.0-or-later
"""What a switch adds, from two runs of a study's plan through fewer (or no) and more switches.

The repetitions of two runs do not interleave, so the difference includes anything else that
changed in between; rocelab.compare.environment_differences lists what is known of that.
"""

from __future__ import annotations

from rocelab.stats import two_samples
from rocelab.stats.summary import CONFIDENCE, Interval
from rocelab.stats.two_samples import Apart
from rocelab.studies import intervals, words
from rocelab.studies.claims import Adds
from rocelab.studies.samples import Results, Samples, usable

_ASK = (
    "because this takes two runs: run the plan with and without a switch (`rocelab study run "
    "--switches 1`), then use `rocelab study report RUN --beside OTHER_RUN`"
)


def adds(check: Adds, results: Results, other: Results | None) -> tuple[bool | None, str]:
    """Whether a switch adds what the claim says (None: undecided), and the reason."""
    if other is None:
        return None, _ASK
    switches = _more_switches(results, other)
    if isinstance(switches, str):
        return None, switches
    fewer, more = (results, other) if switches > 0 else (other, results)
    operands = (check.of, check.beyond) if check.beyond else (check.of,)
    without, through = usable(fewer, *operands), usable(more, *operands)
    if isinstance(without, str):
        return None, without
    if isinstance(through, str):
        return None, through
    return _judged(check, without, through, abs(switches))


def _more_switches(results: Results, other: Results) -> int | str:
    """How many more switches the other run went through, or why the two are not comparable."""
    if results.switches is None or other.switches is None:
        return (
            "because a run does not say how many switches were between its hosts; `rocelab study "
            "run --switches` records it"
        )
    if results.switches == other.switches:
        return f"because both runs went through the same number of switches, {results.switches}"
    if results.accelerators != other.accelerators:
        both = " and ".join(", ".join(run.accelerators) for run in (results, other))
        return f"because the two runs were measured under {both}"
    return other.switches - results.switches


def _judged(
    check: Adds, without: tuple[Samples, ...], through: tuple[Samples, ...], switches: int
) -> tuple[bool | None, str]:
    common = set.intersection(*(set(samples.by_size) for samples in (*without, *through)))
    sizes = sorted(size for size in common if size in check.sizes)
    if not sizes:
        return None, "because the runs have none of the claim's sizes in common"
    # with two differences, a higher confidence of each keeps that of both together
    confidence = 1 - (1 - CONFIDENCE) / len(without)
    pairs = {
        f"at {size} bytes": _each(
            [
                two_samples.difference(before.by_size[size], after.by_size[size], confidence)
                for before, after in zip(without, through, strict=True)
            ],
            switches,
        )
        for size in sizes
    }
    unit = f" {without[0].unit}"
    bounds = words.bounds(check.bounds, unit)
    text = f"{words.added(check)}: {intervals.describe(pairs, unit)}, claimed {bounds}"
    if switches > 1:
        text = f"{text}; for {switches} switches, divided by {switches}"
    return intervals.all_within(pairs, check.bounds, text, confidence)


def _each(added: list[Apart], switches: int) -> Apart:
    """The difference per switch; of two differences, the first minus the second."""
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
