# SPDX-License-Identifier: GPL-2.0-or-later
"""Which stage's variation explains that messages of one size take different times.

Message by message, from a join: the time of a message is the sum of its stages and of the rest, so
its variance is the sum of their covariances with it, and each has a share, cov(part, time) /
var(time). The shares sum to 1; one is negative if a part is shorter in the slower messages.

In a ping-pong, messages of one size alternate between two nodes: the k-th there and the k-th back
are a round trip, which lasts until the next message there. Other messages (READ, atomics) are a
round trip with their answer.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import polars as pl

from rocelab import stage_table

FEWEST = 30
"""Round trips; fewer tell nothing of a variance."""
SLOWEST = 0.01
"""Share of the slowest round trips to leave out: one of them can be all of the variance."""
REST = "rest"
_SAME = 0.9
"""Correlation from which on two lists of times are of the same messages, if no other place in the
list correlates better. On emulated nodes it was 0.9936 to 1 in 14 runs next to other work."""
_CLEAR = 0.7
"""Correlation that is enough if no other place has more than chance gives. On a slow host, where
most stamps were ms apart from the driver's, it was 0.88, and at most 0.25 elsewhere."""
_CHANCE = 0.5
"""Correlation that chance does not give."""
_SURE = 0.99
"""Correlation from which on no other place needs to be tried."""
_DISTURBED = 0.05
"""Share of the pairs of times that may differ: a process that loses its processor between its stamp
and the driver's shifts time from one to the next."""
_AFTER = 64
"""Most round trips of the same size after those that the benchmark timed, such as a farewell."""


@dataclass(frozen=True)
class Part:
    """A stage of all packets of a round trip, or the rest."""

    name: str
    """`tx copy`, `rx queue`, …, or `rest`."""
    share: float
    """Of the variance of the round trips."""
    mean: float
    """ns per round trip."""


@dataclass(frozen=True)
class Variation:
    """The round trips of messages of one size."""

    payload_bytes: int
    """Of a message on the wire: an MPI library adds its own."""
    round_trips: int
    """Number of round trips that the shares are of."""
    by: str
    """Whose times they are: the benchmark's name, or `driver`: from send to send by its stamps."""
    mean: float
    """ns per round trip."""
    deviation: float
    """Standard deviation, ns."""
    parts: tuple[Part, ...]
    """The largest share first."""


def variations(
    messages: pl.DataFrame, samples: Sequence[Sequence[float]] = (), benchmark: str = ""
) -> list[Variation]:
    """Return the variation of each size of which there are enough undisturbed round trips.

    `messages` is the table of `rocelab.correlate.messages`. `samples` are lists of the times that
    the benchmark stamped from one send to the next, ns, in order. One that agrees with successive
    stamps of the driver is used instead of them, and round trips that the benchmark did not time,
    such as a warm-up, are left out.
    """
    every = []
    sent = messages.filter(~pl.col("opcode_name").str.starts_with("UD_")).sort("first_frame")
    by_size = sent.with_columns(pl.Series("at_ns", _begins(sent), dtype=pl.Int64)).group_by(
        "payload_bytes", maintain_order=True
    )
    for (size,), some in sorted(by_size, key=lambda item: int(item[0][0] or 0)):
        trips = _round_trips(some)
        if len(trips) < FEWEST:
            continue
        by, times = "driver", [_between(*pair) for pair in pairwise(trips)]
        for stamped in samples:
            at = _place(times, stamped)
            if at is not None:
                by, times, trips = benchmark, list(stamped), trips[at:]
                break
        # the last has no next
        trips = [trip | {"time": time} for trip, time in zip(trips, times, strict=False)]
        one = _variation(int(size or 0), by, trips)
        if one is not None:
            every.append(one)
    return every


_Trip = dict[str, Any]
"""`at`, when it began, if that is known; whether it is `clean`; and its stages by name."""


def _begins(messages: pl.DataFrame) -> list[int | None]:
    """When each message began, since the first of its queue pair; None if a stamp is missing."""
    clocks: dict[tuple[Any, Any], int | None] = {}
    begins = []
    for requester, qp, period in messages.select("requester", "dqpn", "period_ns").iter_rows():
        now = clocks.get((requester, qp), 0)
        begins.append(now)
        clocks[requester, qp] = None if now is None or period is None else now + int(period)
    return begins


