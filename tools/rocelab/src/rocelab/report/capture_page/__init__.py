# SPDX-License-Identifier: GPL-2.0-or-later
"""Turn an analysis of a capture into one self-contained HTML page.

What captures contain is untrusted: every text goes through the template's escaping, and none into
an expression of a chart. The page's size is bounded, whatever the capture's is.
"""

from __future__ import annotations

from pathlib import Path

from altair.utils.schemapi import debug_mode

from rocelab.capture import Analysis
from rocelab.capture.picture import Picture
from rocelab.conditions import check_new_file, system_error
from rocelab.directory import Directory
from rocelab.report import render
from rocelab.report.capture_page.document import compose


def write(analysis: Analysis, picture: Picture, into: Path) -> None:
    """Write the page to the file `into`, whole or not at all.

    Raises UsageError or MissingError if it cannot be written.
    """
    check_new_file(into, "the page", action="Name a file with --html.", begins=b"<!DOCTYPE html>")
    # Altair validates every part of a chart as it is made; tests validate whole charts instead
    with debug_mode(arg=False):
        page = render.page(compose(analysis.result, picture))
    try:
        with Directory.making(into.parent) as folder:
            folder.write(into.name, page.encode())
    except OSError as error:
        raise system_error(
            error, f"cannot write {into}", action="Choose another file with --html."
        ) from error
