# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's numbers and figures as files of their own, for a paper or another tool."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rocelab.conditions import system_error
from rocelab.directory import Directory
from rocelab.record import read, results_table
from rocelab.report import render, svg, table_files
from rocelab.report.document import compose


def export(run_dir: Path, into: Path) -> list[Path]:
    """Write results.csv, results.parquet, figures as SVG and PDF, and tables as CSV and LaTeX.

    Return what was written. Files of the same names are replaced, others left alone. Raises
    UsageError when the run cannot be read or the folder not be written.
    """
    run = read.load(run_dir)
    document = compose(run)
    written = []
    try:
        with Directory.making(into) as folder:
            if not run.table.is_empty():
                folder.write("results.csv", partial(results_table.write_csv, run.table))
                folder.write("results.parquet", results_table.raw(run_dir))
                written += ["results.csv", "results.parquet"]
            for section in document.sections:
                for figure in section.figures:
                    drawing = render.figure_file(figure)
                    folder.write(f"{figure.slug}.svg", drawing.encode())
                    folder.write(f"{figure.slug}.pdf", svg.as_pdf(drawing))
                    written += [f"{figure.slug}.svg", f"{figure.slug}.pdf"]
            for name, text in table_files.files(document):
                folder.write(name, text.encode())
                written.append(name)
    except OSError as error:
        raise system_error(
            error, f"cannot export to {into}", action="Choose another folder with --export."
        ) from error
    return [into / name for name in written]
