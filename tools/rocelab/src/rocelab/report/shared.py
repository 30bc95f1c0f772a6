# SPDX-License-Identifier: GPL-2.0-or-later
"""Write a report that may leave the house into a folder of its own."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rocelab.conditions import system_error
from rocelab.directory import Directory
from rocelab.errors import UsageError
from rocelab.record import known_names, read, results_table, share
from rocelab.record.read import Run
from rocelab.report import render
from rocelab.report.document import compose
from rocelab.report.figure import Note
from rocelab.strict import quote
from rocelab.studies import library

_RESULTS = "results.csv"
_PAGE = "report.html"


def share_report(run_dir: Path, into: Path) -> Path:
    """Write a page and results.csv without host names, addresses, paths and keys.

    Returns the page. Raises UsageError or MissingError when the run cannot be read or the folder
    not be written, and UsageError when the finished files contain a name that the run knows:
    nothing is written then.
    """
    whole = read.load(run_dir)
    run = share.mask_run(whole, also=library.NAMES)
    document = compose(run)
    note = Note(f"Masked: {', '.join(share.MASKED)}. Kept: {'; '.join(share.KEPT)}.")
    page = render.page(replace(document, notes=(note, *document.notes)))
    table = io.BytesIO()
    results_table.write_csv(run.table, table)
    files = {_RESULTS: table.getvalue(), _PAGE: page.encode()}
    _check(files, whole)
    try:
        with Directory.making(into) as folder:
            for name, content in files.items():
                folder.write(name, content)
    except OSError as error:
        raise system_error(
            error, f"cannot write to {into}", action="Choose another folder with --share."
        ) from error
    return into / _PAGE


def _check(files: Mapping[str, bytes], run: Run) -> None:
    """Raise UsageError if a file contains a name that the run or this machine knows."""
    documents = [run.meta.data, *(cell.content.data for cell in run.cells if cell.content)]
    names = known_names.of_run(share.nodes(run), documents) | known_names.of_this_machine()
    for hit in known_names.hits(files, names):
        raise UsageError(
            f"nothing was written: {hit.file} would name {quote(hit.name)}, in {quote(hit.around)}",
            cause="a plan or a program uses a name of this run's machines or people for something "
            "else",
            action="Rename it in a copy of the run folder, and share that.",
        )
