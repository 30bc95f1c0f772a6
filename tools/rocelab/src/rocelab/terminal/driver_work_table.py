# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a message's cost is encapsulation, copying and other work of the driver, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl
from rich.console import RenderableType

from rocelab.record import driver_work
from rocelab.terminal import grid

_HEADS = ("benchmark", "transport", *driver_work.KINDS, "rxe")


def render(
    costs: Iterable[tuple[str, str, pl.DataFrame, float, float]], columns: int
) -> Iterator[RenderableType]:
    """Yield the table of these messages, and what part of them is encapsulation.

    Each is a benchmark's name, a transport, the step's rows, and what a message cost the driver and
    in all.
    """
    rows: list[tuple[str, ...]] = []
    shares: list[float] = []
    last = ""
    for name, transport, step, driver, total in costs:
        parts = driver_work.by_kind(step, driver)
        if not parts:
            continue
        numbers = [f"{parts[kind]:,.0f}" for kind in driver_work.KINDS]
        rows.append(("" if name == last else name, transport, *numbers, f"{driver:,.0f}"))
        last = name
        if total:
            shares.append(sum(parts[kind] for kind in driver_work.CAPSULES) / total)
    if not rows:
        return
    yield grid.heading(
        "The driver's part of it, by kind of work",
        "stages of all packets of a message, acknowledgements included",
        columns,
    )
    yield from grid.fit(_HEADS, rows, columns, keys=2)
    text = "between: tasks, queues and locks, outside of any stage."
    if shares:
        low, high = (f"{share:.1%}" for share in (min(shares), max(shares)))
        share = low if low == high else f"{low} to {high}"
        capsules = f"Encapsulation and decapsulation ({' and '.join(driver_work.CAPSULES)})"
        text = f"{capsules} are {share} of a message; {text}"
    yield grid.paragraph(text, min(columns, grid.WIDTH), style="dim")
