# SPDX-License-Identifier: GPL-2.0-or-later
"""Sentences that qualify numbers: the accelerator, what whiskers mean, the measuring programs.

Every figure's caption has them, because figures are shown without their page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rocelab import units
from rocelab.plans.plan import ENOUGH_REPETITIONS
from rocelab.record.accelerator import is_emulated
from rocelab.record.read import Series
from rocelab.report import series_order

_ACCELERATORS = {
    "tcg": "tcg, software emulation: no real times",
    "icount": "icount, software emulation that counts instructions: no real times",
    "kvm": "kvm, virtual machines on the real processor",
    "native": "native, the real machine",
}

_CAPTIONS = {
    "tcg": (
        "Accelerator: tcg. The nodes were emulated in software and measured emulated instructions, "
        "not real time. Compare figures only within this run, never with those of a real machine; "
        "they give no share of time."
    ),
    "icount": (
        "Accelerator: icount. The nodes were emulated in software with a clock that counts "
        "instructions (1 ns is one instruction): these are instruction counts, not real time. They "
        "show differences between configurations and give no share of time."
    ),
    "kvm": "Accelerator: kvm. Measured in virtual machines on the real processor.",
    "native": "Accelerator: native. Measured on the real machine.",
}

KINDS = {
    "one_way_half_rtt": "one way, as half of a round trip",
    "round_trip": "whole round trip",
    "one_way": "one way",
    "whole_file": "a file, from the start of the client's program to its end",
}


def accelerator_label(accelerator: str) -> str:
    """Return an accelerator's name and meaning."""
    return _ACCELERATORS.get(accelerator, f"{accelerator or 'unknown'}: not known to this version")


def accelerator_caption(accelerator: str) -> str:
    """Return the sentence that every figure of this accelerator carries."""
    return _CAPTIONS.get(
        accelerator,
        f"Accelerator: {accelerator or 'unknown'}, which this version of rocelab does not know: "
        "treat these as emulated figures, not real time.",
    )


def time_unit(unit: str, accelerator: str) -> str:
    """Return a unit of time as an axis names it: `µs`, or `emulated µs`."""
    return f"emulated {unit}" if is_emulated(accelerator) else unit


def has_intervals(series: Iterable[Series]) -> bool:
    """Say whether every one of `series` has enough repetitions for a confidence interval."""
    return all(item.spread.interval is not None for item in series)


def whisker_caption(series: Sequence[Series]) -> str:
    """Say what the points, dots and whiskers of a figure of these series mean."""
    counts = sorted({item.spread.count for item in series})
    span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    noun = "repetition" if counts == [1] else "repetitions"
    start = f"Lines join medians over {span} {noun}, dots are single repetitions."
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


def programs_caption(series: Sequence[Series]) -> str:
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
        return ""
    parts = [f"{units.listing(list(names))} by {units.listing(p)}" for names, p in programs.items()]
    methods: dict[str, set[str]] = {}
    for item in series:
        methods.setdefault(item.benchmark, set()).add(item.program)
    note = ""
    if any(len(found) > 1 for found in methods.values()):
        note = " Programs differ in method, which is part of any difference between them."
    return f"Measured: {'; '.join(parts)}.{note}"