def _round_trips(messages: pl.DataFrame) -> list[_Trip]:
    """Pair the messages of one size; none if they do not alternate."""
    rows = messages.to_dicts()
    nodes = list(dict.fromkeys((row["requester"], row["dqpn"]) for row in rows))
    sides = [[row for row in rows if (row["requester"], row["dqpn"]) == node] for node in nodes]
    if len(sides) == 1:
        return [_trip(row, None) for row in sides[0] if row["answered"]]
    if len(sides) != 2 or len(sides[0]) != len(sides[1]):
        return []
    there, back = sides
    frames = [row["first_frame"] for pair in zip(there, back, strict=True) for row in pair]
    if frames != sorted(frames):
        return []
    return [_trip(*pair) for pair in zip(there, back, strict=True)]


def _trip(there: dict[str, Any], back: dict[str, Any] | None) -> _Trip:
    trip: _Trip = {"at": there["at_ns"], "clean": there["clean"]}
    ends: list[tuple[dict[str, Any], str]] = [(there, "")]
    if back is None:
        ends.append((there, "answer_"))
    else:
        ends.append((back, ""))
        trip["clean"] = there["clean"] and back["clean"]
    for way, stages in stage_table.BY_DIRECTION.items():
        for stage in stages:
            if stage in stage_table.ANSWERING:
                continue  # the answer is a packet with stages of its own
            trip[f"{way} {stage}"] = sum(
                row[f"{prefix}{way}_{stage}_ns"] or 0 for row, prefix in ends
            )
    return trip


def _between(one: _Trip, following: _Trip) -> float | None:
    """The time from one send to the next of the same size."""
    known = one["at"] is not None and following["at"] is not None
    return float(following["at"] - one["at"]) if known else None


def _place(ours: Sequence[float | None], samples: Sequence[float]) -> int | None:
    """Return where the round trips that the driver stamped with `ours` are those of `samples`.

    That is where they correlate best, the last such place; None if they do not anywhere.
    """
    last = len(ours) - len(samples)
    found: dict[int, float] = {}
    for at in range(last, max(last - _AFTER, 0) - 1, -1):
        found[at] = _correlation(ours[at : at + len(samples)], samples)
        if found[at] >= _SURE:
            return at
    if not found:
        return None
    best, *others = sorted(found, key=lambda at: -found[at])
    is_unlike = bool(others) and all(found[at] < _CHANCE for at in others)
    is_clear = is_unlike and found[best] > _CLEAR
    return best if is_clear or found[best] > _SAME else None


def _correlation(ours: Sequence[float | None], samples: Sequence[float]) -> float:
    """Correlate two lists of times without the most different pairs; 0 where that has no sense."""
    pairs = [(mine, one) for mine, one in zip(ours, samples, strict=True) if mine is not None]
    pairs.sort(key=lambda pair: abs(pair[0] - pair[1]))
    pairs = pairs[: len(pairs) - int(_DISTURBED * len(pairs))]
    try:
        return statistics.correlation(*zip(*pairs, strict=True)) if pairs else 0
    except statistics.StatisticsError:
        return 0


def _variation(size: int, by: str, trips: Sequence[_Trip]) -> Variation | None:
    whole = [trip for trip in trips if trip["clean"] and trip["time"] is not None]
    whole.sort(key=lambda trip: float(trip["time"]))
    whole = whole[: len(whole) - int(SLOWEST * len(whole))]
    if len(whole) < FEWEST:
        return None
    times = [float(trip["time"]) for trip in whole]
    names = [name for name in whole[0] if name not in {"at", "time", "clean"}]
    columns = {name: [float(trip[name]) for trip in whole] for name in names}
    columns[REST] = [
        time - sum(some)
        for time, some in zip(times, zip(*columns.values(), strict=True), strict=True)
    ]
    variance = statistics.variance(times)
    if variance <= 0:
        return None
    parts = tuple(_parts(columns, times, variance))
    return Variation(
        payload_bytes=size,
        round_trips=len(times),
        by=by,
        mean=statistics.fmean(times),
        deviation=variance**0.5,
        parts=parts,
    )


def _parts(
    columns: dict[str, list[float]], times: Sequence[float], variance: float
) -> Iterator[Part]:
    shares = {
        name: statistics.covariance(column, times) / variance for name, column in columns.items()
    }
    for name in sorted(shares, key=lambda name: -shares[name]):
        yield Part(name, shares[name], statistics.fmean(columns[name]))
