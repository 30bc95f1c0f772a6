# SPDX-License-Identifier: GPL-2.0-or-later
"""The first screen: what a message costs over each transport, and where in the driver.

One benchmark at one size, in three sentences and two charts; the sections below have the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rocelab import accelerators, metrics, stage_table, units
from rocelab.accelerators import INSTRUCTIONS, is_emulated
from rocelab.group_by import group_by
from rocelab.plans.catalog import MPI_TOOLS
from rocelab.record import driver_work
from rocelab.record.read import Run, Series
from rocelab.record.stage_costs import (
    Bar,
    Place,
    bars,
    figure_of,
    is_acknowledgement,
    is_packet_cost,
    packet_name,
    packets_by_class,
)
from rocelab.report import (
    charts,
    cpu_split,
    driver_work_figure,
    findings,
    palette,
    series_order,
    wording,
)
from rocelab.report.figure import Column, Figure, Legend, Note, Panel, Section, Table
from rocelab.report.stage_panel import StageScale

TITLE = "What a packet costs, and where"
_TYPICAL = 1024
"""Of the sizes that ran, the nearest to this one is shown, bytes."""
_WIDTH = 210


@dataclass(frozen=True)
class _Subject:
    """A benchmark at a size, and what of it was measured over each transport."""

    accelerator: str
    tool: str
    benchmark: str
    size: int
    accounts: Mapping[str, Sequence[Series]]
    latencies: Mapping[str, Series]
    packets: Mapping[str, tuple[tuple[Place, Bar], ...]]
    """A message's packet at its sender, then at its receiver."""
    figure: str
    """Of its stages: `mean` or `typical`."""
    driver: Mapping[str, Mapping[str, float]]
    """What the driver does for a message, by transport and kind of work (`driver_work`)."""
    totals: Mapping[str, float]
    """What one more message costs all nodes, which is known without accounts, too."""

    @property
    def message(self) -> str:
        """What is sent."""
        return f"{units.size(self.size)} message of {self.benchmark}"

    @property
    def is_mpi(self) -> bool:
        """Whether mpirun started the benchmark."""
        return self.tool in MPI_TOOLS

    @property
    def leads_with_latency(self) -> bool:
        """Whether it comes first: an emulated one depends on the host, so stages do if known."""
        counts = accelerators.of(self.accelerator).counts_instructions
        return bool(self.latencies) and not (counts and self.packets)

    @property
    def is_typical(self) -> bool:
        """Whether stages are of a typical packet."""
        return self.figure == metrics.TYPICAL

    @property
    def is_marginal(self) -> bool:
        """Whether costs are those of one more message."""
        return any(cpu_split.is_marginal(some) for some in self.accounts.values())

    @property
    def start(self) -> str:
        """What else is among the costs of a message."""
        if self.is_marginal:
            return ""
        program = "mpirun" if self.is_mpi else "the programs"
        return f", with its share of the start of {program} and the cost of the probes"


def section(run: Run) -> Section | None:
    """Return the first section; None where neither costs, latencies nor stages were measured."""
    subject = _subject(run)
    if subject is None:
        return None
    figures = (*_costs(subject), *_driver(subject), *_stages(subject))
    sentences = (
        *_cost_sentence(subject),
        *_stage_sentence(subject),
        *_capsule_sentence(subject),
        *findings.outcome(run),
    )
    unreal = is_emulated(subject.accelerator)
    closing = (Note(wording.accelerator_caption(subject.accelerator), "warning"),)
    return Section(
        "answer",
        TITLE,
        notes=tuple(map(Note, sentences)),
        figures=figures,
        closing=closing if unreal else (),
        first=True,
    )


