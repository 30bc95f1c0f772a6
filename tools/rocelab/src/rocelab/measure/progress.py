# SPDX-License-Identifier: GPL-2.0-or-later
"""The progress events of a run; the command line prints them, tests record them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Protocol

from rocelab.errors import RocelabError
from rocelab.plans.plan import Cell
from rocelab.stats.summary import mean


class Progress(Protocol):
    """Events of a run, sent in order from the thread that runs it."""

    def run_started(self, run: str, *, cells: int, finished: int) -> None:
        """The plan has `cells` cells, `finished` of them by an earlier attempt."""

    def cell_started(self, cell: Cell, *, number: int) -> None:
        """Cell `number` begins; the first one in the plan's order has number 1."""

    def step_started(self, cell: Cell, *, size: int) -> None:
        """The cell begins to measure a message size."""

    def cell_finished(
        self, cell: Cell, *, error: RocelabError | None, seconds: float, left: float | None
    ) -> None:
        """The cell is on disk; `left` estimates the seconds until the run ends."""

    def note(self, text: str) -> None:
        """Report something else, such as a warning or that the testbed is being recreated."""


class NullProgress:
    """Ignores all progress."""

    def run_started(self, run: str, *, cells: int, finished: int) -> None:
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
    """Estimates how long the rest of a run will take from the finished cells."""

    _seconds: dict[tuple[str, str, str], list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add(self, cell: Cell, seconds: float) -> None:
        """Add a finished cell."""
        self._seconds[_kind(cell)].append(seconds)

    def seconds_left(self, cells: list[Cell]) -> float | None:
        """Estimate the seconds for these cells; None before the first cell has finished.

        A cell takes the mean of finished cells of its kind, or of all cells if there are none.
        """
        if not self._seconds:
            return None
        overall = mean([s for times in self._seconds.values() for s in times])
        return sum(
            mean(self._seconds[_kind(cell)]) if _kind(cell) in self._seconds else overall
            for cell in cells
        )


def _kind(cell: Cell) -> tuple[str, str, str]:
    return cell.benchmark.tool, cell.benchmark.title, cell.transport.name
