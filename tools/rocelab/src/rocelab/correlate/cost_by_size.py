# SPDX-License-Identifier: GPL-2.0-or-later
"""What the cost of one message grows with: a base, its bytes, and each further packet.

Messages of one packet and of several are fitted apart (`rocelab.correlate.fit`). Below the path MTU
a byte costs what is done to bytes: copies, checksums. Above it also its part of a packet. So a
further packet costs the difference of the two, times the bytes that a packet carries.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from rocelab import metrics
from rocelab.correlate.fit import Fit, Point, Regime, fits

_SEVERAL = 1.5
"""Packets a message, from which on it has several."""
_BYTES = "bytes"


@dataclass(frozen=True)
class CostBySize:
    """The lines of one benchmark over one transport, in the unit of `cost.message`."""

    tool: str
    test: str
    transport: str
    one: Fit | None
    """Of messages of one packet."""
    several: Fit | None
    carried: float
    """Bytes that a packet of a message of several carries; 0 if there is none."""
    points: tuple[Point, ...]
    """The cost at each size in each repetition."""

    @property
    def packet(self) -> float | None:
        """What a further packet costs, without its bytes."""
        if self.one is None or self.several is None:
            return None
        return (self.several.factor.value - self.one.factor.value) * self.carried


def lines(table: pl.DataFrame) -> list[CostBySize]:
    """Fit the cost of one message in results.parquet, where enough sizes were measured."""
    every = []
    keys = ["tool", "test", "transport"]
    costs = table.filter(metric=metrics.MESSAGE_COST, kind=metrics.MARGINAL)
    for (tool, test, transport), some in costs.group_by(keys, maintain_order=True):
        here = table.filter(tool=tool, test=test, transport=transport)
        packets = _packets(here)
        points = []
        summed = (
            some.group_by("size", "repetition")
            .agg(pl.col("value").sum())
            .sort("size", "repetition")
        )
        for size, repetition, cost in summed.iter_rows():
            if size not in packets or cost <= 0:
                continue
            regime = Regime.SEVERAL if packets[size] > _SEVERAL else Regime.ONE
            points.append(Point(size, repetition, cost, 0.0, regime, {_BYTES: size}))
        by_regime = {fit.regime: fit for fit in fits(points)}
        if by_regime:
            carried = max(
                (size / packets[size] for size in packets if packets[size] > _SEVERAL), default=0.0
            )
            one, several = by_regime.get(Regime.ONE), by_regime.get(Regime.SEVERAL)
            every.append(
                CostBySize(
                    *(str(tool), str(test), str(transport)), one, several, carried, tuple(points)
                )
            )
    return every


def _packets(rows: pl.DataFrame) -> dict[int, float]:
    """Packets a message, by size, from the frames that carry its bytes."""
    frames, payload = (
        dict(rows.filter(metric=metric).group_by("size").agg(pl.col("value").sum()).iter_rows())
        for metric in (metrics.DATA_FRAMES, metrics.PAYLOAD_BYTES)
    )
    return {
        size: frames[size] * size / payload[size] for size in frames if size and payload.get(size)
    }
