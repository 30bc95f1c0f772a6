# SPDX-License-Identifier: GPL-2.0-or-later
"""The connections of an analysis as flat rows, one per direction (docs/formats/analysis.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_ENDS = ("a", "b")
_COUNTS = (
    *("packets", "wire_bytes", "payload_bytes", "goodput_bytes", "messages", "retransmitted"),
    *("duplicates", "gaps", "missing", "missed_by_capture", "out_of_order", "acks"),
)
_LATENCIES = ("p50", "p99", "max")

COLUMNS = (
    *("file", "connection", "service", "net", "vlans", "tunnel", "paired_by", "certainty"),
    *("a_address", "a_qpn", "b_address", "b_qpn", "from"),
    *_COUNTS,
    *("naks", "rnr", "ce", "cnp", "max_outstanding", "path_mtu", "latency_count"),
    *(f"latency_{name}_ns" for name in _LATENCIES),
    *("first_ns", "last_ns"),
)
"""Names of the columns; units are in the names."""
TEXTS = frozenset(
    {
        *("file", "service", "net", "vlans", "tunnel", "paired_by", "certainty"),
        *("a_address", "b_address", "from"),
    }
)
"""Columns of text; the others are whole numbers."""

Value = str | int | None


def rows(result: dict[str, Any]) -> Iterator[dict[str, Value]]:
    """A row for each direction of each connection, with all of `COLUMNS`.

    `result` is what `--json` prints. `file` has all files of the capture, as they were given.
    """
    files = " ".join(result["input"]["files"])
    for connection in result["connections"]:
        head: dict[str, Value] = {
            "file": files,
            "connection": connection["id"],
            "vlans": " ".join(map(str, connection["vlans"])) or None,
            "tunnel": _tunnel(connection["tunnel"]),
        }
        head |= {name: connection[name] for name in ("service", "net", "paired_by", "certainty")}
        head |= {
            f"{end}_{field}": connection[end][field]
            for end in _ENDS
            for field in ("address", "qpn")
        }
        head |= {name: connection[name] for name in ("first_ns", "last_ns")}
        for way in connection["directions"]:
            latency = way["latency_ns"]
            own: dict[str, Value] = {name: way[name] for name in ("from", *_COUNTS)}
            own |= {name: way[name] for name in ("rnr", "ce", "cnp", "max_outstanding", "path_mtu")}
            own |= {"naks": sum(way["naks"].values()), "latency_count": latency["count"]}
            own |= {f"latency_{name}_ns": latency[name] for name in _LATENCIES}
            row = head | own
            yield {name: row[name] for name in COLUMNS}


def _tunnel(tunnel: dict[str, Any] | None) -> str | None:
    return f"{tunnel['kind']} {tunnel['id']}" if tunnel else None
