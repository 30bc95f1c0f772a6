# SPDX-License-Identifier: GPL-2.0-or-later
"""Describe a study's checks, figures and plans, for its page and the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rocelab.plans.plan import Benchmark, Plan
from rocelab.stats.sample_size import MAX_PAIRS
from rocelab.studies.claims import (
    Adds,
    Average,
    Bounds,
    Check,
    Claim,
    Compare,
    Dips,
    Falls,
    Figure,
    Operand,
    Sizes,
    Stalls,
    Untestable,
)
from rocelab.studies.evidence import How
from rocelab.studies.planning import NOISES, Need


def check(of: Check) -> str:
    """The check that decides a claim."""
    match of:
        case Compare():
            text = f"{_compare(of)}{_ranks(of.first, of.second)}"
        case Average():
            text = (
                f"{of.first.metric} of {of.first.tool} {', '.join(of.tests)}, mean: "
                f"{of.second.transport} / {of.first.transport} is {claimed(of.bounds, 'ratio')}"
            )
        case Falls():
            text = f"{of.of.text} falls with size{_sizes(of.sizes)} and never rises by 5 % or more"
            text = f"{text}{_ranks(of.of)}"
        case Dips():
            smaller = "is smaller" if of.present else "is not smaller"
            where = f"at one size{_sizes(of.sizes)} or more"
            if of.sizes.low == of.sizes.high:
                where = f"at {of.sizes.low} bytes"
            text = f"{of.of.text} {smaller} {where} than at the previous size{_ranks(of.of)}"
        case Adds():
            within = claimed(of.bounds, "difference", " ns")
            text = f"{added(of)} is {within} at every size{_sizes(of.sizes)}, from two runs"
        case Stalls():
            tests = " or ".join(of.tests)
            text = f"a repetition of {of.tool} {tests} over {of.transport} does not finish"
        case Untestable():
            text = f"none, {of.because}"
    return text


def quotation(of: Claim) -> str:
    """The study's words in quotation marks, and after them which part the check is about."""
    return f"“{of.text}”{f' ({of.about})' if of.about else ''}"


def pair(of: Compare) -> str:
    """The two sides of a comparison, named by what distinguishes them."""
    sign = "/" if of.how == "ratio" else "\N{MINUS SIGN}"
    if of.first.transport != of.second.transport:
        return f"{of.second.transport} {sign} {of.first.transport}"
    if of.first.benchmark == of.second.benchmark:
        return f"{of.second.metric} {sign} {of.first.metric}"
    if of.first.test == of.second.test:
        return f"{of.second.benchmark} {sign} {of.first.benchmark}"
    return f"{of.second.test} {sign} {of.first.test}"


def added(of: Adds) -> str:
    """The quantity that two runs measure."""
    if of.beyond is None:
        return f"what a switch adds to {of.of.text}"
    return f"what a switch adds to {of.of.text} \N{MINUS SIGN} over {of.beyond.transport}"


def bounds(of: Bounds, unit: str = "") -> str:
    """A claim's bounds in words."""
    if of.high == float("inf"):
        return f"{_above(of.low)}{unit}"
    if of.low == of.high:
        return f"{number(of.low)}{unit}"
    if of.low <= 0 and not unit:
        return f"below {number(of.high)}{unit}"
    return f"{number(of.low)} to {number(of.high)}{unit}"


def claimed(of: Bounds, how: How, unit: str = "") -> str:
    """A claim's bounds and their tolerance in words."""
    step = of.tolerance.value
    source = of.tolerance.source or "the default"
    if 1 in (of.low, of.high) and how == "ratio":
        return f"{bounds(of, unit)} (by more than {step * 100:.3g} %, {source})"
    if how == "ratio" or not of.tolerance.source:
        return f"{bounds(of, unit)} (± {step * 100:.3g} %, {source})"
    return f"{bounds(of, unit)} (± {number(step)}{unit}, {source})"


