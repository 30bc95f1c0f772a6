# SPDX-License-Identifier: GPL-2.0-or-later
"""What a switch adds, from two runs of a study's plan through fewer (or no) and more switches.

The repetitions of two runs do not interleave, so the difference includes anything else that
changed in between; rocelab.compare.environment_differences lists what is known about that.
"""

from __future__ import annotations

from rocelab.studies import describe, equivalence, evidence, judging, words
from rocelab.studies.claims import Adds
from rocelab.studies.samples import Results, Samples, usable
from rocelab.studies.verdict import Found, untested

_ASK = (
    "because this takes two runs: run the plan with and without a switch (`rocelab study run "
    "--switches 1`), then use `rocelab study report RUN --beside OTHER_RUN`"
)


def adds(check: Adds, results: Results, other: Results | None) -> Found:
    """Judge whether a switch adds what the claim says."""
    if other is None:
        return untested(_ASK)
    switches = _more_switches(results, other)
    if isinstance(switches, str):
        return untested(switches)
    fewer, more = (results, other) if switches > 0 else (other, results)
    operands = (check.operand, check.beyond) if check.beyond else (check.operand,)
    without, through = usable(fewer, *operands), usable(more, *operands)
    if isinstance(without, str):
        return untested(without)
    if isinstance(through, str):
        return untested(through)
    return _judge(check, without, through, abs(switches))


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


def _judge(
    check: Adds, without: tuple[Samples, ...], through: tuple[Samples, ...], switches: int
) -> Found:
    common = set.intersection(*(set(samples.by_size) for samples in (*without, *through)))
    sizes = sorted(size for size in common if size in check.sizes)
    if not sizes:
        return untested("because the runs have none of the claim's sizes in common")
    places = {
        f"at {size} bytes": evidence.of_runs(
            _values(without, size), _values(through, size), switches
        )
        for size in sizes
        if _values(without, size) and _values(through, size)
    }
    if not places:
        return untested("because no repetition has both sides of the comparison")
    unit = f" {without[0].unit}"
    claimed = words.bounds_with_tolerance(check.bounds, "difference", unit)
    text = f"{words.quantity(check)}: {describe.estimates(places, unit)}, claimed {claimed}"
    if switches > 1:
        text = f"{text}; for {switches} switches, divided by {switches}"
    return describe.verdict(
        judging.every(places, equivalence.of(check.bounds, "difference")), places, text
    )


def _values(run: tuple[Samples, ...], size: int) -> list[float]:
    """A run's values by repetition; of two operands, what the first is above the second."""
    first, *beyond = (samples.by_size[size] for samples in run)
    if not beyond:
        return list(first.values())
    return [value - beyond[0][r] for r, value in first.items() if r in beyond[0]]
