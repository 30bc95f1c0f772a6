# SPDX-License-Identifier: GPL-2.0-or-later
"""Print studies in 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rocelab.plans.plan import Plan
from rocelab.studies import answers, planning, words
from rocelab.studies.answers import Answer
from rocelab.studies.claims import Claim, Study
from rocelab.studies.verdict import Verdict

WIDTH = 80
_STYLES = {
    Verdict.HOLDS: "green",
    Verdict.DOES_NOT_HOLD: "red",
    Verdict.NOT_DECIDED: "yellow",
    Verdict.UNTESTED: "dim",
}


def overview(studies: Sequence[Study]) -> RenderableType:
    """A table with one line per study."""
    grid = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("study", "title", "claims"):
        grid.add_column(column, justify="right" if column == "claims" else "left")
    for study in studies:
        grid.add_row(study.name, study.title, str(len(study.claims)))
    return grid


def whole(study: Study, plans: Sequence[Plan]) -> RenderableType:
    """A study's question, setting, published figures, plans and claims."""
    parts: list[RenderableType] = [
        Text(study.name, style="bold"),
        _wrap(f"{study.authors}: {study.title}. {study.publication}, {study.year}.", ""),
    ]
    for heading, items in (
        ("What it asked", study.asked),
        ("What it measured on", study.measured_on),
        ("How", study.method),
        ("What it does not state", study.silent),
        ("How it is repeated here", study.here),
    ):
        parts += _list(heading, items)
    parts += _list("Published figures", [_figure(study, i) for i in range(len(study.figures))])
    for plan in plans:
        cells = len(plan.cells())
        tests = ", ".join(dict.fromkeys(b.title for b in plan.benchmarks))
        parts += _list(
            f"Plan {plan.name}",
            (
                f"{cells} cells: {plan.repetitions} repetitions over {', '.join(plan.transports)}",
                tests,
                *filter(None, (words.repetitions(planning.need(study, plan)),)),
            ),
        )
    parts += _list("Claims", [_claim(claim) for claim in study.claims])
    return Group(*parts)


def _claim(claim: Claim) -> str:
    """Say what a study claims and where, how that is checked, and what limits the check."""
    text = f"{claim.name}: {words.quotation(claim)} ({claim.source}). "
    text += f"Check: {words.check(claim.check)}."
    if claim.reading:
        text += f" Read as: {claim.reading}"
    if claim.analogue:
        text += f" An analogue: {claim.analogue}"
    if claim.needs:
        text += f" A run cannot test it: {claim.needs}"
    return text


def render_answers(
    study: Study, claim_answers: Sequence[Answer], unlike: Sequence[str] = ()
) -> RenderableType:
    """The claims' answers; `unlike` lists how the run differs from the one compared with it."""
    parts: list[RenderableType] = [Text(f"\nClaims of {study.name}", style="bold")]
    if unlike:
        parts.append(_wrap("The runs differ in these, which may explain different numbers:", ""))
        parts += [_wrap(line, "  ", style="yellow") for line in unlike]
    for answer in claim_answers:
        parts.append(
            Text.assemble((f"{answer.verdict}", _STYLES[answer.verdict]), f"  {answer.claim.name}")
        )
        parts.append(_wrap(words.quotation(answer.claim), "  "))
        parts.append(_wrap(answer.because, "  ", style="dim"))
    totals = answers.count_by_verdict(claim_answers)
    parts.append(Text(", ".join(f"{count} {verdict}" for verdict, count in totals.items())))
    return Group(*parts)


def _figure(study: Study, index: int) -> str:
    figure = study.figures[index]
    benchmark = figure.test and f"of {figure.tool} {figure.test}"
    subject = " ".join(filter(None, (figure.metric, benchmark)))
    return f"{figure.system}: {subject} {words.figure(figure)} ({figure.source})"


def _list(heading: str, items: Sequence[str]) -> Iterator[RenderableType]:
    if items:
        yield Text(f"\n{heading}", style="bold")
        yield from (_wrap(item, "  ") for item in items)


def _wrap(text: str, indent: str, *, style: str = "") -> Text:
    return Text(
        textwrap.fill(
            text,
            WIDTH,
            initial_indent=indent,
            subsequent_indent=f"{indent}  " if indent else "",
            break_on_hyphens=False,
        ),
        style=style,
    )