def number(value: float) -> str:
    """Format with four significant digits; large numbers without an exponent."""
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def figure(of: Figure) -> str:
    """A published value with its unit."""
    span = f"{of.low:g}" if of.low == of.high else f"{of.low:g} to {of.high:g}"
    place = f" at {of.size} bytes" if of.size is not None else ""
    return f"{span} {of.unit}{place}"


def repetitions(of: Need | None) -> str:
    """How many repetitions a study's plan takes."""
    if of is None:
        return ""
    counts = {noise: of.repetitions(noise) for noise in NOISES}
    each = ", ".join(
        f"{f'over {MAX_PAIRS}' if count is None else count} at {noise:.0%}".replace("%", " %")
        for noise, count in counts.items()
    )
    at = f" at {of.sizes} sizes" if of.sizes > 1 else ""
    return (
        f"The smallest difference that a ratio's claim tells apart is {of.difference * 100:.3g} % "
        f"({of.claim}{at}). By the noise between repetitions that takes this many: {each}."
    )


def duration(seconds: float) -> str:
    """A time to wait, in the unit that suits it."""
    if seconds < 120:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def sizes(values: tuple[int, ...]) -> str:
    """A plan's message sizes in bytes."""
    if len(values) <= 6:
        return ", ".join(map(str, values))
    return f"{len(values)} from {min(values)} to {max(values)}"


def _iterations(of: Benchmark) -> str:
    few = f", above 8 KiB {of.large_iterations}" if of.large_iterations is not None else ""
    most = f", at most {of.volume >> 20} MiB" if of.volume is not None else ""
    return f"{of.iterations}{few}{most}"


def benchmark(of: Benchmark, plan: Plan) -> Iterator[tuple[str, str]]:
    """A plan's benchmark as pairs of heading and text."""
    mpi = of.mpi
    yield "benchmark", f"{of.tool} {of.title}"
    yield "transports", ", ".join(t for t in plan.transports if t in of.transports)
    yield "sizes (bytes)", sizes(of.sizes)
    yield "iterations", _iterations(of)
    yield "ranks", f"{mpi.ranks}, {mpi.ranks_per_node} per node" if mpi else ""
    yield "method", mpi.method if mpi and of.tool == "mpibench" else ""


def _ranks(*operands: Operand) -> str:
    """The ranks that a claim names."""
    named = [
        *(f"{of.ranks} ranks" for of in operands if of.ranks),
        *(f"{of.ranks_per_node} ranks per node" for of in operands if of.ranks_per_node),
    ]
    return f", with {' and '.join(dict.fromkeys(named))}" if named else ""


def _above(low: float) -> str:
    return "above 1" if low == 1 else f"at least {number(low)}"


_OVER = {
    "every size": " at every size",
    "some size": " at one size or more",
    "best": "",
    "mean": "",
}


def _compare(of: Compare) -> str:
    unit = "" if of.how == "ratio" else " ns"
    first, second = of.first, of.second
    what = f"{second.metric}{f' ({second.kind})' if second.kind else ''}"
    if first.transport != second.transport:
        text = f"{what} of {second.benchmark}: {pair(of)}"
    elif first.benchmark == second.benchmark:
        text = f"{second.benchmark} over {second.transport}: {pair(of)}"
    else:
        text = f"{what} over {second.transport}: {pair(of)}"
    if of.over in ("best", "mean"):
        text = f"{of.over} {text}"
    through = "" if of.switches is None else f", through {of.switches} switches"
    return (
        f"{text} is {claimed(of.bounds, of.how, unit)}{_OVER[of.over]}{_sizes(of.sizes)}{through}"
    )


def _sizes(of: Sizes) -> str:
    if of.low == of.high:
        return f" ({of.low} bytes)"
    if of.high is None:
        return f" (from {of.low} bytes)" if of.low > 1 else ""
    if of.low <= 1:
        return f" (up to {of.high} bytes)"
    return f" ({of.low} to {of.high} bytes)"
