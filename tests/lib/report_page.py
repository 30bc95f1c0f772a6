# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's report as a parsed page, without what a test does not read: drawing takes the time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import html_tree
from html_tree import Element
from rocelab.record import read
from rocelab.report import render
from rocelab.report.document import compose


def page(folder: Path, *sections: str) -> Element:
    """The page without the figures' files; with only these sections, if any is named."""
    document = compose(read.load(folder))
    if sections:
        chosen = tuple(part for part in document.sections if part.anchor in sections)
        document = replace(document, sections=chosen)
    return html_tree.parse(render.page(document))
