# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's numbers and figures as files of their own, for a paper or another tool."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from rocelab.errors import UsageError
from rocelab.report import render, runfolder, svg
from rocelab.report.document import compose

_TABLE = "results.parquet"


def export(run_dir: Path, into: Path) -> list[Path]:
    """Write results.csv, results.parquet and each figure as SVG and PDF; return what was written.

    Files of the same names are replaced, others left alone. Raises UsageError when the run cannot
    be read or the folder not be written.
    """
    document = compose(runfolder.load(run_dir))
    try:
        into.mkdir(parents=True, exist_ok=True)
        written = list(_tables(run_dir, into))
        for section in document.sections:
            for figure in section.figures:
                text = render.figure_file(figure)
                drawing, page = into / f"{figure.slug}.svg", into / f"{figure.slug}.pdf"
                drawing.write_text(text, encoding="utf-8")
                page.write_bytes(svg.as_pdf(text))
                written += [drawing, page]
    except OSError as error:
        raise UsageError(
            f"cannot export to {into}: {error.strerror}", action="Choose another folder."
        ) from error
    return written


def _tables(run_dir: Path, into: Path) -> Iterator[Path]:
    source = run_dir / _TABLE
    if not source.exists():
        return
    csv = into / "results.csv"
    pl.read_parquet(source).write_csv(csv)
    copy = into / _TABLE
    if not (copy.exists() and copy.samefile(source)):
        shutil.copyfile(source, copy)
    yield from (csv, copy)
