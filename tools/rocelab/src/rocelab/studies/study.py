# SPDX-License-Identifier: GPL-2.0-or-later
"""A published study, as data: `study_file` reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MoreNodes = Literal["", "same ranks", "more ranks"]
"""Empty: the study is about two nodes."""


@dataclass(frozen=True)
class Operand:
    """One side of a comparison: a benchmark of the study's plans over a transport."""

    test: str
    """As plans title it, label included."""
    metric: str
    kind: str
    """Of the metric; empty: the only one it has."""
    transport: str
    ranks: int | None = None
    """With how many the claim is about it; None: it names no number."""
    ranks_per_node: int | None = None
    """The same of each node."""

    @property
    def text(self) -> str:
        """The operand in words."""
        what = f"{self.metric} ({self.kind})" if self.kind else self.metric
        return f"{what} of {self.test} over {self.transport}"


LARGEST = 1 << 24
"""Of message sizes in bytes: a claim that ends there has no upper end."""


@dataclass(frozen=True)
class Sizes:
    """Message sizes that a claim speaks of, in bytes, both included."""

    low: int
    high: int

    def __contains__(self, size: object) -> bool:
        return isinstance(size, int) and self.low <= size <= self.high


@dataclass(frozen=True)
class Bounds:
    """What a claim says of a ratio or a difference."""

    low: float
    high: float


@dataclass(frozen=True)
class Compare:
    """The ratio (or the difference) of two operands lies within bounds."""

    first: Operand
    second: Operand
    how: Literal["ratio", "difference"]
    """second / first, or second - first in the metric's own unit."""
    bounds: Bounds
    sizes: Sizes
    over: Literal["every size", "some size", "best"]
    """`best`: of each operand's best figure over the sizes, as a study's "peak values"."""


@dataclass(frozen=True)
class Falls:
    """A quantity falls with message size: from the smallest to the largest, and rises nowhere."""

    of: Operand
    sizes: Sizes


@dataclass(frozen=True)
class Dips:
    """A quantity is smaller at one size than at the measured size before it."""

    of: Operand
    at: int
    present: bool
    """Whether the claim is that it does; else that it does not."""


@dataclass(frozen=True)
class Adds:
    """What a switch adds to a quantity: from one run to another with more switches between."""

    of: Operand
    beyond: Operand | None
    """Of which what the switch adds to it is taken off; None: nothing is."""
    bounds: Bounds
    """Of what one switch adds, in the metric's own unit."""
    sizes: Sizes


@dataclass(frozen=True)
class Stalls:
    """Benchmarks over a transport do not come to their end."""

    tests: tuple[str, ...]
    transport: str


@dataclass(frozen=True)
class Untestable:
    """No run of rocelab can answer it."""

    because: str


Check = Compare | Falls | Dips | Adds | Stalls | Untestable


@dataclass(frozen=True)
class Claim:
    """A sentence of the study, and how a run answers it."""

    name: str
    text: str
    source: str
    """Where in the publication."""
    reading: str
    """What the check takes the sentence to mean, where it leaves that open."""
    needs: str
    """Why one run of rocelab cannot answer it, though the check says something; empty: it can."""
    check: Check


@dataclass(frozen=True)
class Figure:
    """A number that the text of the publication gives."""

    system: str
    """What was measured, in the study's words."""
    transport: str
    """Ours that it corresponds to; empty: none."""
    test: str
    """Of the plans, label included; empty: it is no figure of one benchmark."""
    metric: str
    statistic: str
    """`best`: over all sizes; `at`: at `size`; `relation`: between systems."""
    size: int | None
    low: float
    high: float
    """The same as `low` unless the text gives a range."""
    unit: str
    says: str
    source: str

    @property
    def drawn(self) -> bool:
        """Whether a measured figure can stand beside it."""
        return self.statistic in ("best", "at") and bool(self.transport and self.test)


@dataclass(frozen=True)
class Study:
    """A study: its question, its figures, its claims."""

    name: str
    title: str
    authors: str
    year: int
    publication: str
    asked: tuple[str, ...]
    measured_on: tuple[str, ...]
    method: tuple[str, ...]
    silent: tuple[str, ...]
    """What its text does not give, and contradictions in it."""
    here: tuple[str, ...]
    """How its plan here differs, and why."""
    averaging: Literal["median", "mean"]
    """What of the repetitions stands beside a published figure: as the study averaged its own."""
    more_nodes: MoreNodes
    """What its collectives do on more nodes than two."""
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
