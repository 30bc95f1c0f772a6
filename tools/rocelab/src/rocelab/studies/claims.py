# SPDX-License-Identifier: GPL-2.0-or-later
"""A published study as data; `study_file` reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MoreNodes = Literal["", "same ranks", "more ranks"]
"""What collectives do on more nodes; empty: the study is about two nodes."""


@dataclass(frozen=True)
class Operand:
    """One side of a comparison: a benchmark of the study's plans over a transport."""

    test: str
    """The benchmark's title in the plan, including its label."""
    metric: str
    kind: str
    """The metric's kind; empty if it has only one."""
    transport: str
    ranks: int | None = None
    """The number of ranks that the claim names; None if it names none."""
    ranks_per_node: int | None = None
    """The number of ranks per node that the claim names; None if it names none."""

    @property
    def text(self) -> str:
        """The operand in words."""
        what = f"{self.metric} ({self.kind})" if self.kind else self.metric
        return f"{what} of {self.test} over {self.transport}"


LARGEST = 1 << 24
"""Largest message size, bytes: a claim up to this size has no upper limit."""


@dataclass(frozen=True)
class Sizes:
    """Message sizes that a claim covers, in bytes, both inclusive."""

    low: int
    high: int

    def __contains__(self, size: object) -> bool:
        return isinstance(size, int) and self.low <= size <= self.high


@dataclass(frozen=True)
class Bounds:
    """The range that a claim states for a ratio or a difference."""

    low: float
    high: float


@dataclass(frozen=True)
class Compare:
    """The ratio or the difference of two operands is within bounds."""

    first: Operand
    second: Operand
    how: Literal["ratio", "difference"]
    """second / first, or second - first in the metric's unit."""
    bounds: Bounds
    sizes: Sizes
    over: Literal["every size", "some size", "best"]
    """`best`: compare each operand's best value over the sizes, as studies do with peak values."""


@dataclass(frozen=True)
class Falls:
    """A quantity falls from the smallest message size to the largest and never rises between."""

    of: Operand
    sizes: Sizes


@dataclass(frozen=True)
class Dips:
    """A quantity is smaller at one size than at the previous measured size."""

    of: Operand
    at: int
    present: bool
    """True if the claim is that it dips, False if that it does not."""


@dataclass(frozen=True)
class Adds:
    """What a switch adds to a quantity, from one run to another with more switches."""

    of: Operand
    beyond: Operand | None
    """Subtract what the switch adds to this operand; None: subtract nothing."""
    bounds: Bounds
    """Bounds of what one switch adds, in the metric's unit."""
    sizes: Sizes


@dataclass(frozen=True)
class Stalls:
    """Benchmarks over a transport do not finish."""

    tests: tuple[str, ...]
    transport: str


@dataclass(frozen=True)
class Untestable:
    """No run of rocelab can test the claim."""

    because: str


Check = Compare | Falls | Dips | Adds | Stalls | Untestable


@dataclass(frozen=True)
class Claim:
    """A sentence of the study and the check that tests it."""

    name: str
    text: str
    source: str
    """The place in the publication."""
    reading: str
    """How the check reads the sentence if it is open to interpretation."""
    needs: str
    """Why the check's result does not test the claim; empty if it does."""
    check: Check


@dataclass(frozen=True)
class Figure:
    """A number stated in the publication's text."""

    system: str
    """What was measured, in the study's words."""
    transport: str
    """The corresponding transport of rocelab; empty: none."""
    test: str
    """The benchmark's title in the plans, including its label; empty: not of one benchmark."""
    metric: str
    statistic: str
    """`best`: over all sizes; `at`: at `size`; `relation`: between systems."""
    size: int | None
    low: float
    high: float
    """Equal to `low` unless the text gives a range."""
    unit: str
    says: str
    source: str

    @property
    def drawn(self) -> bool:
        """Whether it can be drawn next to a measured figure."""
        return self.statistic in ("best", "at") and bool(self.transport and self.test)


@dataclass(frozen=True)
class Study:
    """A study's question, setting, figures and claims."""

    name: str
    title: str
    authors: str
    year: int
    publication: str
    asked: tuple[str, ...]
    measured_on: tuple[str, ...]
    method: tuple[str, ...]
    silent: tuple[str, ...]
    """What its text does not state, and its contradictions."""
    here: tuple[str, ...]
    """How the plan here differs from the study, and why."""
    averaging: Literal["median", "mean"]
    """The average of repetitions to compare with published figures: the study's own choice."""
    more_nodes: MoreNodes
    """What its collectives do on more than two nodes."""
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
