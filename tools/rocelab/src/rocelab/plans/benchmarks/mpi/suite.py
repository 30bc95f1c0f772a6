# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface of an MPI suite's module: a command line and a parser, both pure.

Unlike a tool with a client and a server (rocelab.plans.benchmarks.tool), a suite measures all its
sizes in one process, because each mpirun takes five seconds on an emulated node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from rocelab.errors import CellError
from rocelab.plans.benchmarks.tool import Argv, Value
from rocelab.plans.catalog import Test
from rocelab.plans.plan import MpiPlan


@dataclass(frozen=True)
class MpiJob:
    """One test at some sizes, in one mpirun."""

    test: Test
    sizes: tuple[int, ...]
    """Bytes, as the suite counts them."""
    iterations: int
    mpi: MpiPlan
    each: bool = False
    """Whether the time of each operation is wanted, from a suite that can tell it."""


@dataclass(frozen=True)
class Sweep:
    """The results in a suite's output."""

    values: Mapping[int, tuple[Value, ...]]
    """By size."""
    payload_bytes: int
    """Minimum number of message bytes that crossed between the nodes."""
    messages: int
    """Minimum number of messages; a verbs transport sends a data packet for each."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Versions and parameters of the suite and the MPI library, for cell.json."""
    sent: Mapping[int, int] = field(default_factory=dict)
    """By size: messages that crossed between the nodes, warm-up included; without a size where the
    suite does not say, or where the library chooses them, as in a collective."""


@dataclass(frozen=True)
class Source:
    """A suite's name, and how to install it on a node."""

    title: str
    get: str


def _no_files(_: MpiJob) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Suite:
    """The functions of a suite, and how to get it."""

    argv: Callable[[MpiJob], Argv]
    parse: Callable[[MpiJob, str], Sweep]
    """Parses the output. Raises CellError if it is not valid."""
    source: Source
    files: Callable[[MpiJob], Mapping[str, str]] = _no_files
    """Name and text of the files in the folder where ranks run."""
    report: str = ""
    """The file into which the first rank writes the results; empty: mpirun's output has them."""
    names: Callable[[MpiJob], tuple[str, ...]] | None = None
    """Possible names of the program on a node; None: the name in `argv`."""

    def programs(self, job: MpiJob) -> tuple[str, ...]:
        """Return possible names of the program on a node, the preferred one first."""
        return self.names(job) if self.names else self.argv(job)[:1]


VERSION = r"\d[\w.+~-]{0,39}"
"""A version as suites print it; builds of a site add a suffix, such as 7.0-x2."""


def version_facts(version: str, *, tested: str) -> dict[str, str]:
    """Return the facts on a version; one that does not match `tested` gets a note, not an error.

    What is a number is read strictly in any version.
    """
    if re.match(tested, version):
        return {"version": version}
    return {"version": version, "note": "rocelab was not tested with this version's output"}


def bad_output(job: MpiJob, problem: str) -> NoReturn:
    """Raise CellError for output that cannot be used."""
    raise CellError(
        f"{job.test.program}: {problem}",
        cause="the benchmark stopped early, or its version prints an unknown format",
        action="Look at mpirun.out and mpirun.err in the cell's folder.",
    )
