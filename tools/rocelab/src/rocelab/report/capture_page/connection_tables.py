# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections, sorted by what one looks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rocelab import units
from rocelab.capture.picture import Link
from rocelab.report.capture_page.wording import duration, ends, network
from rocelab.report.figure import Column, Note, Section, Table

_MAX_ROWS = 40
_COLUMNS = (
    Column("from"),
    Column("to"),
    Column("network"),
    Column("bytes", numeric=True),
    Column("messages", numeric=True),
    Column("goodput bytes", numeric=True),
    Column("sent again", numeric=True),
    Column("lost", numeric=True),
    Column("NAK, RNR", numeric=True),
    Column("p50", numeric=True),
    Column("p99", numeric=True),
)

Row = tuple[dict[str, Any], dict[str, Any]]
"""A connection and one of its directions."""


def _again(way: dict[str, Any]) -> int:
    return int(way["retransmitted"] + way["retransmitted_requests"])


_ORDERS: tuple[tuple[str, Callable[[dict[str, Any]], int]], ...] = (
    ("bytes", lambda way: int(way["wire_bytes"])),
    ("retransmissions", _again),
    ("latency", lambda way: way["latency_ns"]["p99"] or 0),
)


def section(
    result: dict[str, Any], links: dict[tuple[int, str, int], Link], diagrams: dict[int, str]
) -> Section | None:
    """Return one table for each order; the first is open.

    `diagrams`: where the page draws a connection.
    """
    rows = [(one, way) for one in result["connections"] for way in one["directions"]]
    if not rows:
        return None
    anchors = {str(number): anchor for number, anchor in diagrams.items()}
    columns = (Column("id", numeric=True, links=anchors), *_COLUMNS)
    tables: list[Table] = []
    for name, worth in _ORDERS:
        some = [row for row in rows if worth(row[1]) > 0]
        if not some:
            continue
        ranked = sorted(some, key=lambda row: -worth(row[1]))[:_MAX_ROWS]
        left = len(some) - len(ranked)
        tables.append(
            Table(
                f"By {name}"
                + (f". {units.integer(left)} more directions are left out" if left else ""),
                columns,
                tuple(_cells(row, links) for row in ranked),
                folded=bool(tables),
            )
        )
    missing = result["connections_unreported"]
    notes = (Note(f"{units.plural(missing, 'connection')} beyond the limit of --max-connections."),)
    return Section(
        "connections",
        "Connections",
        notes=(
            Note(
                "A row is what one side sent. Latency is from a request's last packet to the first "
                "response. PCP and MAC addresses are those of the first packet. A number that "
                "leads on is a connection whose sequence diagram is on this page; another one's "
                "comes with --filter conn=N."
            ),
            *(notes if missing else ()),
        ),
        tables=tuple(tables),
    )


def _cells(row: Row, links: dict[tuple[int, str, int], Link]) -> tuple[str, ...]:
    connection, way = row
    sender, receiver = ends(connection, way["from"])
    sides = ("a", "b") if way["from"] == "a" else ("b", "a")
    key = (connection["id"], connection[sides[0]]["address"], connection[sides[1]]["qpn"])
    link = links.get(key, Link(None, None, None))
    parts = [network(connection)]
    parts += [] if link.pcp is None else [f"PCP {link.pcp}"]
    latency = way["latency_ns"]
    return (
        str(connection["id"]),
        sender + (f" ({link.source})" if link.source else ""),
        receiver + (f" ({link.destination})" if link.destination else ""),
        ", ".join(part for part in parts if part) or units.ABSENT,
        units.integer(way["wire_bytes"]),
        units.integer(way["messages"]),
        units.integer(way["goodput_bytes"]),
        units.integer(_again(way)),
        units.integer(way["missing"] - way["missed_by_capture"]),
        f"{units.integer(sum(way['naks'].values()))}, {units.integer(way['rnr'])}",
        duration(latency["p50"]),
        duration(latency["p99"]),
    )
