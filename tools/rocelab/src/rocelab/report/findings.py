# SPDX-License-Identifier: GPL-2.0-or-later
"""Sentences computed from the results; one is written only when the data support it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from rocelab.accelerators import is_emulated
from rocelab.bench.plan import ENOUGH_REPETITIONS
from rocelab.report import comparisons, fmt, grouping, proof, stages, wording
from rocelab.report.comparisons import COMPARED, Comparison, Quantity, amount
from rocelab.report.figure import Note, Section
from rocelab.report.runfolder import Run, Series

_SENTENCES = 4
"""As many of one sort are key findings; the rest is for the table."""


def section(run: Run) -> Section:
    """Return the section on key findings: labels, each with its sentences."""
    points = {
        "Outcome": _outcome(run),
        **{quantity.label: _comparisons(run, quantity) for quantity in COMPARED},
        "Headers": _headers(run),
        "In the driver": chain(_largest_stage(run), _encapsulation(run)),
        "Outside the driver": _coverage(run),
    }
    said = ((label, _briefly(list(sentences))) for label, sentences in points.items())
    table = comparisons.table(run)
    notes: tuple[Note, ...] = ()
    if not run.series:
        notes = (Note("The run holds no results, so there is nothing to find.", "warning"),)
    return Section(
        "findings",
        "Key findings",
        notes=notes,
        points=tuple(entry for entry in said if entry[1]),
        tables=(table,) if table.rows else (),
    )


def _outcome(run: Run) -> Iterator[str]:
    if not run.cells:
        return
    total = fmt.plural(len(run.cells), "cell")
    good = [cell for cell in run.cells if cell.status == "ok"]
    proven = [
        cell for cell in good if cell.content and proof.evidence(cell.content).verdict == "proven"
    ]
    if len(good) == len(run.cells) == len(proven):
        yield (
            f"All {total} ended well, and in each of them counters and capture prove the transport."
        )
        return
    text = f"{len(good)} of {total} gave a result"
    if len(proven) < len(good):
        text += f", and {len(proven)} of these come with a proof of the transport"
    yield f"{text}; the section on errors names the others."


def _briefly(sentences: list[str]) -> tuple[str, ...]:
    if len(sentences) <= _SENTENCES:
        return tuple(sentences)
    more = len(sentences) - _SENTENCES
    return (
        *sentences[:_SENTENCES],
        f"{more} more of the kind are in the tables and figures below.",
    )


def _comparisons(run: Run, quantity: Quantity) -> Iterator[str]:
    for found in comparisons.found(run, quantity.metric):
        one, other = found[0].one, found[0].other
        subject = f"{one.benchmark} ({wording.KINDS.get(one.kind, one.kind)})"
        verdicts = grouping.by(found, lambda comparison: comparison.verdict)
        undecided = verdicts.pop("undecided", [])
        intervals = wording.has_intervals([i for c in found for i in (c.one, c.other)])
        if not verdicts:
            kind = "confidence intervals" if intervals else "repetitions"
            yield (
                f"{subject}: no evidence of a difference between {one.transport} and "
                f"{other.transport} in {quantity.name}: their {kind} overlap "
                f"{_sizes(undecided, len(found))}."
            )
            continue
        clauses = []
        for verdict, members in sorted(verdicts.items()):
            ends = [members[0], members[-1]] if len(members) > 1 else members
            amounts = "; ".join(f"{fmt.size(c.one.size)}: {_amounts(c)}" for c in ends)
            clauses.append(
                f"{verdict} than {other.transport}'s {_sizes(members, len(found))} ({amounts})"
            )
        text = f"{subject}: {one.transport}'s {quantity.name} was {' and '.join(clauses)}"
        if undecided:
            text += f"; no evidence of a difference {_sizes(undecided, len(found))}"
        basis = (
            "Confidence intervals of the medians do not overlap."
            if intervals
            else "That holds in every repetition; fewer than "
            f"{ENOUGH_REPETITIONS} give no interval."
        )
        yield f"{text}. {basis}"


def _sizes(found: Sequence[Comparison], total: int) -> str:
    names = [fmt.size(comparison.one.size) for comparison in found]
    if len(names) == total and total > 2:
        return f"at all {total} sizes, {names[0]} to {names[-1]}"
    if len(names) > 4:
        return f"at {len(names)} of {total} sizes, among them {names[0]} and {names[-1]}"
    return f"at {fmt.listing(names)}"


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
    for same in grouping.by(series, lambda i: (i.accelerator, i.transport)).values():
        yield [item for item in same if item.benchmark == same[0].benchmark]


def _encapsulation(run: Run) -> Iterator[str]:
    """Say how encapsulation and decapsulation grow with the message, if they do."""
    for metric, verb in (("encapsulation.mean", "sent"), ("decapsulation.mean", "received")):
        found = (i for i in run.by_size(metric) if not stages.is_acknowledgement(i.kind))
        for series in _leading(found):
            same = next(iter(grouping.by(series, lambda i: (i.kind, i.node)).values()))
            first, last = min(same, key=lambda i: i.size), max(same, key=lambda i: i.size)
            if first is last or comparisons.compare(last.spread, first.spread) != "higher":
                continue
            yield (
                f"{metric.removesuffix('.mean').capitalize()} of a packet "
                f"({stages.packet_name(first.kind)} {verb} by {first.node}, {first.benchmark}, "
                f"{first.transport}) grew from "
                f"{amount(first.spread.median, first.unit, first.accelerator)} at "
                f"{fmt.size(first.size)} to "
                f"{amount(last.spread.median, last.unit, last.accelerator)} at "
                f"{fmt.size(last.size)}."
            )


def _largest_stage(run: Run) -> Iterator[str]:
    """Name the largest stage, on real processors only: emulated costs give no ranking."""
    found = (
        item
        for item in run.series
        if item.metric.startswith("stage.")
        and not stages.is_acknowledgement(item.kind)
        and not is_emulated(item.accelerator)
    )
    for series in _leading(found):
        subject = f"{series[0].benchmark} over {series[0].transport}"
        clauses = []
        for place, bars in list(stages.bars(series).items())[:2]:
            bar = bars[-1]
            work = [cost for cost in bar.costs if cost.stage not in stages.APART]
            top = max(work, key=lambda cost: cost.per_packet)
            if top.spread[0] > max((c.spread[1] for c in work if c is not top), default=0.0):
                clauses.append(
                    f"where {place.title} of {fmt.size(bar.size)}, {top.stage}: "
                    f"{fmt.quantity(top.per_packet, 'ns')} of {fmt.quantity(bar.total, 'ns')} a "
                    "packet"
                )
        if clauses:
            yield f"The largest stage of {subject} was, {fmt.listing(clauses)}."


def _coverage(run: Run) -> Iterator[str]:
    found = [i for i in run.series if i.metric.startswith("coverage.")]
    for series in _leading(found):
        means = {(i.metric, i.size): i.spread.mean for i in series}
        accelerator = series[0].accelerator
        size = max(i.size for i in series)
        total, covered, outside = (
            means.get((f"coverage.{name}", size)) for name in ("total", "stages", "outside")
        )
        if total is None or covered is None or outside is None or outside < 0 or total <= 0:
            continue
        share = "" if is_emulated(accelerator) else f" ({covered / total:.0%})"
        yield (
            f"{series[0].benchmark} over {series[0].transport}, {fmt.size(size)}: of a mean "
            f"latency of {amount(total, 'ns', accelerator)}, the driver's stages at both ends "
            f"cover {amount(covered, 'ns', accelerator)}{share}; "
            f"{amount(outside, 'ns', accelerator)} lie outside the driver."
        )


def _headers(run: Run) -> Iterator[str]:
    groups = grouping.by(run.of("wire.header_bytes"), lambda i: i.benchmark)
    said = []
    for benchmark, series in groups.items():
        clauses = []
        for transport in grouping.transports(series):
            medians = [i.spread.median for i in series if i.transport == transport]
            low, high = fmt.number(min(medians)), fmt.number(max(medians))
            clauses.append(f"{transport} {low if low == high else f'{low} to {high}'}")
        said.append(f"{benchmark}: {', '.join(clauses)}")
    if said:
        yield f"Header bytes of a data frame, from the capture: {'; '.join(said)}."
