# SPDX-License-Identifier: GPL-2.0-or-later
"""Stage histograms as rxestat writes them: merge kinds of packets, quantiles, the typical packet.

The typical packet is the interquartile mean: that of the middle half of the packets. What few of
them meet, such as an interrupt or an empty cache, changes a mean from run to run by more than what
one compares; it does not move the middle, nor does another kind of packet below 25 %. Where several
kinds make up the middle, their shares vary from run to run, and the figure less the wider it is
taken. How many packets differ much from the typical one comes with it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rocelab.errors import CellError

_NEAR = 1 / 8
"""A packet that differs by more than this from the typical one is not: no bucket is wider."""
_NARROWEST = 4
"""Or by more than this many ns: no bucket is narrower."""
_SUMMED_BELOW = 65536
"""rxestat knows the sum of each bucket up to this time, in ns."""


@dataclass(frozen=True)
class Typical:
    """The mean of the middle half in ns, and how many packets differ from it by over an eighth."""

    mean: float
    atypical: int


@dataclass(frozen=True)
class Histogram:
    """Times of one stage in ns: exact count, sum, minimum and maximum, and buckets."""

    count: int
    sum: int
    min: int
    max: int
    buckets: Mapping[int, int]
    """Largest value that belongs to the bucket → how many."""
    sums: Mapping[int, int] | None = None
    """The same → their exact sum, of buckets up to 65,536 ns; None: not recorded."""

    @property
    def mean(self) -> float:
        """Exact mean in ns."""
        return self.sum / self.count

    @property
    def typical(self) -> Typical | None:
        """A typical packet; None if the sums of buckets are not known.

        A bucket that is partly in the middle counts with its own mean. So the figure is exact if
        the packets of such a bucket took the same time, as those do that count instructions, and
        otherwise off by less than a bucket's width. Beyond 65,536 ns sums are estimated.
        """
        if self.sums is None:
            return None
        sums = self._every_sum(self.sums)
        means = {upper: sums[upper] / count for upper, count in sorted(self.buckets.items())}
        # the middle half, in quarters of a packet
        low, high = self.count, 3 * self.count
        seen, total = 0, 0.0
        for upper, mean in means.items():
            below, seen = seen, seen + 4 * self.buckets[upper]
            total += max(0, min(high, seen) - max(low, below)) * mean
        middle = total / (high - low)
        reach = max(middle * _NEAR, _NARROWEST)
        atypical = (self.buckets[at] for at, mean in means.items() if abs(mean - middle) > reach)
        return Typical(middle, sum(atypical))

    def quantile(self, share: float) -> int:
        """The bucket edge (ns) that a `share` of the values do not exceed; never above max."""
        needed = math.ceil(round(share * self.count, 9))
        seen = 0
        for upper in sorted(self.buckets):
            seen += self.buckets[upper]
            if seen >= needed:
                return min(upper, self.max)
        return self.max

    def _every_sum(self, known: Mapping[int, int]) -> Mapping[int, float]:
        """The sums of all buckets: far ones share what is left of the total, by their edges."""
        edges = {upper: upper * self.buckets[upper] for upper in self.buckets.keys() - known.keys()}
        scale = (self.sum - sum(known.values())) / (sum(edges.values()) or 1)
        return {**known, **{upper: scale * edge for upper, edge in edges.items()}}


def from_row(row: Mapping[str, Any]) -> Histogram | None:
    """A row of rxestat's JSON; None when the stage saw nothing. Raises CellError."""
    try:
        buckets = {int(upper): int(number) for upper, number in row["buckets"]}
        sums = None
        if "bucket_sums_ns" in row:
            summed = (upper for upper in buckets if upper <= _SUMMED_BELOW)
            known = (int(total) for total in row["bucket_sums_ns"])
            sums = dict(zip(summed, known, strict=True))
        histogram = Histogram(
            *(int(row["count"]), int(row["sum_ns"]), int(row["min_ns"]), int(row["max_ns"])),
            *(buckets, sums),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CellError(f"a row of rxestat has no valid {error!a:.60}") from error
    if sum(buckets.values()) != histogram.count or min(buckets.values(), default=1) < 1:
        raise CellError("a row of rxestat has another count than its buckets")
    if sums and not (_fit(sums, buckets) and sum(sums.values()) <= histogram.sum):
        raise CellError("a row of rxestat has sums that do not fit its buckets")
    return histogram if histogram.count else None


def _fit(sums: Mapping[int, int], buckets: Mapping[int, int]) -> bool:
    return all(0 <= total < upper * buckets[upper] for upper, total in sums.items())


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """One histogram of all values; at least one must be given."""
    parts = list(histograms)
    buckets: Counter[int] = Counter()
    sums: Counter[int] = Counter()
    for part in parts:
        buckets.update(part.buckets)
        sums.update(part.sums or {})
    return Histogram(
        count=sum(part.count for part in parts),
        sum=sum(part.sum for part in parts),
        min=min(part.min for part in parts),
        max=max(part.max for part in parts),
        buckets=dict(buckets),
        sums=None if any(part.sums is None for part in parts) else dict(sums),
    )
