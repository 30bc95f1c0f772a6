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


def check(asked: Check) -> str:
    """The check that decides a claim."""
    match asked:
        case Compare():
            text = f"{_compare(asked)}{_ranks(asked.first, asked.second)}"
        case Average():
            text = (
                f"{asked.first.metric} of {asked.first.tool} {', '.join(asked.tests)}, mean: "
                f"{asked.second.transport} / {asked.first.transport} is "
                f"{bounds_with_tolerance(asked.bounds, 'ratio')}"
            )
        case Falls():
            sizes = _sizes(asked.sizes)
            text = f"{asked.operand.text} falls with size{sizes} and never rises by 5 % or more"
            text = f"{text}{_ranks(asked.operand)}"
        case Dips():
            smaller = "is smaller" if asked.present else "is not smaller"
            where = f"at one size{_sizes(asked.sizes)} or more"
            if asked.sizes.low == asked.sizes.high:
                where = f"at {asked.sizes.low} bytes"
            ranks = _ranks(asked.operand)
            text = f"{asked.operand.text} {smaller} {where} than at the previous size{ranks}"
        case Adds():
            within = bounds_with_tolerance(asked.bounds, "difference", " ns")
            text = (
                f"{quantity(asked)} is {within} at every size{_sizes(asked.sizes)}, from two runs"
            )
        case Stalls():
            tests = " or ".join(asked.tests)
            text = f"a repetition of {asked.tool} {tests} over {asked.transport} does not finish"
        case Untestable():
            text = f"none, {asked.because}"
    return text


def quotation(claim: Claim) -> str:
    """The study's words in quotation marks, and after them which part the check is about."""
    return f"“{claim.text}”{f' ({claim.about})' if claim.about else ''}"


def pair(compared: Compare) -> str:
    """The two sides of a comparison, named by what distinguishes them."""
    sign = "/" if compared.how == "ratio" else "\N{MINUS SIGN}"
    if compared.first.transport != compared.second.transport:
        return f"{compared.second.transport} {sign} {compared.first.transport}"
    if compared.first.benchmark == compared.second.benchmark:
        return f"{compared.second.metric} {sign} {compared.first.metric}"
    if compared.first.test == compared.second.test:
        return f"{compared.second.benchmark} {sign} {compared.first.benchmark}"
    return f"{compared.second.test} {sign} {compared.first.test}"


def quantity(adds: Adds) -> str:
    """The quantity that two runs measure."""
    if adds.beyond is None:
        return f"what a switch adds to {adds.operand.text}"
    return f"what a switch adds to {adds.operand.text} \N{MINUS SIGN} over {adds.beyond.transport}"


def bounds(limits: Bounds, unit: str = "") -> str:
    """A claim's bounds in words."""
    if limits.high == float("inf"):
        return f"{_above(limits.low)}{unit}"
    if limits.low == limits.high:
        return f"{number(limits.low)}{unit}"
    if limits.low <= 0 and not unit:
        return f"below {number(limits.high)}{unit}"
    return f"{number(limits.low)} to {number(limits.high)}{unit}"


def bounds_with_tolerance(limits: Bounds, how: How, unit: str = "") -> str:
    """A claim's bounds and their tolerance in words."""
    step = limits.tolerance.value
    source = limits.tolerance.source or "the default"
    if 1 in (limits.low, limits.high) and how == "ratio":
        return f"{bounds(limits, unit)} (by more than {step * 100:.3g} %, {source})"
    if how == "ratio" or not limits.tolerance.source:
        return f"{bounds(limits, unit)} (± {step * 100:.3g} %, {source})"
    return f"{bounds(limits, unit)} (± {number(step)}{unit}, {source})"


def number(value: float) -> str:
    """Format with four significant digits; large numbers without an exponent."""
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def figure(published: Figure) -> str:
    """A published value with its unit."""
    span = (
        f"{published.low:g}"
        if published.low == published.high
        else f"{published.low:g} to {published.high:g}"
    )
    place = f" at {published.size} bytes" if published.size is not None else ""
    return f"{span} {published.unit}{place}"


def repetitions(need: Need | None) -> str:
    """How many repetitions a study's plan takes."""
    if need is None:
        return ""
    counts = {noise: need.repetitions(noise) for noise in NOISES}
    each = ", ".join(
        f"{f'over {MAX_PAIRS}' if count is None else count} at {noise:.0%}".replace("%", " %")
        for noise, count in counts.items()
    )
    at = f" at {need.sizes} sizes" if need.sizes > 1 else ""
    return (
        f"The smallest difference that a ratio's claim tells apart is "
        f"{need.difference * 100:.3g} % ({need.claim}{at}). "
        f"By the noise between repetitions that takes this many: {each}."
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


def _iterations(measured: Benchmark) -> str:
    few = (
        f", above 8 KiB {measured.large_iterations}"
        if measured.large_iterations is not None
        else ""
    )
    most = f", at most {measured.volume >> 20} MiB" if measured.volume is not None else ""
    return f"{measured.iterations}{few}{most}"


def benchmark(measured: Benchmark, plan: Plan) -> Iterator[tuple[str, str]]:
    """A plan's benchmark as pairs of heading and text."""
    mpi = measured.mpi
    yield "benchmark", f"{measured.tool} {measured.title}"
    yield "transports", ", ".join(t for t in plan.transports if t in measured.transports)
    yield "sizes (bytes)", sizes(measured.sizes)
    yield "iterations", _iterations(measured)
    yield "ranks", f"{mpi.ranks}, {mpi.ranks_per_node} per node" if mpi else ""
    yield "method", mpi.method if mpi and measured.tool == "mpibench" else ""


def _ranks(*operands: Operand) -> str:
    """The ranks that a claim names."""
    named = [
        *(f"{operand.ranks} ranks" for operand in operands if operand.ranks),
        *(
            f"{operand.ranks_per_node} ranks per node"
            for operand in operands
            if operand.ranks_per_node
        ),
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


def _compare(compared: Compare) -> str:
    unit = "" if compared.how == "ratio" else " ns"
    first, second = compared.first, compared.second
    subject = f"{second.metric}{f' ({second.kind})' if second.kind else ''}"
    if first.transport != second.transport:
        text = f"{subject} of {second.benchmark}: {pair(compared)}"
    elif first.benchmark == second.benchmark:
        text = f"{second.benchmark} over {second.transport}: {pair(compared)}"
    else:
        text = f"{subject} over {second.transport}: {pair(compared)}"
    if compared.over in ("best", "mean"):
        text = f"{compared.over} {text}"
    through = "" if compared.switches is None else f", through {compared.switches} switches"
    bounds = bounds_with_tolerance(compared.bounds, compared.how, unit)
    return f"{text} is {bounds}{_OVER[compared.over]}{_sizes(compared.sizes)}{through}"


def _sizes(sizes: Sizes) -> str:
    if sizes.low == sizes.high:
        return f" ({sizes.low} bytes)"
    if sizes.high is None:
        return f" (from {sizes.low} bytes)" if sizes.low > 1 else ""
    if sizes.low <= 1:
        return f" (up to {sizes.high} bytes)"
    return f" ({sizes.low} to {sizes.high} bytes)"
