# SPDX-License-Identifier: GPL-2.0-or-later
"""One packet's life: request, link and answer, each on the clock that measured it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rocelab import metrics, stage_table, units
from rocelab.group_by import group_by
from rocelab.record import lives_by_size
from rocelab.record.lives_by_size import LifeOfSize, Subject
from rocelab.record.message_life import AT_REQUESTER, PLACES, MessageLife
from rocelab.record.read import Run
from rocelab.report import charts, palette, plots, series_order, wording
from rocelab.report.figure import Column, Figure, Legend, Note, Panel, Section, Table

_TITLE = "One packet's life"
_ABSENT = (
    "This run has no single packets: they come from rxedump, whose records are matched to the "
    'frames between the nodes. Add "rxedump" to the plan\'s probes to get them.'
)
_MAX_FIGURES = 4
"""Sizes drawn; the table has all."""
_LINK = "link and stacks"
_RECEIPT = tuple(name for name in stage_table.IN_TIME["rx"] if name not in stage_table.ANSWERING)


def section(run: Run) -> Section:
    """Return the section: a figure per benchmark and transport with joined packets."""
    lives = lives_by_size.subjects(run)
    shares = _shares(run)
    tables = (shares,) if shares else ()
    if not lives:
        text = _ABSENT
        if shares:
            text = (
                "Frames and records were matched, but no message of one packet has all its "
                "records and its own answer."
            )
        return Section("life", _TITLE, notes=(Note(text),), tables=tables)
    text = (
        "The median of the real messages, from the first stage of the request in its sender's "
        "driver to the last stage of the answer there. Its frames are from the capture between "
        "the nodes, and each frame's records from both drivers."
    )
    return Section(
        "life",
        _TITLE,
        notes=(Note(text),),
        figures=tuple(_figure(subject) for subject in lives),
        tables=tables,
    )


def _figure(subject: Subject) -> Figure:
    drawn = _spread(subject.lives)
    top = max(one.life.spans["requester"] for one in drawn)
    factor, unit = wording.time_scale([top], subject.accelerator)
    used = [
        stage
        for stage in stage_table.EVERY_NAME
        if any(stage in stages for one in drawn for stages in one.life.stages.values())
    ]
    used = [stage for stage in used if stage != "reply"]
    series = [*((stage, palette.STAGES[stage].light) for stage in used)]
    series.append((_LINK, palette.OUTSIDE.light))
    panels = [_timeline(one, series, factor, unit, top) for one in drawn]
    panels.append(_close_up(drawn[0], used, subject.accelerator))
    exact = all({"there", "back"} <= one.life.spans.keys() for one in drawn)
    clocks = (
        "All machines share one clock: positions are as measured. "
        if exact
        else "Each node has its own clock, and only durations on one clock were measured. The "
        "receiver's lane is drawn in the middle of the gap in the sender's lane; how the grey "
        "time divides between the two directions is unknown. "
    )
    chosen = "; ".join(
        f"{units.size(one.size)}: median of {units.integer(one.life.chosen_from)} messages of "
        f"repetition {one.repetition}"
        for one in drawn
    )
    return Figure(
        slug=series_order.slug("life", subject.benchmark, subject.transport, subject.accelerator),
        title=f"A message and its answer: {subject.benchmark} over {subject.transport}",
        caption=(
            f"{clocks}Undisturbed messages of one packet with their own answer. "
            f"{chosen}. The last panel shows the stages of the smallest message to one scale, "
            "without the wait in the queue and the reply.",
            f"Traffic: {subject.program}. Driver: {subject.driver}.",
        ),
        panels=tuple(panels),
        legend=tuple(Legend(name, colour) for name, colour in series),
        tables=(_table(subject, factor, unit),),
        accelerator=subject.accelerator,
    )


def _spread(lives: Sequence[LifeOfSize]) -> list[LifeOfSize]:
    """The sizes to draw, including the first and the last."""
    if len(lives) <= _MAX_FIGURES:
        return list(lives)
    step = (len(lives) - 1) / (_MAX_FIGURES - 1)
    return [lives[round(step * position)] for position in range(_MAX_FIGURES)]


def _lanes(life: MessageLife) -> tuple[str, str, str]:
    requester = life.requester
    responder = life.responder if life.responder != requester else f"{life.responder} (peer)"
    return requester, "link", responder


def _timeline(
    one: LifeOfSize, series: Sequence[tuple[str, str]], factor: float, unit: str, top: float
) -> Panel:
    life = one.life
    lanes = _lanes(life)
    known = {name for name, _ in series}
    spans = [
        plots.Span(
            lanes[lane],
            name,
            max(0.0, begin) / factor,
            max(0.0, end) / factor,
            f"{label}: {units.number((end - begin) / factor)} {unit}",
        )
        for lane, name, label, begin, end in _stage_spans(life)
        if name in known and end > begin
    ]
    chart = plots.timeline(
        spans, lanes=lanes, series=series, x_title=f"time ({unit})", x_top=top / factor
    )
    words = ", ".join(
        f"{name.replace('_', ' ')} {units.number(life.spans[name] / factor)}"
        for name in ("requester", "wire", "responder", "requester_side", "responder_side")
    )
    title = units.size(one.size)
    return Panel(title, chart, f"A message of {title}, {unit}: {words}.")


def _stage_spans(life: MessageLife) -> Iterator[tuple[int, str, str, float, float]]:
    """Lane, colour, description, begin and end of every span, ns on the requester's clock."""
    spans = life.spans
    total = spans["requester"]
    here, _, there = _lanes(life)
    at = 0.0
    for stage, ns in _in_order(life.stages["tx"], stage_table.IN_TIME["tx"]):
        yield 0, stage, f"{here} sends, {stage}", at, at + ns
        at += ns
    left = at
    at = right = total - life.length("answer_rx")
    for stage, ns in _in_order(life.stages["answer_rx"], _RECEIPT):
        yield 0, stage, f"{here} receives the answer, {stage}", at, at + ns
        at += ns
    begin = spans.get("there", spans["requester_side"] / 2 + spans["responder_side"] / 2) + left
    end = begin + spans["responder"]
    yield 1, _LINK, "from the sender's device to the receiver's driver", left, begin
    yield 1, _LINK, "and back", end, right
    at = begin
    for stage, ns in _in_order(life.stages["rx"], _RECEIPT):
        yield 2, stage, f"{there} receives, {stage}", at, at + ns
        at += ns
    at = end - life.length("answer_tx")
    for stage, ns in _in_order(life.stages["answer_tx"], stage_table.IN_TIME["tx"]):
        yield 2, stage, f"{there} answers, {stage}", at, at + ns
        at += ns


