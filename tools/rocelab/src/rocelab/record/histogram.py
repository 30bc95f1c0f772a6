# SPDX-License-Identifier: GPL-2.0-or-later
"""Stage histograms as rxestat writes them: merge kinds of packets, and take quantiles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rocelab.errors import CellError


@dataclass(frozen=True)
class Histogram:
    """Times of one stage in ns: exact count, sum, minimum and maximum, and buckets."""

    count: int
    sum: int
    min: int
    max: int
    buckets: Mapping[int, int]
    """Largest value that belongs to the bucket → how many."""

    @property
    def mean(self) -> float:
        """Exact mean in ns."""
        return self.sum / self.count

    def quantile(self, share: float) -> int:
        """The bucket edge (ns) that a `share` of the values do not exceed; never above max."""
        needed = math.ceil(round(share * self.count, 9))
        seen = 0
        for upper in sorted(self.buckets):
            seen += self.buckets[upper]
            if seen >= needed:
                return min(upper, self.max)
        return self.max


def from_row(row: Mapping[str, Any]) -> Histogram | None:
    """A row of rxestat's JSON; None when the stage saw nothing. Raises CellError."""
    try:
        buckets = {int(upper): int(number) for upper, number in row["buckets"]}
        found = Histogram(
            int(row["count"]), int(row["sum_ns"]), int(row["min_ns"]), int(row["max_ns"]), buckets
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CellError(f"a row of rxestat has no valid {error!a:.60}") from error
    if sum(buckets.values()) != found.count:
        raise CellError("a row of rxestat has another count than its buckets")
    return found if found.count else None


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """One histogram of all values; at least one must be given."""
    parts = list(histograms)
    buckets: Counter[int] = Counter()
    for part in parts:
        buckets.update(part.buckets)
    return Histogram(
        count=sum(part.count for part in parts),
        sum=sum(part.sum for part in parts),
        min=min(part.min for part in parts),
        max=max(part.max for part in parts),
        buckets=dict(buckets),
    )
