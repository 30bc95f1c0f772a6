# SPDX-License-Identifier: GPL-2.0-or-later
"""Put the machines' clocks on the capture's: what two drivers and a capture say of their offsets.

As NTP does it (RFC 5905, section 8): of all packets that a node sent, and of all that it received,
the fastest ones are taken, and both are supposed to have taken equally long. The error is at most
half of the sum of these two times.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from rocelab import stage_table


@dataclass(frozen=True)
class Offset:
    """What to add to a node's clock to have the capture's, ns, and how wrong it may be."""

    ns: int
    error_ns: int | None
    """None if the node's packets went in one direction only: the offset is then off by however long
    they took."""


def tx_end() -> pl.Expr:
    """When a sent packet's last stage ended, on its node's clock."""
    return pl.col("tx_ns") + pl.sum_horizontal(
        pl.col(f"tx_{stage}_ns").fill_null(0).cast(pl.Int64) for stage in stage_table.IN_TIME["tx"]
    )


def offsets(packets: pl.DataFrame, *, one_clock: bool) -> dict[str, Offset]:
    """Return each node's offset; `packets` is `Joined.packets`. A node without frames has none."""
    nodes = {name for way in ("tx", "rx") for name in packets[f"{way}_node"].drop_nulls().unique()}
    if one_clock:
        return {name: Offset(0, 0) for name in sorted(nodes)}
    frames = packets.filter(pl.col("wire_ns").is_not_null())
    sent = _fastest(frames.filter(pl.col("sent") == "matched"), "tx", pl.col("wire_ns") - tx_end())
    received = _fastest(
        frames.filter(pl.col("received") == "matched"), "rx", pl.col("rx_ns") - pl.col("wire_ns")
    )
    offset_by_node = {}
    for name in sorted(nodes):
        there, back = sent.get(name), received.get(name)
        if there is not None and back is not None:
            # there = delay + offset, back = delay - offset
            offset_by_node[name] = Offset((there - back) // 2, abs(there + back) // 2)
        elif there is not None or back is not None:
            offset_by_node[name] = Offset(there if there is not None else -(back or 0), None)
    return offset_by_node


def _fastest(frames: pl.DataFrame, way: str, span: pl.Expr) -> dict[str, int]:
    """The smallest span of each node's packets."""
    least = (
        frames.filter(pl.col(f"{way}_node").is_not_null())
        .group_by(f"{way}_node")
        .agg(span.min().alias("least"))
        .drop_nulls()
    )
    return dict(least.iter_rows())