def _subject(run: Run) -> _Subject | None:
    """Choose the first benchmark of the plan that shows most, at its most typical size."""
    sized = [i for i in run.series if i.size > 0]
    accounts = {id(i) for i in cpu_split.per_message(run)}
    best: _Subject | None = None
    for (accelerator, benchmark), series in group_by(
        sized, lambda i: (i.accelerator, i.benchmark)
    ).items():
        sizes = {i.size for i in series if id(i) in accounts}
        sizes = sizes or {i.size for i in series if _is_total(i)}
        sizes = sizes or {i.size for i in series if is_packet_cost(i)}
        sizes = sizes or {i.size for i in series if i.metric == metrics.LATENCY}
        if not sizes:
            continue
        size = min(
            sizes, key=lambda known: (abs(known.bit_length() - _TYPICAL.bit_length()), known)
        )
        here = group_by((i for i in series if i.size == size), lambda i: i.transport)
        order = sorted(here, key=series_order.transport_rank)
        figure = figure_of(i for some in here.values() for i in some)
        subject = _Subject(
            accelerator,
            series[0].tool,
            benchmark,
            size,
            {t: some for t in order if (some := [i for i in here[t] if id(i) in accounts])},
            {t: i for t in order for i in here[t] if i.metric == metrics.LATENCY},
            {t: pair for t in order if (pair := _both_ends(here[t], figure))},
            figure,
            {t: work for t in order if (work := _driver_work(run, here[t], accounts))},
            {t: cost for t in order if (cost := _total(here[t])) > 0},
        )
        if best is None or _preference(subject) > _preference(best):
            best = subject
    return best


def _is_total(series: Series) -> bool:
    return (series.metric, series.kind) == (metrics.MESSAGE_COST, metrics.MARGINAL)


def _total(series: Iterable[Series]) -> float:
    return sum(item.spread.mean for item in series if _is_total(item))


def _driver_work(run: Run, series: Sequence[Series], accounts: set[int]) -> dict[str, float]:
    """The driver's part of one more message; empty where that was not measured."""
    some = [i for i in series if id(i) in accounts]
    if not cpu_split.is_marginal(some):
        return {}
    step = some[0]
    rows = run.table.filter(
        tool=step.tool, test=step.test, transport=step.transport, size=step.size
    )
    parts = cpu_split.kernel(some)
    driver = sum(value for (owner, _), value in parts.items() if owner == "rxe")
    return driver_work.by_kind(rows, driver) if driver else {}


def _preference(subject: _Subject) -> tuple[int, bool]:
    """What shows more comes first, then what has no mpirun's start among its costs."""
    shown = bool(subject.accounts or subject.totals) + bool(subject.packets)
    return shown, not subject.is_mpi


def _both_ends(series: Iterable[Series], figure: str) -> tuple[tuple[Place, Bar], ...]:
    """The most frequent data packet, where it is sent first and where it arrives.

    Nothing unless both are known.
    """
    series = list(series)
    counts = packets_by_class(series)
    costs = [i for i in series if is_packet_cost(i) and not is_acknowledgement(i.kind)]
    drawn = bars(costs, figure)
    pairs = [
        ((sent, of_sent[0]), (received, of_received[0]))
        for sent, of_sent in drawn.items()
        for received, of_received in drawn.items()
        if (sent.direction, received.direction) == ("tx", "rx")
        and sent.opcode_class == received.opcode_class
        and sent.node != received.node
    ]
    return max(pairs, key=lambda pair: counts[pair[0][0].opcode_class], default=())


def _costs(subject: _Subject) -> Iterator[Figure]:
    if subject.accounts:
        yield _kernel_work(subject)
    elif subject.leads_with_latency:
        yield _latency(subject)


