# SPDX-License-Identifier: GPL-2.0-or-later
"""How long messages wait for their responses: percentiles, and their distribution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from rocelab import units
from rocelab.report import palette, time_charts
from rocelab.report.capture_page.wording import duration, ends
from rocelab.report.figure import Column, Figure, Panel, Section, Table

_SHARES = (0.5, 0.9, 0.99, 0.999)
_MAX_ROWS = 20
_COLUMNS = (
    Column("messages"),
    Column("count", numeric=True),
    *(Column(f"p{100 * share:g}", numeric=True) for share in _SHARES),
    Column("max", numeric=True),
)

Buckets = Sequence[tuple[int, int]]
"""Upper edges in ns, and how many are below each but not below the one before."""


def quantile(buckets: Buckets, share: float) -> int:
    """The edge below which `share` of the messages are."""
    total = sum(count for _, count in buckets)
    seen = 0
    for edge, count in buckets:
        seen += count
        if seen >= share * total:
            return edge
    return buckets[-1][0]


def section(result: dict[str, Any]) -> Section | None:
    """Return the section, or None if no message was answered."""
    ways = [
        (one, way)
        for one in result["connections"]
        for way in one["directions"]
        if way["latency_ns"]["count"]
    ]
    if not ways:
        return None
    sums: Counter[int] = Counter()
    for _, way in ways:
        for edge, count in way["latency_ns"]["buckets"]:
            sums[edge] += count
    merged = sorted(sums.items())
    greatest = max(way["latency_ns"]["max"] for _, way in ways)
    ranked = sorted(ways, key=lambda row: -row[1]["latency_ns"]["count"])[:_MAX_ROWS]
    rows = [_row("all", merged, greatest)]
    rows += [
        _row(
            " → ".join(ends(connection, way["from"])),
            way["latency_ns"]["buckets"],
            way["latency_ns"]["max"],
        )
        for connection, way in ranked
        if len(ways) > 1
    ]
    left = len(ways) - len(ranked)
    table = Table(
        "Percentiles, accurate to 1.6 %, of the directions with most messages"
        + (f". {units.integer(left)} more are left out" if left else ""),
        _COLUMNS,
        tuple(rows),
    )
    return Section("latency", "Message latency", figures=(_figure(merged),), tables=(table,))


def _row(name: str, buckets: Buckets, greatest: int) -> tuple[str, ...]:
    # a bucket's edge may be above the greatest value in it
    shares = (min(quantile(buckets, share), greatest) for share in _SHARES)
    count = sum(count for _, count in buckets)
    return (name, units.integer(count), *map(duration, shares), duration(greatest))


def _figure(merged: Buckets) -> Figure:
    total = sum(count for _, count in merged)
    factor, unit = units.scale("ns", [quantile(merged, 0.5)])
    edges = [max(edge, 1) / factor for edge, _ in merged]
    below = [100 * seen / total for seen in accumulate(count for _, count in merged)]
    low, high = edges[0] / 1.2, edges[-1] * 1.2
    chart = time_charts.lines(
        [low, *edges, high],
        [time_charts.Line("messages", palette.HEADERS.light, [0.0, *below, 100.0])],
        x_title=f"latency ({unit})",
        y_title="% of messages below",
        x_top=high,
        x_log=(low, high),
    )
    return Figure(
        slug="latency-distribution",
        title="Distribution of message latency",
        caption=(
            "From a request's last packet to the first response that answers it, at the capture "
            "point. Retransmitted messages are left out (Karn's rule).",
        ),
        panels=(
            Panel(
                "",
                chart,
                f"Half of the messages take less than {duration(quantile(merged, 0.5))}, 99 % less "
                f"than {duration(quantile(merged, 0.99))}.",
            ),
        ),
        legend=(),
        tables=(
            Table(
                "The distribution",
                (Column(f"up to ({unit})", numeric=True), Column("messages", numeric=True)),
                tuple(
                    (units.number(edge / factor), units.integer(count)) for edge, count in merged
                ),
            ),
        ),
        accelerator="",
        columns=1,
        scrolls=True,
    )
