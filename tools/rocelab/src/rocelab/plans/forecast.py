# SPDX-License-Identifier: GPL-2.0-or-later
"""What a plan will do: its cells, the bytes that it sends, and how long that takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rocelab.plans.catalog import Kind
from rocelab.plans.plan import Cell, Plan
from rocelab.plans.steps import steps_of

_MANY = frozenset({Kind.APPLICATION})
"""Kinds that choose their own messages."""

Kinds = Mapping[tuple[str, str, str], Sequence[float]]
"""Seconds that finished cells took, by tool, title and transport."""


def kind_of(cell: Cell) -> tuple[str, str, str]:
    """Return what cells that take as long have in common: tool, title and transport."""
    return cell.benchmark.tool, cell.benchmark.title, cell.transport.name


@dataclass(frozen=True)
class Forecast:
    """What a plan will do on one kind of testbed."""

    cells: tuple[str, ...]
    """Their names, in the order in which they run."""
    steps: int
    message_bytes: int
    """Of the steps that send a known number of messages, both directions; each step may send them
    several times, for the probes."""
    open_steps: int
    """Steps whose program sends for a time, or chooses its messages."""
    seconds: float | None
    """By cells of the same kind in earlier runs; None if there is none for some cell. Without the
    time to boot."""

    @classmethod
    def of(cls, plan: Plan, taken: Kinds) -> Forecast:
        """Return the forecast; `taken` are the times of earlier cells."""
        cells = plan.cells()
        counts = [_message_bytes(cell) for cell in cells]
        steps = [len(steps_of(cell.benchmark)) for cell in cells]
        times = [taken.get(kind_of(cell), ()) for cell in cells]
        known = all(times)
        return cls(
            tuple(cell.name for cell in cells),
            sum(steps),
            sum(count for count in counts if count is not None),
            sum(n for n, count in zip(steps, counts, strict=True) if count is None),
            sum(sum(some) / len(some) for some in times) if known else None,
        )


def _message_bytes(cell: Cell) -> int | None:
    """Bytes of the messages of all sizes; None if their number is not known."""
    test, benchmark = cell.test, cell.benchmark
    if cell.is_timed or test.kind in _MANY or benchmark.command:
        return None
    ways = 2 if test.kind in (Kind.ONE_WAY_HALF_RTT, Kind.BOTH_WAYS) else 1
    return ways * sum(benchmark.iterations_of(size) * size for size in benchmark.sizes)