def _in_order(stages: Mapping[str, float], names: Sequence[str]) -> Iterator[tuple[str, float]]:
    return ((name, stages[name]) for name in names if name in stages)


def _close_up(one: LifeOfSize, stages: Sequence[str], accelerator: str) -> Panel:
    life = one.life
    rows = {
        "tx": f"{life.requester} sends",
        "rx": f"{life.responder} receives",
        "answer_tx": f"{life.responder} answers",
        "answer_rx": f"{life.requester} gets it",
    }
    parts = {
        place: [
            (stage, ns)
            for stage, ns in life.stages[place].items()
            if stage not in stage_table.APART and stage != stage_table.GAP
        ]
        for place in PLACES
    }
    sums = {place: sum(ns for _, ns in known) for place, known in parts.items()}
    factor, unit = wording.work_scale(list(sums.values()), accelerator)
    order = {place: stage_table.TX if place.endswith("tx") else stage_table.RX for place in PLACES}
    chart = charts.stacks(
        [
            charts.Part(
                row=rows[place],
                series=stage,
                value=ns / factor,
                label=f"{rows[place]}, {stage}: {units.number(ns / factor)} {unit}",
            )
            for place in PLACES
            for stage, ns in sorted(parts[place], key=lambda item: order[place].index(item[0]))
        ],
        rows=list(rows.values()),
        series=[
            (stage, palette.STAGES[stage].light)
            for stage in stages
            if stage not in stage_table.APART
        ],
        x_title=f"stages ({unit})",
        x_top=max(sums.values()) / factor,
        columns=[("sum", [units.number(sums[place] / factor) for place in PLACES])],
    )
    title = f"The stages, {units.size(one.size)}"
    places = "; ".join(f"{rows[place]} {units.number(sums[place] / factor)}" for place in PLACES)
    return Panel(title, chart, f"{title}, {unit}: {places}.")


