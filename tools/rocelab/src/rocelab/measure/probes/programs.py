# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of the processes that a plan's cells run, which rxecpu takes for the benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rocelab.measure.mpi import mpi_step
from rocelab.measure.pair_step import job_of
from rocelab.plans.benchmarks.mpi.suites import SUITES
from rocelab.plans.benchmarks.pair_tools import TOOLS
from rocelab.plans.benchmarks.tool import process_name
from rocelab.plans.plan import Cell

_MAX_NAMES = 64
"""As many names as rxecpu takes (docs/man/rxecpu.8.md)."""


def programs_of(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Return the names in all cells; none if they are too many for one rxecpu."""
    names = sorted({name for cell in cells for name in _of(cell)})
    return tuple(names) if len(names) <= _MAX_NAMES else ()


def _of(cell: Cell) -> Iterator[str]:
    size = cell.benchmark.sizes[0]
    if cell.benchmark.mpi is not None:
        yield from SUITES[cell.test.tool].programs(mpi_step.job_of(cell, (size,)))
        return
    tool, job = TOOLS[cell.test.tool], job_of(cell, size)
    for argv in (tool.client(job), tool.server_argv(job)):
        if argv:
            yield process_name(argv)
