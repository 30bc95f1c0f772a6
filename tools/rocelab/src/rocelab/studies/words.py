# SPDX-License-Identifier: GPL-2.0-or-later
"""Describe a study's checks, figures and plans, for its page and the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rocelab.plans.plan import Benchmark, Plan
from rocelab.studies.claims import (
    LARGEST,
    Adds,
    Bounds,
    Check,
    Compare,
    Dips,
    Falls,
    Figure,
    Operand,
    Sizes,
    Stalls,
    Untestable,
)


def check(of: Check) -> str:
    """The check that decides a claim."""
    match of:
        case Compare():
            return f"{_compare(of)}{_ranks(of.first, of.second)}"
        case Falls():
            falls = f"{of.of.text} falls with size{_sizes(of.sizes)} and never rises"
            return f"{falls}{_ranks(of.of)}"
        case Dips():
            smaller = "is smaller" if of.present else "is not smaller"
            dips = f"{of.of.text} {smaller} at {of.at} bytes than at the previous size"
            return f"{dips}{_ranks(of.of)}"
        case Adds():
            within = bounds(of.bounds, " ns")
            adds = f"{added(of)} is {within} at every size{_sizes(of.sizes)}, from two runs"
            return f"{adds}{_ranks(of.of)}"
        case Stalls():
            return f"a repetition of {' or '.join(of.tests)} over {of.transport} does not finish"
        case Untestable():
            return f"none, {of.because}"


def pair(of: Compare) -> str:
    """The two sides of a comparison, named by what distinguishes them."""
    sign = "/" if of.how == "ratio" else "\N{MINUS SIGN}"
    if of.first.transport != of.second.transport:
        return f"{of.second.transport} {sign} {of.first.transport}"
    return f"{of.second.test} {sign} {of.first.test}"


def added(of: Adds) -> str:
    """The quantity that two runs measure."""
    if of.beyond is None:
        return f"what a switch adds to {of.of.text}"
    return (
        f"what a switch adds to {of.of.metric} of {of.of.test} over {of.of.transport} "
        f"\N{MINUS SIGN} over {of.beyond.transport}"
    )


def bounds(of: Bounds, unit: str = "") -> str:
    """A claim's bounds in words."""
    if of.high == float("inf"):
        return f"{_above(of.low)}{unit}"
    if of.low <= 0 and not unit:
        return f"below {number(of.high)}{unit}"
    return f"{number(of.low)} to {number(of.high)}{unit}"


def number(value: float) -> str:
    """Format with four significant digits; large numbers without an exponent."""
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def figure(of: Figure) -> str:
    """A published value with its unit."""
    span = f"{of.low:g}" if of.low == of.high else f"{of.low:g} to {of.high:g}"
    place = f" at {of.size} bytes" if of.size is not None else ""
    return f"{span} {of.unit}{place}"


def sizes(values: tuple[int, ...]) -> str:
    """A plan's message sizes in bytes."""
    if len(values) <= 6:
        return ", ".join(map(str, values))
    return f"{len(values)} from {min(values)} to {max(values)}"


def benchmark(of: Benchmark, plan: Plan) -> Iterator[tuple[str, str]]:
    """A plan's benchmark as pairs of heading and text."""
    mpi = of.mpi
    yield "benchmark", f"{of.tool} {of.title}"
    yield "transports", ", ".join(t for t in plan.transports if t in of.transports)
    yield "sizes (bytes)", sizes(of.sizes)
    yield "iterations", str(of.iterations)
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


def _compare(of: Compare) -> str:
    where = {"every size": "at every size", "some size": "at one size or more", "best": ""}
    unit = "" if of.how == "ratio" else " ns"
    first, second = of.first, of.second
    what = f"{second.metric}{f' ({second.kind})' if second.kind else ''}"
    if first.transport != second.transport:
        text = f"{what} of {second.test}: {pair(of)}"
    else:
        text = f"{what} over {second.transport}: {pair(of)}"
    if of.over == "best":
        text = f"best {text}"
    where_text = f" {where[of.over]}" if where[of.over] else ""
    return f"{text} is {bounds(of.bounds, unit)}{where_text}{_sizes(of.sizes)}"


def _sizes(of: Sizes) -> str:
    if of.low == of.high:
        return f" ({of.low} bytes)"
    if of.high >= LARGEST:
        return f" (from {of.low} bytes)" if of.low > 1 else ""
    if of.low <= 1:
        return f" (up to {of.high} bytes)"
    return f" ({of.low} to {of.high} bytes)"
