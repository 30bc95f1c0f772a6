# SPDX-License-Identifier: GPL-2.0-or-later
"""Grids of text that fit the terminal: by leaving columns to another grid, never by cutting one."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

WIDTH = 80
"""Columns where the output is not a terminal."""
_GAP = 2
"""Spaces between two columns."""


def width(rows: Iterable[Sequence[str]]) -> int:
    """Terminal columns that a grid of these rows takes."""
    columns = [_widest(column) for column in zip(*rows, strict=True)]
    return sum(columns) + _GAP * (len(columns) - 1)


def heading(title: str, how: str, columns: int) -> RenderableType:
    """A table's title and how its numbers were made, on as many lines as they take."""
    parts: list[str | tuple[str, str]] = ["\n", (_wrap(title, columns), "bold")]
    if how:
        together = len(title) + len(how) + _GAP <= columns
        parts += [" " * _GAP if together else "\n", (_wrap(how, columns), "dim")]
    return Text.assemble(*parts)


def paragraph(text: str, columns: int, style: str = "") -> Text:
    """Text in lines that fit; a word that does not stays whole."""
    return Text(_wrap(text, columns), style=style)


def fit(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: int,
    *,
    keys: int = 1,
    bold: Iterable[int] = (),
) -> Iterator[RenderableType]:
    """Return grids of these rows, no wider than `columns` where the cells allow it.

    The first `keys` cells of a row say what it is. An empty first cell means the one above. If
    the whole is too wide, what the first cell says gets a line of its own; if that is not enough,
    the other columns go to several grids, each with the keys.
    """
    strong = set(bold)
    if width((heads, *rows)) <= columns:
        yield _table(heads, rows, strong)
        return
    if keys > 1:
        groups: list[tuple[str, list[Sequence[str]]]] = []
        for first, *rest in rows:
            if first or not groups:
                groups.append((first, []))
            groups[-1][1].append(rest)
        body = [row for _, some in groups for row in some]
        for block in _blocks(heads[1:], body, columns, keys - 1):
            yield from _group_grids(heads[1:], body, block, groups)
        return
    for block in _blocks(heads, rows, columns, keys):
        yield _table(
            [heads[at] for at in block], [[row[at] for at in block] for row in rows], strong
        )


def _group_grids(
    heads: Sequence[str],
    body: Sequence[Sequence[str]],
    block: Sequence[int],
    groups: Sequence[tuple[str, Sequence[Sequence[str]]]],
) -> Iterator[RenderableType]:
    """A line for each group's name, then its grid; the grids' columns are equally wide."""
    widths = [_widest([heads[at], *(row[at] for row in body)]) for at in block]
    for position, (name, some) in enumerate(groups):
        yield Text(name)
        shown = [heads[at] for at in block] if position == 0 else None
        yield _table(shown, [[row[at] for at in block] for row in some], set(), widths)


def _blocks(
    heads: Sequence[str], rows: Sequence[Sequence[str]], columns: int, keys: int
) -> Iterator[list[int]]:
    """Positions of the columns of each grid: the keys, and as many others as fit, at least one."""
    widths = [_widest([head, *(row[at] for row in rows)]) for at, head in enumerate(heads)]
    start = sum(widths[:keys]) + _GAP * (keys - 1)
    block, used = list(range(keys)), start
    for at in range(keys, len(heads)):
        if len(block) > keys and used + _GAP + widths[at] > columns:
            yield block
            block, used = list(range(keys)), start
        block.append(at)
        used += _GAP + widths[at]
    yield block


def _table(
    heads: Sequence[str] | None,
    rows: Iterable[Sequence[str]],
    bold: set[int],
    widths: Sequence[int] = (),
) -> Table:
    some = list(rows)
    count = len(heads) if heads is not None else len(some[0])
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, _GAP, 0, 0),
        header_style="dim",
        show_header=heads is not None,
    )
    for at in range(count):
        table.add_column(
            heads[at] if heads is not None else "",
            justify="left" if at == 0 else "right",
            no_wrap=True,
            min_width=widths[at] if widths else None,
        )
    for position, row in enumerate(some):
        table.add_row(*map(Text, row), style="bold" if position in bold else "")
    return table


def _widest(cells: Iterable[str]) -> int:
    return max((len(line) for cell in cells for line in cell.split("\n")), default=0)


def _wrap(text: str, columns: int) -> str:
    return "\n".join(
        textwrap.wrap(text, columns, break_long_words=False, break_on_hyphens=False) or [""]
    )
