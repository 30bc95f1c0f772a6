# SPDX-License-Identifier: GPL-2.0-or-later
"""The sentences that keep numbers honest: what accelerator ran, what whiskers mean, who measured.

Captions say them in every figure, because a figure travels without its page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rocelab.accelerators import is_emulated
from rocelab.bench.plan import ENOUGH_REPETITIONS
from rocelab.report import fmt, grouping
from rocelab.report.runfolder import Series

_ACCELERATORS = {
    "tcg": "tcg, software emulation: no real times",
    "icount": "icount, software emulation that counts instructions: no real times",
    "kvm": "kvm, virtual machines on the real processor",
    "native": "native, the real machine",
}

_CAPTIONS = {
    "tcg": (
        "Accelerator: tcg. The nodes were emulated in software and measured emulated instructions, "
        "not real time: figures compare with each other within this run, never with those of a "
        "real machine, and give no share of time."
    ),
    "icount": (
        "Accelerator: icount. The nodes were emulated in software with a clock that counts "
        "instructions (1 ns stands for one): these are instruction counts, not real time. They "
        "serve differences between configurations and give no share of time."
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
    """Return an accelerator with what it means."""
    return _ACCELERATORS.get(accelerator, f"{accelerator or 'unknown'}: not known to this version")


def accelerator_caption(accelerator: str) -> str:
    """Return the sentence that every figure of this accelerator carries."""
    return _CAPTIONS.get(
        accelerator,
        f"Accelerator: {accelerator or 'unknown'}, which this version of rocelab does not know: "
        "take these for emulated figures, not real time.",
    )


def time_unit(unit: str, accelerator: str) -> str:
    """Return a unit of time as an axis names it: `µs`, or `emulated µs`."""
    return f"emulated {unit}" if is_emulated(accelerator) else unit


def has_intervals(series: Iterable[Series]) -> bool:
    """Say whether every one of `series` has enough repetitions for a confidence interval."""
    return all(item.spread.interval is not None for item in series)


def whisker_caption(series: Sequence[Series]) -> str:
    """Say what points, dots and whiskers of a figure of these series are."""
    counts = sorted({item.spread.count for item in series})
    span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    noun = "repetition" if counts == [1] else "repetitions"
    start = f"Lines join medians over {span} {noun}, dots are single repetitions."
    if has_intervals(series):
        covered = min(item.spread.interval.coverage for item in series if item.spread.interval)
        return (
            f"{start} Whiskers: confidence interval of the median from order statistics, which "
            f"covers it with at least {covered:.1%} probability and assumes no distribution."
        )
    return (
        f"{start} Whiskers span the smallest to the largest. No confidence interval is given: that "
        f"takes at least {ENOUGH_REPETITIONS} repetitions."
    )


def programs_caption(series: Sequence[Series]) -> str:
    """Say which program measured which transport: one quantity, perhaps by different methods."""
    carried: dict[str, list[str]] = {}
    for item in sorted(series, key=lambda i: grouping.transport_rank(i.transport)):
        transports = carried.setdefault(item.program, [])
        if item.transport not in transports:
            transports.append(item.transport)
    carried.pop("", None)
    programs: dict[tuple[str, ...], list[str]] = {}
    for program, names in carried.items():
        programs.setdefault(tuple(names), []).append(program)
    if not programs:
        return ""
    parts = [f"{fmt.listing(list(names))} by {fmt.listing(p)}" for names, p in programs.items()]
    methods: dict[str, set[str]] = {}
    for item in series:
        methods.setdefault(item.benchmark, set()).add(item.program)
    note = ""
    if any(len(found) > 1 for found in methods.values()):
        note = " Different programs differ in method; a difference between them is part of it."
    return f"Measured: {'; '.join(parts)}.{note}"
