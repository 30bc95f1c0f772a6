# SPDX-License-Identifier: GPL-2.0-or-later
"""What the cost of one message grows with."""

from __future__ import annotations

import polars as pl
import pytest

from cost_by_size_results import BASE, BYTE, MTU, PACKET, results
from rocelab.correlate import cost_by_size


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