def _kernel_work(subject: _Subject) -> Figure:
    totals = [sum(cpu_split.kernel(some).values()) for some in subject.accounts.values()]
    factor, unit = wording.work_scale(totals, subject.accelerator)
    quantity = "Instructions" if unit == INSTRUCTIONS else "CPU time"
    parts = {part: 0 for some in subject.accounts.values() for part in cpu_split.kernel(some)}
    names = [text for part, text in cpu_split.LABELS.items() if part in parts]
    chart = cpu_split.stack(
        [(name, name, some) for name, some in subject.accounts.items()],
        factor=factor,
        unit=unit,
        top=max(totals) / factor,
        amount="message",
        width=_WIDTH,
    )
    rows = tuple(
        (
            name,
            *(
                units.number(costs[part] / factor, 4) if part in costs else units.ABSENT
                for part in cpu_split.LABELS
                if part in parts
            ),
        )
        for name, some in subject.accounts.items()
        if (costs := cpu_split.kernel(some))
    )
    return Figure(
        slug=series_order.slug("answer-cost", subject.accelerator),
        title=f"{quantity} of one message, by transport"
        if subject.is_marginal
        else f"{quantity} in the kernel, by transport",
        caption=(
            f"One {'more ' * subject.is_marginal}{subject.message}{subject.start}, "
            "both nodes together, mean.",
        ),
        panels=(Panel("", chart, _words(f"{quantity} of a {subject.message}", names, rows)),),
        legend=cpu_split.legend(parts),
        tables=(
            Table(
                f"{quantity} of a message"
                + ("" if subject.is_marginal else " in the kernel")
                + (f", in {unit}" if unit != INSTRUCTIONS else ""),
                (Column("transport"), *(Column(name, numeric=True) for name in names)),
                rows,
            ),
        ),
        accelerator=subject.accelerator,
        notes=("Without the start of the programs and without the probes.",)
        if subject.is_marginal
        else ("User mode is not in the bars: a program that polls counts its wait there.",),
        columns=1,
    )


def _driver(subject: _Subject) -> Iterator[Figure]:
    if subject.driver:
        yield driver_work_figure.figure(
            subject.driver, subject.message, subject.accelerator, width=_WIDTH
        )


def _words(start: str, names: Sequence[str], rows: Iterable[tuple[str, ...]]) -> str:
    return f"{start}. " + "; ".join(
        f"{name}: " + ", ".join(f"{part} {text}" for part, text in zip(names, texts, strict=True))
        for name, *texts in rows
    )


def _latency(subject: _Subject) -> Figure:
    means = {name: item.spread.median for name, item in subject.latencies.items()}
    factor, unit = wording.time_scale(list(means.values()), subject.accelerator)
    kind = next(iter(subject.latencies.values())).kind
    styles = {name: palette.transport_style(name).colour.light for name in means}
    texts = {name: units.number(value / factor) for name, value in means.items()}
    rows = tuple((name, text) for name, text in texts.items())
    chart = charts.stacks(
        [
            charts.Part(name, name, value / factor, f"{name}, latency: {texts[name]} {unit}")
            for name, value in means.items()
        ],
        rows=list(means),
        series=list(styles.items()),
        x_title=f"latency ({unit})",
        x_top=max(means.values()) / factor,
        columns=[(unit, list(texts.values()))],
        width=_WIDTH,
    )
    return Figure(
        slug=series_order.slug("answer-cost", subject.accelerator),
        title="Mean latency, by transport",
        caption=(
            f"One {subject.message}, {wording.KINDS.get(kind, kind)}; median over repetitions.",
        ),
        panels=(Panel("", chart, _words(f"Latency, {unit}", [unit], rows)),),
        legend=tuple(Legend(name, colour) for name, colour in styles.items()),
        tables=(
            Table(
                f"Mean latency, in {unit}",
                (Column("transport"), Column("latency", numeric=True)),
                rows,
            ),
        ),
        accelerator=subject.accelerator,
        columns=1,
    )


def _stages(subject: _Subject) -> Iterator[Figure]:
    if not subject.packets:
        return
    sums = [sum(bar.total for _, bar in pair) for pair in subject.packets.values()]
    scale = StageScale.of(
        (bar for pair in subject.packets.values() for _, bar in pair), subject.accelerator
    )
    factor, unit = wording.work_scale(sums, subject.accelerator)
    parts = [
        charts.Part(
            row=name,
            series=cost.stage,
            value=cost.per_packet / factor,
            label=f"{name}, {_verb(place)}, {cost.stage}: "
            f"{units.number(cost.per_packet / factor)} {unit}",
        )
        for name, pair in subject.packets.items()
        for place, bar in pair
        for cost in bar.costs
        if cost.stage not in stage_table.APART
    ]
    rows = tuple(
        (name, *(units.number(bar.total / factor, 4) for _, bar in pair))
        for name, pair in subject.packets.items()
    )
    columns = ("sent", "received")
    chart = charts.stacks(
        parts,
        rows=list(subject.packets),
        series=scale.series,
        x_title=wording.work_title("time", unit, "packet"),
        x_top=max(sums) / factor,
        columns=[
            (name, [row[position] for row in rows]) for position, name in enumerate(columns, 1)
        ],
        width=_WIDTH,
    )
    [(place, _), _] = next(iter(subject.packets.values()))
    packet = f"{subject.figure} {packet_name(place.opcode_class)} packet"
    article = "a" if subject.is_typical else "the"
    yield Figure(
        slug=series_order.slug("answer-stages", subject.accelerator),
        title="Inside the driver, stage by stage",
        caption=(
            f"{article.capitalize()} {packet} of that message: from left to right the stages of "
            "sending, then those of receipt.",
        ),
        panels=(Panel("", chart, _words(f"{unit} per {packet}", columns, rows)),),
        legend=scale.legend,
        tables=(
            Table(
                f"Stages of {article} {packet} together, in {unit}",
                (Column("transport"), *(Column(name, numeric=True) for name in columns)),
                rows,
            ),
        ),
        accelerator=subject.accelerator,
        notes=(wording.FIGURES[subject.figure],) if subject.is_typical else (),
        columns=1,
    )


