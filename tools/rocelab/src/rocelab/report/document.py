# SPDX-License-Identifier: GPL-2.0-or-later
"""The whole report of a run, as plain data: what comes first, and in which order."""

from __future__ import annotations

from dataclasses import replace

from rocelab.accelerators import is_emulated
from rocelab.report import (
    adapters,
    applications,
    correlation,
    costs,
    coverage,
    cpu_split,
    findings,
    fmt,
    headers,
    life,
    measured,
    proof,
    stage_curves,
    stage_figures,
    study,
    versions,
    where,
    wording,
)
from rocelab.report.figure import Document, Note, Section
from rocelab.report.runfolder import Run

_STATUS = {
    "running": "was still going on when this report was made",
    "interrupted": "was interrupted",
    "stopped": "was stopped",
}


def compose(run: Run, beside: Run | None = None) -> Document:
    """Return the report of a run; `beside` is for the claims of its study."""
    transports = fmt.listing(run.plan.texts("transports")) or "transports not recorded"
    return Document(
        title=f"{run.plan.text('name', run.name)}: {transports} compared",
        lead=(
            "What messages cost over each transport, and where the time of each packet went inside "
            f"the Soft RoCE driver. Run {run.name}."
        ),
        notes=tuple(_notes(run)),
        facts=where.facts(run),
        sections=_named_apart(
            findings.section(run),
            study.section(run, beside),
            measured.latency(run),
            measured.bandwidth(run),
            applications.section(run),
            costs.section(run),
            stage_figures.section(run),
            stage_curves.section(run),
            life.section(run),
            versions.section(run),
            coverage.section(run),
            correlation.section(run),
            cpu_split.section(run),
            adapters.section(run),
            headers.section(run),
            proof.section(run),
            proof.errors(run),
            where.section(run),
            where.reproduce(run),
        ),
        footer=(
            f"Made by rocelab from run {run.name}. Every number in a figure comes from "
            "results.parquet; times are in SI units, message sizes in binary multiples of a byte."
        ),
    )


def _named_apart(*some: Section | None) -> tuple[Section, ...]:
    """Number figures whose names came out alike, so that none overwrites another's file."""
    sections = [section for section in some if section is not None]
    taken: set[str] = {section.anchor for section in sections}
    named = []
    for section in sections:
        figures = []
        for figure in section.figures:
            slug, number = figure.slug, 2
            while slug in taken:
                slug, number = f"{figure.slug}-{number}", number + 1
            taken.add(slug)
            figures.append(replace(figure, slug=slug))
        named.append(replace(section, figures=tuple(figures)))
    return tuple(named)


def _notes(run: Run) -> list[Note]:
    notes = []
    status = run.meta.text("status")
    if status != "complete":
        reason = run.meta.text("reason")
        text = f"The run {_STATUS.get(status, 'has no recorded end')}"
        notes.append(
            Note(
                f"{text}{f' ({reason})' if reason else ''}: this report shows the cells that were "
                "finished.",
                "warning",
            )
        )
    named = where.accelerators(run)
    if len(named) > 1:
        notes.append(
            Note(
                f"The results were taken under more than one accelerator ({fmt.listing(named)}). "
                "They are kept in figures apart and must not be compared.",
                "warning",
            )
        )
    notes += [Note(wording.accelerator_caption(name), "warning") for name in named
              if is_emulated(name)]  # fmt: skip
    return notes
