# SPDX-License-Identifier: GPL-2.0-or-later
"""Key findings: sentences computed from the results, written only if the data supports them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from rocelab import accelerators, metrics, stage_table, units
from rocelab.accelerators import is_emulated
from rocelab.group_by import group_by
from rocelab.plans.plan import ENOUGH_REPETITIONS
from rocelab.record import stage_costs
from rocelab.record.read import Run, Series
from rocelab.report import proof_tables, transport_comparison, wording
from rocelab.report.figure import Note, Section
from rocelab.report.transport_comparison import COMPARED, Comparison, Quantity, amount

_SENTENCES = 4
"""Most sentences of one kind; the rest is in the table."""


def section(run: Run, *, with_outcome: bool) -> Section | None:
    """Return the section on key findings: labels with sentences; None if nothing was found."""
    points = {
        "Outcome": outcome(run) if with_outcome else (),
        **{quantity.label: _comparisons(run, quantity) for quantity in COMPARED},
        "In the driver": chain(_largest_stage(run), _encapsulation(run)),
        "Outside the driver": _coverage(run),
    }
    every = ((label, _briefly(list(sentences))) for label, sentences in points.items())
    table = transport_comparison.table(run)
    notes: tuple[Note, ...] = ()
    if not run.series:
        notes = (Note("The run has no results, so there are no findings.", "warning"),)
    entries = tuple(entry for entry in every if entry[1])
    if not (notes or entries or table.rows):
        return None
    return Section(
        "findings",
        "Key findings",
        notes=notes,
        points=entries,
        tables=(table,) if table.rows else (),
    )


def outcome(run: Run) -> Iterator[str]:
    """Say how many cells gave a result, and whether these prove their transport."""
    if not run.cells:
        return
    total = units.plural(len(run.cells), "cell")
    good = [cell for cell in run.cells if cell.status == "ok"]
    proven = [
        cell
        for cell in good
        if cell.content and proof_tables.evidence(cell.content).verdict == "proven"
    ]
    if len(good) == len(run.cells) == len(proven):
        yield (
            f"All {total} succeeded, and in each of them counters and capture prove the transport."
        )
        return
    text = f"{len(good)} of {total} gave a result"
    if len(proven) < len(good):
        text += f", and {len(proven)} of these prove their transport"
    yield f"{text}; the section on errors lists the others."


def _briefly(sentences: list[str]) -> tuple[str, ...]:
    if len(sentences) <= _SENTENCES:
        return tuple(sentences)
    more = len(sentences) - _SENTENCES
    return (
        *sentences[:_SENTENCES],
        f"{more} more of this kind are in the tables and figures below.",
    )


def _comparisons(run: Run, quantity: Quantity) -> Iterator[str]:
    for comparisons in transport_comparison.comparisons(run, quantity.metric):
        one, other = comparisons[0].one, comparisons[0].other
        if accelerators.of(one.accelerator).times_follow_host:
            continue
        subject = f"{one.benchmark} ({wording.KINDS.get(one.kind, one.kind)})"
        verdicts = group_by(comparisons, lambda comparison: comparison.verdict)
        undecided = verdicts.pop("undecided", [])
        intervals = wording.has_intervals([i for c in comparisons for i in (c.one, c.other)])
        if not verdicts:
            kind = "confidence intervals" if intervals else "repetitions"
            yield (
                f"{subject}: no evidence of a difference between {one.transport} and "
                f"{other.transport} in {quantity.name}: their {kind} overlap "
                f"{_sizes(undecided, len(comparisons))}."
            )
            continue
        clauses = []
        for verdict, members in sorted(verdicts.items()):
            ends = [members[0], members[-1]] if len(members) > 1 else members
            amounts = "; ".join(f"{units.size(c.one.size)}: {_amounts(c)}" for c in ends)
            clauses.append(
                f"{verdict} than {other.transport}'s "
                f"{_sizes(members, len(comparisons))} ({amounts})"
            )
        text = f"{subject}: {one.transport}'s {quantity.name} was {' and '.join(clauses)}"
        if undecided:
            text += f"; no evidence of a difference {_sizes(undecided, len(comparisons))}"
        basis = (
            "Confidence intervals of the medians do not overlap."
            if intervals
            else "This holds in every repetition; fewer than "
            f"{ENOUGH_REPETITIONS} give no interval."
        )
        yield f"{text}. {basis}"


def _sizes(comparisons: Sequence[Comparison], total: int) -> str:
    names = [units.size(comparison.one.size) for comparison in comparisons]
    if len(names) == total and total > 2:
        return f"at all {total} sizes, {names[0]} to {names[-1]}"
    if len(names) > 4:
        return f"at {len(names)} of {total} sizes, including {names[0]} and {names[-1]}"
    return f"at {units.listing(names)}"


def _amounts(comparison: Comparison) -> str:
    one, other = comparison.one, comparison.other
    return (
        f"{amount(one.spread.median, one.unit, one.accelerator)} against "
        f"{amount(other.spread.median, other.unit, other.accelerator)}"
    )


def _leading(series: Iterable[Series]) -> Iterator[list[Series]]:
    """Choose, for each accelerator and transport, the first benchmark that has such series.

    Every benchmark has its own figure; the key findings give one example of each.
    """
    for same in group_by(series, lambda i: (i.accelerator, i.transport)).values():
        yield [item for item in same if item.benchmark == same[0].benchmark]


def _encapsulation(run: Run) -> Iterator[str]:
    """Say how encapsulation and decapsulation grow with the message size, if they do."""
    figure = stage_costs.figure_of(i for i in run.series if i.size != units.ALL_SIZES)
    packet = "a typical packet" if figure == metrics.TYPICAL else "a packet"
    for whole, verb in (("encapsulation", "sent"), ("decapsulation", "received")):
        means = (
            i
            for i in run.by_size(metrics.Capsule(whole, figure).name)
            if not stage_costs.is_acknowledgement(i.kind)
        )
        for series in _leading(means):
            same = next(iter(group_by(_of_messages(run, series), lambda i: i.node).values()))
            first, last = min(same, key=lambda i: i.size), max(same, key=lambda i: i.size)
            if first is last or transport_comparison.compare(last.spread, first.spread) != "higher":
                continue
            yield (
                f"{whole.capitalize()} of {packet} "
                f"({stage_costs.packet_name(first.kind)} {verb} by {first.node}, "
                f"{first.benchmark}, {first.transport}) grew from "
                f"{amount(first.spread.median, first.unit, first.accelerator)} at "
                f"{units.size(first.size)} to "
                f"{amount(last.spread.median, last.unit, last.accelerator)} at "
                f"{units.size(last.size)}."
            )


def _of_messages(run: Run, series: Sequence[Series]) -> list[Series]:
    """Those of the packets that carry the messages: the most frequent class that was measured."""
    [first, *_] = series
    counts = stage_costs.packets_by_class(
        i
        for i in run.series
        if (i.accelerator, i.benchmark, i.transport)
        == (first.accelerator, first.benchmark, first.transport)
    )
    most = max((i.kind for i in series), key=lambda kind: counts[kind])
    return [i for i in series if i.kind == most]


def _largest_stage(run: Run) -> Iterator[str]:
    """Name the largest stage, on real processors only: emulated costs give no ranking."""
    stages = (
        item
        for item in run.series
        if metrics.Stage.parse(item.metric)
        and not stage_costs.is_acknowledgement(item.kind)
        and not is_emulated(item.accelerator)
    )
    for each in _leading(stages):
        series = _of_messages(run, each)
        subject = f"{series[0].benchmark} over {series[0].transport}"
        clauses = []
        figure = stage_costs.figure_of(series)
        for place, bars in list(stage_costs.bars(series, figure).items())[:2]:
            bar = bars[-1]
            work = [cost for cost in bar.costs if cost.stage not in stage_table.APART]
            top = max(work, key=lambda cost: cost.per_packet)
            if top.spread[0] > max((c.spread[1] for c in work if c is not top), default=0.0):
                clauses.append(
                    f"where {place.title} of {units.size(bar.size)}, {top.stage}: "
                    f"{units.quantity(top.per_packet, 'ns')} of "
                    f"{units.quantity(bar.total, 'ns')} per packet"
                )
        if clauses:
            yield f"The largest stage of {subject} was, {units.listing(clauses)}."


def _coverage(run: Run) -> Iterator[str]:
    shares = [
        i
        for i in run.series
        if metrics.Coverage.parse(i.metric)
        # what includes a wait is no headline where the clock counts instructions
        and not accelerators.of(i.accelerator).counts_instructions
    ]
    for series in _leading(shares):
        means = {(i.metric, i.size): i.spread.mean for i in series}
        accelerator = series[0].accelerator
        size = max(i.size for i in series)
        total, covered, outside = (
            means.get((metrics.Coverage(name).name, size))
            for name in ("total", "stages", "outside")
        )
        if total is None or covered is None or outside is None or outside < 0 or total <= 0:
            continue
        share = "" if is_emulated(accelerator) else f" ({covered / total:.0%})"
        yield (
            f"{series[0].benchmark} over {series[0].transport}, {units.size(size)}: of a mean "
            f"latency of {amount(total, 'ns', accelerator)}, the driver's stages at both ends "
            f"cover {amount(covered, 'ns', accelerator)}{share}; "
            f"{amount(outside, 'ns', accelerator)} lie outside the driver."
        )
