# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of a benchmark whose message costs a base, its bytes and each further packet."""

from __future__ import annotations

import polars as pl

from rocelab import metrics

BASE, BYTE, PACKET, MTU = 20_000.0, 2.0, 5_000.0, 4096


def results(sizes: list[int], transport: str = "rxe-v2") -> pl.DataFrame:
    """Costs that are linear, half of them at each node, and ten messages' frames."""
    rows = []
    for size in sizes:
        packets = -(-size // MTU)
        cost = BASE + BYTE * size + PACKET * (packets - 1)
        rows += [
            (size, node, metric, kind, value)
            for node, metric, kind, value in (
                ("n1", metrics.MESSAGE_COST, metrics.MARGINAL, 0.4 * cost),
                ("n2", metrics.MESSAGE_COST, metrics.MARGINAL, 0.6 * cost),
                ("n1", metrics.MESSAGE_COST, metrics.START, 1e9),
                ("n1", metrics.DATA_FRAMES, "roce_v2", 10.0 * packets),
                ("n1", metrics.PAYLOAD_BYTES, "roce_v2", 10.0 * size),
            )
        ]
    frame = pl.DataFrame(rows, ["size", "node", "metric", "kind", "value"], orient="row")
    return frame.with_columns(
        tool=pl.lit("pingpong"),
        test=pl.lit("latency"),
        transport=pl.lit(transport),
        repetition=pl.lit(1),
    )
