# SPDX-License-Identifier: GPL-2.0-or-later
"""What the cost of one message grows with, as a table: a base, its bytes, each further packet."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from rich.console import RenderableType

from rocelab import units
from rocelab.correlate import cost_by_size
from rocelab.correlate.fit import Fit
from rocelab.terminal import grid

_HEADS = ("benchmark", "transport", "base", "KiB", "KiB of several", "packet", "R2")
_KIB = 1024


def render(table: pl.DataFrame, columns: int) -> Iterator[RenderableType]:
    """Yield the table; nothing unless three sizes of one packet, or of several, were measured."""
    rows = []
    last = ""
    for line in cost_by_size.lines(table):
        name = f"{line.tool} {line.test}"
        explained = [f"{fit.r_squared:.3f}" for fit in (line.one, line.several) if fit]
        rows.append(
            (
                "" if name == last else name,
                line.transport,
                _number(line.one.base.value if line.one else None),
                _per_kib(line.one),
                _per_kib(line.several),
                _number(line.packet),
                " ".join(explained),
            )
        )
        last = name
    if not rows:
        return
    yield grid.heading(
        "One message by its size",
        "cost = base + KiB of the message; messages of one packet, then of several",
        columns,
    )
    yield from grid.fit(_HEADS, rows, columns, keys=2)
    yield grid.paragraph(
        "packet: what a further packet costs without its bytes. R2: the share of the variance that "
        "the lines explain.",
        min(columns, grid.WIDTH),
        style="dim",
    )


def _per_kib(fit: Fit | None) -> str:
    return _number(fit.factor.value * _KIB if fit else None)


def _number(value: float | None) -> str:
    return units.ABSENT if value is None else f"{value:,.0f}"
