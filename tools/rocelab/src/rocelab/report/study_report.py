# SPDX-License-Identifier: GPL-2.0-or-later
"""A published study's claims, judged by the run, and its figures next to the measured ones.

Emulated figures are not times, so they are never drawn next to published ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from rocelab import units
from rocelab.accelerators import is_emulated
from rocelab.compare import environment_differences
from rocelab.errors import UsageError
from rocelab.group_by import group_by
from rocelab.plans.plan import title
from rocelab.record.read import Run, Series
from rocelab.record.text import one_line
from rocelab.report import charts, palette, series_order, study_curves, wording
from rocelab.report import facts as where
from rocelab.report.figure import Column, Figure, Legend, Note, Panel, Section, Table
from rocelab.studies import answers, library, words
from rocelab.studies.answers import Answer
from rocelab.studies.claims import Figure as Published
from rocelab.studies.claims import Study
from rocelab.studies.samples import Ranks, Results

ANCHOR = "study"
_STALLED = ("stall", "testbed")
"""Kinds of errors of a cell that did not end (docs/formats/run.md)."""
_UNITS = {"µs": 1e3, "MB/s": 1e6}
"""Published units, in ns or bytes/s."""
_COLOURS = {"published": palette.MUTED, "measured here": palette.HEADERS}


def of(run: Run) -> Study | None:
    """Return the study that the run's plan names; None without a known one."""
    try:
        return library.study(run.plan.text("study"))
    except UsageError:
        return None


def results(run: Run, *, called: str = "this run") -> Results:
    """Return the run's values for the checks; `called` is the run's name in the answers."""
    stalled = frozenset(
        cell.name
        for cell in run.cells
        if cell.content and cell.content.object("error").text("kind") in _STALLED
    )
    return Results(
        run.table, where.switches(run), called, _ranks(run), stalled, _seconds_per_repetition(run)
    )


def _seconds_per_repetition(run: Run) -> float | None:
    """Return how long the cells of a repetition took, on average; None if that is not recorded."""
    spent, repetitions = 0.0, set[int]()
    for cell in run.cells:
        if cell.content is None:
            continue
        repetition = cell.content.integer("repetition")
        try:
            began, ended = (
                datetime.fromisoformat(cell.content.text(key)) for key in ("started", "ended")
            )
            took = (ended - began).total_seconds()
        except (TypeError, ValueError):
            continue
        if repetition is not None and took >= 0:
            spent += took
            repetitions.add(repetition)
    return spent / len(repetitions) if spent else None


def _ranks(run: Run) -> dict[str, Ranks]:
    """Return the ranks of each MPI benchmark, by tool and title; omit one with different ones."""
    by_test: dict[str, set[Ranks]] = {}
    for item in run.meta.object("plan").objects("benchmark"):
        test = f"{item.text('tool')} {title(item.text('test'), item.text('label'))}"
        mpi = item.object("mpi")
        together, per_node = mpi.integer("ranks"), mpi.integer("ranks_per_node")
        if together is not None and per_node is not None:
            by_test.setdefault(test, set()).add(Ranks(together, per_node))
    return {test: ranks.pop() for test, ranks in by_test.items() if len(ranks) == 1}


def judge_claims(study: Study, run: Run, beside: Run | None) -> list[Answer]:
    """Judge the claims; those on the cost of a switch also need `beside`, another run."""
    other = None if beside is None else results(beside, called="the other run")
    return answers.answers(study, results(run), other)


def apart(run: Run, beside: Run) -> list[str]:
    """Return differences between two runs of a study, which may explain their numbers."""
    return [
        one_line(line)
        for line in environment_differences.differences(run.meta.data, beside.meta.data)
    ]


def section(run: Run, beside: Run | None = None) -> Section | None:
    """Return the section; None when the run's plan names no study.

    `beside`: another run of the study, with another number of switches.
    """
    study = of(run)
    if study is None:
        return None
    answers = judge_claims(study, run, beside)
    figures, note = _beside(study, run, answers)
    return Section(
        ANCHOR,
        f"Claims of {study.name}",
        notes=(
            Note(
                f"{study.authors}, “{study.title}”, {study.publication}, {study.year}: what this "
                "run says about its claims. Each claim is judged by the 95 % confidence interval "
                "of the differences between paired repetitions; "
                f"`rocelab study show {study.name}` prints each check."
            ),
            *([] if beside is None else _two(run, beside)),
        ),
        tables=(_table(answers),),
        figures=figures,
        closing=(Note(note),) if note else (),
    )


def _two(run: Run, beside: Run) -> Iterator[Note]:
    yield Note(
        f"What a switch adds is from two runs: this one ({_switches_text(run)}) and {beside.name} "
        f"({_switches_text(beside)})."
    )
    if unlike := apart(run, beside):
        yield Note(
            f"Not the same in both, and perhaps why they differ: {'; '.join(unlike)}.", "warning"
        )


