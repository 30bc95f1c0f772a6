# SPDX-License-Identifier: GPL-2.0-or-later
"""Join a place, choose its typical message, and write its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
from rich.console import Console

from rocelab.correlate.joined import join
from rocelab.correlate.life import median_life
from rocelab.correlate.messages import messages
from rocelab.correlate.places import Place
from rocelab.correlate.view import Shown


def examine(
    place: Place, parquet: Path | None = None, *, ports: Sequence[int] = (), window: int = 0
) -> Shown:
    """Join one place; with `parquet`, write `packets.parquet` and `messages.parquet` there.

    Several places go into folders of their own, named as the places are. The rows themselves are
    not kept.
    """
    joined = join(place.wire, place.traces, ports=ports, window=window)
    made = messages(joined.packets, one_clock=place.one_clock)
    if parquet is not None:
        folder = parquet if place.name == place.wire.name else parquet / place.name
        folder.mkdir(parents=True, exist_ok=True)
        joined.packets.write_parquet(folder / "packets.parquet")
        made.write_parquet(folder / "messages.parquet")
    life = median_life(made)
    return Shown(place, replace(joined, packets=pl.DataFrame()), life)


def show_fits(where: Path, console: Console) -> None:
    """Print how well stage times explain what was measured, where `where` is a run."""
    from rocelab.correlate import fit_view

    if (where / "results.parquet").is_file():
        fit_view.show(where, console)
