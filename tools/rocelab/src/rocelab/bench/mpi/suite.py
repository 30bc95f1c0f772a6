# SPDX-License-Identifier: GPL-2.0-or-later
"""What every MPI suite's module offers: a command line and a parser, both pure.

Unlike the tools of two ends (rocelab.bench.tool), a suite goes through all its sizes in one
process: a launch of mpirun costs an emulated node five seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from rocelab.bench.catalog import Test
from rocelab.bench.plan import MpiPlan
from rocelab.bench.tool import Argv, Value
from rocelab.errors import CellError


@dataclass(frozen=True)
class MpiJob:
    """One test at some sizes, in one mpirun."""

    test: Test
    sizes: tuple[int, ...]
    """Bytes, as the suite counts them."""
    iterations: int
    mpi: MpiPlan


@dataclass(frozen=True)
class Sweep:
    """What a suite's output says."""

    values: Mapping[int, tuple[Value, ...]]
    """By size."""
    payload_bytes: int
    """Message bytes that must have crossed between the nodes at least."""
    messages: int
    """Messages, likewise: a verbs transport needs a data packet for each."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the suite says of itself and of the MPI library, for cell.json."""


@dataclass(frozen=True)
class Source:
    """What a suite is called, and how a node comes by it."""

    title: str
    get: str


def _no_files(_: MpiJob) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Suite:
    """How the harness knows a suite."""

    argv: Callable[[MpiJob], Argv]
    parse: Callable[[MpiJob, str], Sweep]
    """From what it said. Raises CellError when it is not what it should be."""
    source: Source
    files: Callable[[MpiJob], Mapping[str, str]] = _no_files
    """Name → text of the files that ranks find where they run."""
    report: str = ""
    """The file in which the first rank leaves what it has to say; none: mpirun's output."""
    names: Callable[[MpiJob], tuple[str, ...]] | None = None
    """What the program may be called on a node; None: as `argv` calls it."""

    def programs(self, job: MpiJob) -> tuple[str, ...]:
        """What the program may be called on a node, the first choice first."""
        return self.names(job) if self.names else self.argv(job)[:1]


def bad_output(job: MpiJob, problem: str) -> NoReturn:
    """Raise CellError: the output cannot be used."""
    raise CellError(
        f"{job.test.program}: {problem}",
        cause="the benchmark stopped early, or its output is not in the form of the known versions",
        action="Look at mpirun.out and mpirun.err in the cell's folder.",
    )
