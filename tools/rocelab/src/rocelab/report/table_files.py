# SPDX-License-Identifier: GPL-2.0-or-later
"""A report's tables as CSV and LaTeX, for a paper.

The texts of a table may come from a hostile run folder: in LaTeX every special character is
escaped, and in CSV no text can begin a spreadsheet's formula.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from rocelab import units
from rocelab.record.results_table import FORMULA
from rocelab.report.figure import Document, Figure, Section, Table

_NUMBER = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "µ": r"\textmu{}",
    "²": r"\textsuperscript{2}",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{EN DASH}": "--",
    "…": r"\ldots{}",
    "“": "``",
    "”": "''",
    units.MINUS: "$-$",
    units.SPACE: "~",
    units.NARROW_SPACE: r"\,",
}


def files(document: Document) -> Iterator[tuple[str, str]]:
    """Yield name and text of each table's two files: `table-<figure or section>.csv`, `.tex`."""
    for section in document.sections:
        places: tuple[Section | Figure, ...] = (section, *section.figures)
        for place in places:
            for number, table in enumerate(place.tables, 1):
                name = _name(place, number)
                yield f"{name}.csv", as_csv(table)
                yield f"{name}.tex", as_latex(table)


def _name(place: Section | Figure, number: int) -> str:
    name = place.anchor if isinstance(place, Section) else place.slug
    return f"table-{name}" if number == 1 else f"table-{name}-{number}"


def as_csv(table: Table) -> str:
    """Return a table as CSV with a heading; numbers are as in the report, without grouping."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_cell(column.label) for column in table.columns])
    writer.writerows([_cell(cell) for cell in row] for row in table.rows)
    return text.getvalue()


def _cell(text: str) -> str:
    for special, plain in ((units.MINUS, "-"), (units.SPACE, " "), (units.NARROW_SPACE, " ")):
        text = text.replace(special, plain)
    if text == units.ABSENT:
        return ""
    if _NUMBER.fullmatch(text):
        return text.replace(",", "")
    try:
        float(text)
    except ValueError:
        return f"'{text}" if text.startswith(FORMULA) else text
    return text


def as_latex(table: Table) -> str:
    """Return a table as a LaTeX `tabular` with rules of booktabs, its caption as a comment."""
    alignment = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [
        f"% {' '.join(table.caption.split())}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        _row(tuple(column.label for column in table.columns)),
        r"\midrule",
        *map(_row, table.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _row(cells: tuple[str, ...]) -> str:
    escaped = ("".join(_LATEX.get(sign, sign) for sign in " ".join(c.split())) for c in cells)
    return " & ".join(escaped) + r" \\"