def _switches_text(run: Run) -> str:
    between = where.switches(run)
    if between is None:
        return "through an unknown number of switches"
    return "back to back" if between == 0 else f"through {between}"


def _table(answers: Sequence[Answer], caption: str = "Claims") -> Table:
    return Table(
        caption,
        (Column("claim"), Column("here"), Column("because")),
        tuple(
            (words.quotation(answer.claim), answer.verdict, answer.because.removeprefix("because "))
            for answer in answers
        ),
    )


def _beside(study: Study, run: Run, answers: Sequence[Answer]) -> tuple[tuple[Figure, ...], str]:
    """Draw published figures next to measured ones, or give the reason why not."""
    published = [figure for figure in study.figures if figure.is_drawable]
    if not published:
        return (), (
            "No published figure stands here: the text gives relations and no values that a "
            "benchmark has, and values that are only plotted are not read off."
        )
    named = sorted({series.accelerator for series in run.series})
    if any(map(is_emulated, named)):
        return (), (
            f"The published figures are not drawn here: these nodes were emulated "
            f"({units.listing(named)}), and emulated figures are not times. "
            f"`rocelab study show {study.name}` prints them."
        )
    groups = group_by(published, lambda f: (f.tool, f.test, f.metric, f.statistic, f.size))
    figures = tuple(
        figure
        for group in groups.values()
        if (figure := _figure(study, group, run.series, answers)) is not None
    )
    missing = "" if figures else "The study has no figure for any benchmark of the run."
    return figures, missing


def _figure(
    study: Study, group: Sequence[Published], series: Sequence[Series], answers: Sequence[Answer]
) -> Figure | None:
    """Draw one quantity: each system as published, each transport as measured."""
    first = group[0]
    factor, better = _UNITS[first.unit], min if first.unit == "µs" else max
    measured: dict[str, float] = {}
    used: list[Series] = []
    for item in series:
        if (item.tool, item.test, item.metric) != (first.tool, first.test, first.metric):
            continue
        used.append(item)
        if first.size is not None and item.size != first.size:
            continue
        value = (item.spread.mean if study.averaging == "mean" else item.spread.median) / factor
        measured[item.transport] = better(value, measured.get(item.transport, value))
    if not measured:
        return None
    place = units.size(first.size) if first.size is not None else "best over all sizes"
    # a published figure in its own digits
    rows = [
        (f"{f.system}, published", "published", f.low, f"{f.low:.10g}", f.source) for f in group
    ] + [
        (
            *(
                transport,
                "measured here",
                measured[transport],
                units.number(measured[transport], 4),
            ),
            f"{study.averaging} of this run's repetitions",
        )
        for transport in sorted(measured, key=series_order.transport_rank)
    ]
    title = f"{study.name}: {first.metric} of {first.tool} {first.test}, {place}"
    parts = [
        charts.Part(row, who, value, f"{row}, {who}: {text} {first.unit}")
        for row, who, value, text, _ in rows
    ]
    chart = charts.stacks(
        parts,
        rows=[row for row, *_ in rows],
        series=[(who, colour.light) for who, colour in _COLOURS.items()],
        x_title=f"{first.metric} ({first.unit})",
        x_top=max(value for _, _, value, _, _ in rows),
        columns=[(first.unit, [text for _, _, _, text, _ in rows])],
    )
    curves = study_curves.panel(group, used, factor=factor, averaging=study.averaging)
    judged = study_curves.claims_on(first, answers)
    return Figure(
        slug=series_order.slug(
            *(ANCHOR, study.name, first.tool, first.test, first.metric),
            str(first.size or "best"),
        ),
        title=title,
        caption=(
            f"Published: {study.authors}, {study.year}, on their machines. Measured: this run, on "
            "other machines, adapters and software: the order and the ratios say more than the "
            "lengths. Over size: lines are measured here, crosses are published, and dotted lines "
            "are published figures that are the best over all sizes.",
            *(f"{words.quotation(answer.claim)} here: {answer.verdict}." for answer in judged),
        ),
        accelerator=used[0].accelerator,
        notes=wording.programs_notes(used),
        panels=(
            curves,
            Panel("published and measured", chart, "; ".join(part.label for part in parts) + "."),
        ),
        legend=(
            *(Legend(who, colour.light) for who, colour in _COLOURS.items()),
            *study_curves.legend(group, used),
        ),
        tables=(
            Table(
                f"{title}, in {first.unit}",
                (Column("system"), Column("figure", numeric=True), Column("from")),
                tuple((row, text, where) for row, _, _, text, where in rows),
            ),
            *([_table(judged, "Claims on this figure")] if judged else []),
        ),
    )
