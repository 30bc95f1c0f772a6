# SPDX-License-Identifier: GPL-2.0-or-later
"""What the cost of one message grows with."""

from __future__ import annotations

import polars as pl
import pytest

from rocelab import metrics
from rocelab.correlate import cost_by_size

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


def test_bytes_and_packets_are_told_apart() -> None:
    (line,) = cost_by_size.lines(results([64, 1024, 4096, 2 * MTU, 4 * MTU, 8 * MTU]))
    assert line.one
    assert line.several
    assert (line.one.base.value, line.one.factor.value) == pytest.approx((BASE, BYTE))
    assert line.one.r_squared == pytest.approx(1)
    assert line.several.factor.value == pytest.approx(BYTE + PACKET / MTU)
    assert line.packet == pytest.approx(PACKET)


def test_a_line_takes_three_sizes() -> None:
    assert cost_by_size.lines(results([64, 4096, 2 * MTU, 4 * MTU])) == []
    (line,) = cost_by_size.lines(results([64, 4096, 2 * MTU, 4 * MTU, 8 * MTU]))
    assert line.one is None
    assert line.packet is None


def test_each_transport_has_its_line() -> None:
    sizes = [64, 1024, 4096]
    both = pl.concat([results(sizes, "rxe-v1"), results(sizes)])
    assert [line.transport for line in cost_by_size.lines(both)] == ["rxe-v1", "rxe-v2"]
