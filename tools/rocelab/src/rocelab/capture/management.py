# SPDX-License-Identifier: GPL-2.0-or-later
"""How connections were set up and ended by the CM, in words, as rows of a table."""

from __future__ import annotations

from typing import Any

COLUMNS = ("from, to", "service", "state", "REQs", "QPs", "MTU", "retries", "READs")
"""Columns of a table of exchanges."""
RNR_WITHOUT_END = 7


def rows(result: dict[str, Any], most: int) -> list[tuple[str, ...]]:
    """A row below `COLUMNS` for each of the first exchanges; `result` is what `--json` prints."""
    return [_row(one) for one in result["cm"][:most]]


def count_left_out(result: dict[str, Any], most: int) -> int:
    """How many exchanges `rows` leaves out."""
    return max(len(result["cm"]) - most, 0) + int(result["cm_unreported"])


def reasons(result: dict[str, Any], most: int) -> list[str]:
    """A sentence for each way in which connections were rejected, the most frequent first."""
    counts: dict[str, int] = {}
    for one in result["cm"]:
        if reject := one["reject"]:
            text = f"{reject['text']} (reason {reject['reason']}), says the {reject['by']}"
            counts[text] = counts.get(text, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    return [f"{count} rejected: {text}" for text, count in ranked[:most]]


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    request, reply = one["request"], one["reply"]
    service = f"{int(request['service_id'], 16):#x}"
    if request["port"] is not None:
        service = f"{request['port_space']} {request['port']}"
    rnr = request["rnr_retries"]
    retries = f"{request['retries']}, RNR {'∞' if rnr == RNR_WITHOUT_END else rnr}"
    reads = f"{request['responder_resources']}/{request['initiator_depth']}"
    if reply:
        reads += f", {reply['responder_resources']}/{reply['initiator_depth']}"
    return (
        *(f"{one['from']}, {one['to']}", service, one["state"], str(one["requests"])),
        f"{request['qpn']}, {reply['qpn'] if reply else '?'}",
        *(str(request["path_mtu"] or "-"), retries, reads),
    )
