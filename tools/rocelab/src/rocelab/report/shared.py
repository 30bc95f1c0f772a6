# SPDX-License-Identifier: GPL-2.0-or-later
"""Write a report that may leave the house into a folder of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rocelab.conditions import explained
from rocelab.directory import Directory
from rocelab.record import read, share
from rocelab.report import render
from rocelab.report.document import compose
from rocelab.report.figure import Note

_RESULTS = "results.csv"
_PAGE = "report.html"


def share_report(run_dir: Path, into: Path) -> Path:
    """Write a page and results.csv without host names, addresses, paths and keys.

    Returns the page. Raises UsageError or MissingError when the run cannot be read or the folder
    not be written.
    """
    run = share.masked(read.load(run_dir))
    document = compose(run)
    note = Note(f"Masked: {', '.join(share.MASKED)}. Kept: {'; '.join(share.KEPT)}.")
    page = render.page(replace(document, notes=(note, *document.notes)))
    try:
        with Directory.making(into) as folder:
            folder.write(_RESULTS, run.table.write_csv)
            folder.write(_PAGE, page.encode())
    except OSError as error:
        raise explained(
            error, f"cannot write to {into}", action="Choose another folder with --share."
        ) from error
    return into / _PAGE
