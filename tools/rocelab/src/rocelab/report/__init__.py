# SPDX-License-Identifier: GPL-2.0-or-later
"""Turn a run folder into one self-contained HTML page and its figures as SVG.

A report reads the run folder only (run.json, cells/*/cell.json, results.parquet), never a live
system, and the same folder gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path

from rocelab.report import render, runfolder
from rocelab.report.document import compose
from rocelab.report.export import export

__all__ = ["build", "export"]


def build(run_dir: Path, beside: Path | None = None) -> Path:
    """Write `report.html` and `figures/*.svg` into a run folder; return the path of the page.

    Figures of an earlier report that this one does not have are removed. Raises UsageError when the
    folder holds no run, or one of another version. `beside`: another run of the same study, for
    what a switch adds.
    """
    other = None if beside is None else runfolder.load(beside)
    document = compose(runfolder.load(run_dir), other)
    figures = run_dir / "figures"
    figures.mkdir(exist_ok=True)
    written = set()
    for section in document.sections:
        for figure in section.figures:
            path = figures / f"{figure.slug}.svg"
            _replace(path, render.figure_file(figure))
            written.add(path)
    for stale in set(figures.glob("*.svg")) - written:
        stale.unlink()
    page = run_dir / "report.html"
    _replace(page, render.page(document))
    return page


def _replace(path: Path, text: str) -> None:
    """Write a file aside and rename it, so that a reader never sees half of one."""
    aside = path.with_name(f".{path.name}.part")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)