def _verb(place: Place) -> str:
    return "sending" if place.direction == "tx" else "receipt"


def _cost_sentence(subject: _Subject) -> Iterator[str]:
    if subject.accounts:
        costs = {
            name: sum(cpu_split.kernel(some).values()) for name, some in subject.accounts.items()
        }
        factor, unit = wording.work_scale(list(costs.values()), subject.accelerator)
        start = f"{subject.start}," if subject.start else ""
        verb = "costs both nodes" if subject.is_marginal else "costs the kernels of both nodes"
    elif subject.totals:
        costs = dict(subject.totals)
        factor, unit = wording.work_scale(list(costs.values()), subject.accelerator)
        start, verb = "", "costs both nodes"
    elif subject.leads_with_latency:
        costs = {name: item.spread.median for name, item in subject.latencies.items()}
        factor, unit = wording.time_scale(list(costs.values()), subject.accelerator)
        start, verb = "", "takes"
    else:
        return
    phrases = [f"{units.number(value / factor)} over {name}" for name, value in costs.items()]
    phrases[0] = phrases[0].replace(" over ", f" {unit} over ", 1)
    article = _article(subject.message).capitalize()
    yield f"{article} {subject.message}{start} {verb} {units.listing(phrases)}."


def _stage_sentence(subject: _Subject) -> Iterator[str]:
    if not subject.packets:
        return
    sums = [bar.total for pair in subject.packets.values() for _, bar in pair]
    factor, unit = wording.work_scale(sums, subject.accelerator)
    parts = []
    for name, ((_, sent), (_, received)) in subject.packets.items():
        text = f"{units.number(sent.total / factor)} to send"
        text += f" and {units.number(received.total / factor)} to receive it over {name}"
        if sent.capsule is not None and received.capsule is not None:
            headers = sent.capsule + received.capsule
            text += f" (headers and checks: {units.number(headers / factor)})"
        parts.append(text)
    parts[0] = parts[0].replace(" to send", f" {unit} to send", 1)
    its, the = ("a typical packet",) * 2 if subject.is_typical else ("its packet", "the packet")
    opening = f"The driver's work on {its}"
    if subject.accounts and not subject.is_mpi:
        opening = f"Of that, the driver's work on {its}"
    elif not subject.accounts and not subject.leads_with_latency:
        opening = f"The driver's work on {the} of {_article(subject.message)} {subject.message}"
    yield f"{opening} is {units.listing(parts)}."


def _article(text: str) -> str:
    """Before a number: 8, 11 and 18 begin with a vowel, also where units or digits follow."""
    return "an" if re.match(r"8|1[18](?!\d)", text) else "a"


def _capsule_sentence(subject: _Subject) -> Iterator[str]:
    if not subject.driver:
        return
    shares = []
    for name, parts in subject.driver.items():
        cost = sum(cpu_split.kernel(subject.accounts[name]).values())
        share = sum(parts[kind] for kind in driver_work.CAPSULES) / cost
        shares.append(f"{share:.1%} over {name}")
    yield (
        "Encapsulation and decapsulation, of acknowledgements too, take "
        f"{units.listing(shares)} of a message's cost."
    )