_SPANS = (
    ("requester", "from the first stage to the end of the answer", "the requester's"),
    ("wire", "between the two frames", "the capture's"),
    ("responder", "from arrival to the end of the answer's sending", "the responder's"),
    ("requester_side", "between requester's driver and capture, both ways", "two, subtracted"),
    ("responder_side", "between capture and responder's driver, both ways", "two, subtracted"),
    (
        "between",
        "in the responder, in no stage (negative: work continues after the answer)",
        "the responder's",
    ),
    ("there", "from the sender's device to the receiver's driver", "the one"),
    ("back", "the same for the answer", "the one"),
)
_AT = {
    "tx": "request, sending",
    "rx": "request, receipt",
    "answer_tx": "answer, sending",
    "answer_rx": "answer, receipt",
}


def _table(subject: Subject, factor: float, unit: str) -> Table:
    rows = []
    for one in subject.lives:
        life, size = one.life, units.size(one.size)
        rows += [
            (size, span, clock, units.number(ns / factor, 4))
            for span, clock, ns in _spans_of_benchmark(one)
        ]
        for name, span, clock in _SPANS:
            if name in life.spans:
                rows.append((size, span, clock, units.number(life.spans[name] / factor, 4)))
        for place in PLACES:
            clock = "the requester's" if place in AT_REQUESTER else "the responder's"
            for stage, ns in life.stages[place].items():
                label = "between driver and next stage" if stage == stage_table.GAP else stage
                rows.append((size, f"{_AT[place]}: {label}", clock, units.number(ns / factor, 4)))
    return Table(
        f"One message of each size, in {unit}",
        (Column("size", numeric=True), Column("part"), Column("clock"), Column(unit, numeric=True)),
        tuple(rows),
    )


def _spans_of_benchmark(one: LifeOfSize) -> Iterator[tuple[str, str, float]]:
    """What the benchmark measured, and what of it the message's stages leave."""
    if one.measured is None:
        return
    kind, measured = one.measured
    yield f"measured, mean, {wording.KINDS.get(kind, kind)}", "the program's", measured
    way = one.life.spans.get("on_the_way")
    if way is not None:
        yield "of which: stages of sending and receipt, including the wait", "each its own", way
        yield "the rest, up to the measured latency", "", measured - way


def _shares(run: Run) -> Table | None:
    """How many frames have their records: the basis of all figures of this section."""
    by_benchmark = group_by(
        (item for item in run.series if metrics.Joined.parse(item.metric)),
        lambda i: (i.accelerator, i.benchmark, i.transport),
    )
    rows = []
    for (_, benchmark, transport), series in by_benchmark.items():
        total: dict[metrics.Joined, int] = {}
        for item in series:
            if counted := metrics.Joined.parse(item.metric):
                total[counted] = total.get(counted, 0) + int(sum(item.values))
        frames = total.get(metrics.Joined(None, "frames"), 0)
        causes = [
            f"{count} {name.quantity.replace('_', ' ')}"
            for name, count in sorted(total.items(), key=lambda entry: entry[0].name)
            if count and name.way and name.quantity not in {"records", "matched"}
        ]
        rows.append(
            (
                benchmark,
                transport,
                units.integer(frames),
                *(
                    _share(total.get(metrics.Joined(way, "matched"), 0), frames)
                    for way in ("tx", "rx")
                ),
                units.listing(causes) or "none",
                units.integer(total.get(metrics.Joined(None, "unexplained"), 0)),
            )
        )
    if not rows:
        return None
    return Table(
        "Frames whose records were found at their sender and at their receiver, all sizes and "
        "repetitions together",
        (
            Column("benchmark"),
            Column("transport"),
            Column("frames", numeric=True),
            Column("sender", numeric=True),
            Column("receiver", numeric=True),
            Column("without, and why"),
            Column("unexplained", numeric=True),
        ),
        tuple(rows),
    )


def _share(part: int, whole: int) -> str:
    """Format a share; only all of `whole` is 100 %. Emulation does not change these counts."""
    if not whole:
        return units.ABSENT
    text = f"{part / whole:.2%}"
    return "99.99%" if part < whole and text == "100.00%" else text
