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

    tool: str
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
        quantity = f"{self.metric} ({self.kind})" if self.kind else self.metric
        return f"{quantity} of {self.benchmark} over {self.transport}"

    @property
    def benchmark(self) -> str:
        """The tool and the benchmark's title."""
        return f"{self.tool} {self.test}"


@dataclass(frozen=True)
class Sizes:
    """Message sizes that a claim covers, in bytes, both inclusive."""

    low: int
    high: int | None
    """None: no upper limit."""

    def __contains__(self, size: object) -> bool:
        above = isinstance(size, int) and self.low <= size
        return above and (self.high is None or size <= self.high)  # type: ignore[operator]  # `above`


DEFAULT_TOLERANCE = 0.025
"""What a replication may be off a claim's bounds, as a share of the bound, if the study states no
spread: half of the 5 % from which on a difference counts."""


@dataclass(frozen=True)
class Tolerance:
    """How far outside a claim's bounds a replication may be."""

    value: float
    """For a ratio a share of the bound, for a difference in the metric's unit."""
    source: str
    """Where it is from; empty: the default."""


@dataclass(frozen=True)
class Bounds:
    """The range that a claim states for a ratio or a difference.

    A bound of 1 on a ratio means smaller or larger: a ratio of exactly 1 is neither.
    """

    low: float
    high: float
    tolerance: Tolerance = Tolerance(DEFAULT_TOLERANCE, "")


Over = Literal["every size", "some size", "best", "mean"]
"""The sizes that must satisfy a claim. `best`: compare each operand's best value over the sizes, as
studies do with peak values; `mean`: the mean over the sizes, geometric for ratios."""


@dataclass(frozen=True)
class Compare:
    """The ratio or the difference of two operands is within bounds."""

    first: Operand
    second: Operand
    how: Literal["ratio", "difference"]
    """second / first, or second - first in the metric's unit."""
    bounds: Bounds
    sizes: Sizes
    over: Over
    """Which question the study asked."""
    switches: int | None
    """How many switches the claim is about; None: it does not matter."""


@dataclass(frozen=True)
class Average:
    """The ratio of two operands, in the geometric mean over several tests, is within bounds."""

    tests: tuple[str, ...]
    """Titles of the benchmarks in the plan; the operands have the rest."""
    first: Operand
    second: Operand
    bounds: Bounds


@dataclass(frozen=True)
class Falls:
    """A quantity falls from the smallest message size to the largest and never rises between."""

    operand: Operand
    sizes: Sizes


@dataclass(frozen=True)
class Dips:
    """A quantity is smaller at one size than at the previous measured size."""

    operand: Operand
    sizes: Sizes
    """At one of these it is smaller than at the next smaller measured size."""
    present: bool
    """True if the claim is that it dips, False if that it does not."""


@dataclass(frozen=True)
class Adds:
    """What a switch adds to a quantity, from one run to another with more switches."""

    operand: Operand
    beyond: Operand | None
    """Subtract what the switch adds to this operand; None: subtract nothing."""
    bounds: Bounds
    """Bounds of what one switch adds, in the metric's unit."""
    sizes: Sizes


@dataclass(frozen=True)
class Stalls:
    """Benchmarks over a transport do not finish."""

    tool: str
    tests: tuple[str, ...]
    transport: str


@dataclass(frozen=True)
class Untestable:
    """No run of rocelab can test the claim."""

    because: str


Check = Compare | Average | Falls | Dips | Adds | Stalls | Untestable


@dataclass(frozen=True)
class Claim:
    """A sentence of the study and the check that tests it."""

    name: str
    text: str
    """The study's own words; “ … ” stands for words left out."""
    about: str
    """Which of the things that the sentence speaks of the check is about; empty: all."""
    source: str
    """The place in the publication."""
    reading: str
    """How the check reads the sentence if it is open to interpretation."""
    needs: str
    """Why the check's result does not test the claim; empty if it does."""
    analogue: str
    """Why the check measures something like what the study did; empty if it measures the same."""
    check: Check


@dataclass(frozen=True)
class Figure:
    """A number stated in the publication's text."""

    system: str
    """What was measured, in the study's words."""
    transport: str
    """The corresponding transport of rocelab; empty: none."""
    tool: str
    """The tool that measures it here; empty: not of one benchmark."""
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
    def is_drawable(self) -> bool:
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
