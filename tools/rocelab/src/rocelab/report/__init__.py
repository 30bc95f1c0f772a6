# SPDX-License-Identifier: GPL-2.0-or-later
"""Turn a run folder into one self-contained HTML page and its figures as SVG.

A report reads the run folder only (run.json, cells/*/cell.json, results.parquet), never a live
system, and the same folder gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path

from rocelab.record import read
from rocelab.record.folder import RunFolder
from rocelab.report import render
from rocelab.report.document import compose
from rocelab.report.export import export
from rocelab.report.shared import share_report

__all__ = ["build", "export", "share_report"]


def build(run_dir: Path, beside: Path | None = None) -> Path:
    """Write `report.html` and `figures/*.svg` into a run folder; return the path of the page.

    Figures of an earlier report that this one does not have are removed. Raises UsageError when the
    folder holds no run, or one of another version. `beside`: another run of the same study, for
    what a switch adds.
    """
    other = None if beside is None else read.load(beside)
    document = compose(read.load(run_dir), other)
    figures = {
        figure.slug: render.figure_file(figure)
        for section in document.sections
        for figure in section.figures
    }
    return RunFolder(run_dir).write_report(render.page(document), figures)
