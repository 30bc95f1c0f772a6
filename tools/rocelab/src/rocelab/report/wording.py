# SPDX-License-Identifier: GPL-2.0-or-later
"""Sentences that qualify numbers: the accelerator, what whiskers mean, the measuring programs.

Every figure's caption has them, because figures are shown without their page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rocelab import accelerators, metrics, units
from rocelab.accelerators import is_emulated
from rocelab.plans.plan import ENOUGH_REPETITIONS
from rocelab.record.read import Series
from rocelab.report import series_order

KINDS = {
    "one_way_half_rtt": "one way, as half of a round trip",
    "round_trip": "whole round trip",
    "one_way": "one way",
    "both_ways": "both ways together",
    "all_pairs": "all pairs at once",
    "collective": "collective",
    "application": "application",
    "request": "a request of remote storage, from its submission to its completion",
    "whole_file": "a file, from the start of the client's program to its end",
}


def accelerator_label(accelerator: str) -> str:
    """Return an accelerator's name and meaning."""
    return accelerators.of(accelerator).label


COST = {
    metrics.MEAN: "Mean cost of a packet",
    metrics.TYPICAL: "Cost of a typical packet",
}
"""By the figure of the stages."""
FIGURES = {
    metrics.MEAN: "Means, because means add up and medians do not.",
    metrics.TYPICAL: "Typical is the mean of the middle half of the packets, stage by stage: what "
    "few of them meet, such as an interrupt, does not move it.",
}
"""What they mean."""


def accelerator_caption(accelerator: str) -> str:
    """Return the sentence that every figure of this accelerator carries."""
    return accelerators.of(accelerator).caption


def time_unit(unit: str, accelerator: str) -> str:
    """Return a unit as an axis names it: `µs`, `emulated µs`, or `instructions`, which are real."""
    real = unit == accelerators.INSTRUCTIONS or not is_emulated(accelerator)
    return unit if real else f"emulated {unit}"


def time_scale(ns: Sequence[float], accelerator: str) -> tuple[float, str]:
    """Return the divisor and the unit in which times (ns) that include waits read best."""
    factor, unit = units.scale("ns", list(ns))
    return factor, time_unit(unit, accelerator)


def work_scale(values: Sequence[float], accelerator: str) -> tuple[float, str]:
    """Return the divisor and the unit of work: a time, or a number of instructions.

    `values` are in the unit of results.parquet (`metrics.is_work`).
    """
    if accelerators.of(accelerator).counts_instructions:
        return 1.0, accelerators.INSTRUCTIONS
    return time_scale(values, accelerator)


def work(value: float, accelerator: str) -> str:
    """Return work with its unit: `12.3 ns`, `98 instructions`."""
    factor, unit = work_scale([value], accelerator)
    return f"{units.number(value / factor)} {unit}"


def work_title(quantity: str, unit: str, per: str) -> str:
    """Return the title of an axis of work: `time per packet (ns)`, `instructions per packet`."""
    return (
        f"{unit} per {per}"
        if unit == accelerators.INSTRUCTIONS
        else f"{quantity} per {per} ({unit})"
    )


def has_intervals(series: Iterable[Series]) -> bool:
    """Say whether every one of `series` has enough repetitions for a confidence interval."""
    return all(item.spread.interval is not None for item in series)


def whisker_caption(series: Sequence[Series]) -> str:
    """Say what the points, dots and whiskers of a figure of these series mean."""
    counts = sorted({item.spread.count for item in series})
    if counts == [1]:
        return "One repetition: points are its values, without a spread."
    span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    start = f"Lines join medians over {span} repetitions, dots are single repetitions."
    if has_intervals(series):
        covered = min(item.spread.interval.coverage for item in series if item.spread.interval)
        return (
            f"{start} Whiskers: confidence interval of the median from order statistics, with a "
            f"coverage of at least {covered:.1%} and no assumption about the distribution."
        )
    return (
        f"{start} Whiskers span the smallest to the largest. There is no confidence interval: it "
        f"takes at least {ENOUGH_REPETITIONS} repetitions."
    )


def programs_notes(series: Sequence[Series]) -> tuple[str, ...]:
    """Say which program measured which transport, and whether methods differ."""
    carried: dict[str, list[str]] = {}
    for item in sorted(series, key=lambda i: series_order.transport_rank(i.transport)):
        transports = carried.setdefault(item.program, [])
        if item.transport not in transports:
            transports.append(item.transport)
    carried.pop("", None)
    programs: dict[tuple[str, ...], list[str]] = {}
    for program, names in carried.items():
        programs.setdefault(tuple(names), []).append(program)
    if not programs:
        return ()
    parts = [f"{units.listing(list(names))} by {units.listing(p)}" for names, p in programs.items()]
    methods: dict[str, set[str]] = {}
    for item in series:
        methods.setdefault(item.benchmark, set()).add(item.program)
    notes = [f"Measured: {'; '.join(parts)}."]
    if any(len(used) > 1 for used in methods.values()):
        notes.append("Programs differ in method, which is part of any difference between them.")
    return tuple(notes)
