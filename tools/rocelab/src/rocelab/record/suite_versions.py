# SPDX-License-Identifier: GPL-2.0-or-later
"""Which suites of a run have a version that rocelab's parsers were not tested with."""

from __future__ import annotations

from collections.abc import Iterable

from rocelab.plans.catalog import MPI_TOOLS
from rocelab.record.read import Json


def untested_suites(cells: Iterable[Json]) -> tuple[str, ...]:
    """Return such suites with their versions, like `omb 9.1`; `cells` are contents of cell.json."""
    suites = {
        f"{tool} {mpi.text('version', 'without a version')}"
        for cell in cells
        if (tool := cell.text("tool")) in MPI_TOOLS
        for step in cell.objects("steps")
        if (mpi := step.object("mpi")).text("note")
    }
    return tuple(sorted(suites))


def warning(suites: tuple[str, ...]) -> str:
    """Return the warning about suites that `untested_suites` found."""
    return (
        f"rocelab was not tested with {' and '.join(suites)}. Numbers are read as strictly as of "
        "other versions, but may mean something else: compare a few with mpirun.out."
    )
