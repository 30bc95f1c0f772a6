# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run tells whoever watches it; the command line draws a bar, tests take notes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Protocol

from rocelab.bench.plan import Cell
from rocelab.errors import RocelabError
from rocelab.run.stats import mean


class Progress(Protocol):
    """Events of a run, in order, from the thread that runs it."""

    def run_started(self, run: str, *, cells: int, kept: int) -> None:
        """`cells` in the plan, of which `kept` were finished by an earlier attempt."""

    def cell_started(self, cell: Cell, *, number: int) -> None:
        """Cell `number` (from 1, in the order of the plan) begins."""

    def step_started(self, cell: Cell, *, size: int) -> None:
        """The cell goes on to a message size."""

    def cell_finished(
        self, cell: Cell, *, error: RocelabError | None, seconds: float, left: float | None
    ) -> None:
        """The cell is on disk, good or as an error; `left`: seconds that the rest may take."""

    def note(self, text: str) -> None:
        """Something worth a line: a warning, a node that is being made anew."""


class Silent:
    """Nobody watches."""

    def run_started(self, run: str, *, cells: int, kept: int) -> None:
        """Ignored."""

    def cell_started(self, cell: Cell, *, number: int) -> None:
        """Ignored."""

    def step_started(self, cell: Cell, *, size: int) -> None:
        """Ignored."""

    def cell_finished(
        self, cell: Cell, *, error: RocelabError | None, seconds: float, left: float | None
    ) -> None:
        """Ignored."""

    def note(self, text: str) -> None:
        """Ignored."""


@dataclass
class Estimate:
    """How long the rest of a run will take, from the cells that are done."""

    _seconds: dict[tuple[str, str, str], list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add(self, cell: Cell, seconds: float) -> None:
        """Learn from a finished cell."""
        self._seconds[_sort(cell)].append(seconds)

    def left(self, cells: list[Cell]) -> float | None:
        """Seconds for these cells, by what their like took, or any; None before the first."""
        if not self._seconds:
            return None
        overall = mean([s for times in self._seconds.values() for s in times])
        return sum(
            mean(self._seconds[_sort(cell)]) if _sort(cell) in self._seconds else overall
            for cell in cells
        )


def _sort(cell: Cell) -> tuple[str, str, str]:
    return cell.benchmark.tool, cell.benchmark.title, cell.transport.name
