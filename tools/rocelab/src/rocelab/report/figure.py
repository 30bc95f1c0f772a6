# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of a report as plain data: sections, figures of panels, and tables.

Any text may come from a run folder, which is untrusted: the template escapes all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rocelab.report.charts import Spec


@dataclass(frozen=True)
class Column:
    """A table column; numbers are right-aligned, names are never broken.

    A column of one `transport` disappears when the reader unticks that transport. `code` is there
    to be copied. Cells in `links` lead to that anchor of the page.
    """

    label: str
    numeric: bool = False
    name: bool = False
    code: bool = False
    transport: str = ""
    links: Mapping[str, str] = field(default_factory=dict)


_SENTENCE = 48
"""Characters; what is longer is no number or name."""


@dataclass(frozen=True)
class Table:
    """A table of finished text, one list per row, as wide as `columns`.

    A `folded` one is shown on demand.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    folded: bool = False

    @property
    def is_prose(self) -> bool:
        """Whether it holds sentences, which need the width of a narrow screen."""
        return any(len(cell) > _SENTENCE for row in self.rows for cell in row)


@dataclass(frozen=True)
class Legend:
    """One entry of a figure's legend: a name, its colour on light ground and its mark."""

    label: str
    colour: str
    mark: str = "bar"


@dataclass(frozen=True)
class Panel:
    """One chart of a figure. `alt` describes it for readers who cannot see it.

    A panel of one `transport` disappears when the reader unticks that transport.
    """

    title: str
    chart: Spec
    alt: str
    transport: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure: panels that share a legend, the caption, and the tables of the numbers drawn.

    `notes` say how to read it: a page shows each once, a figure's file all of them.

    Without an `accelerator`, it was not measured on nodes of ours.

    `slug` names the SVG file and the anchor: lower-case letters, digits and hyphens. A `folded`
    figure of minor interest is shown on demand.
    """

    slug: str
    title: str
    caption: tuple[str, ...]
    panels: tuple[Panel, ...]
    legend: tuple[Legend, ...]
    tables: tuple[Table, ...]
    accelerator: str
    notes: tuple[str, ...] = ()
    columns: int = 2
    folded: bool = False
    scrolls: bool = False
    """A narrow screen shows a part of it, in readable size."""


Tone = Literal["plain", "warning"]


@dataclass(frozen=True)
class Note:
    """A paragraph; a warning is set apart."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Section:
    """A part of the report. With neither figures nor tables, `notes` says what is missing.

    A `folded` one is shown on demand; the `first` fills the first screen.
    """

    anchor: str
    title: str
    notes: tuple[Note, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    closing: tuple[Note, ...] = ()
    points: tuple[tuple[str, tuple[str, ...]], ...] = ()
    command: str = ""
    folded: bool = False
    first: bool = False


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    lead: str
    notes: tuple[Note, ...]
    transports: tuple[str, ...]
    sections: tuple[Section, ...]
    footer: str
