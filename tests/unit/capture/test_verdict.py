# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict on the samples: the right cause first, its cost, and nothing that is not so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from corpus import CAPTURES, SAMPLES
from rocelab.capture import analyze

FIRST = {
    "fault-corrupt.pcap": ("corruption", "10.0.0.1"),
    "fault-drop-before.pcap": ("loss", "10.0.0.1"),
    "fault-drop-behind.pcap": ("loss", "10.0.0.2"),
    "fault-reorder.pcap": ("reordering", "10.0.0.2"),
    "fault-rnr.pcap": ("receiver_not_ready", "10.0.0.2"),
    "case-adaptive-routing.pcap": ("reordering", None),
    "case-read-response-lost-before.pcap": ("loss", "10.0.0.2"),
    "case-read-response-lost-behind.pcap": ("loss", "10.0.0.1"),
    "case-sampled.pcap": ("sampled", None),
    "cm-rejected.pcap": ("rejected", None),
    "icrc-dscp.pcap": ("wrong_icrc", None),
    "pfc.pcap": ("pause", "02:00:00:00:00:01"),
    "retry-exceeded.pcap": ("gave_up", "10.0.0.2"),
    "timeout.pcap": ("loss", "10.0.0.2"),
}
NOTHING_WRONG = (
    *("case-mirrored.pcap", "case-tunnels.pcap", "case-unsorted.pcap", "case-vlan-overlap.pcap"),
    *("rc-v1.pcap", "rc-v2-ipv4.pcap", "rc-vlan.pcap", "xrc.pcap", "testbed-write-lat-64.pcap"),
)


def verdict(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = analyze([str(CAPTURES / name)]).result["verdict"]
    return rows


@pytest.mark.parametrize("name", FIRST)
def test_the_cause_comes_first(name: str) -> None:
    first = verdict(name)[0]
    assert (first["cause"], first["where"]) == FIRST[name]
    assert first["kind"] != "limit"
    assert first["advice"]


@pytest.mark.parametrize("name", NOTHING_WRONG)
def test_nothing_is_wrong(name: str) -> None:
    lines = verdict(name)
    assert {line["kind"] for line in lines} == {"limit"}
    assert lines[0]["what"].startswith("Nothing is wrong")


def test_what_a_wait_costs() -> None:
    """All but 17 of 674 µs are one wait for a receiver that had posted nothing."""
    first = verdict("fault-rnr.pcap")[0]
    assert (first["lost_ns"], first["of_ns"]) == (657_400, 674_000)
    assert (first["messages_delayed"], first["messages"]) == (1, 11)
    assert first["certainty"] == "certain"
    assert first["p99_ns"] > 100 * first["p99_without_ns"]
    assert first["filter"] == "frame.number in {30, 31}"


@pytest.mark.parametrize("name", SAMPLES)
def test_no_more_is_lost_than_there_is(name: str) -> None:
    lines = json.loads((CAPTURES / "golden" / f"{name}.json").read_text())["verdict"]
    assert len(lines) <= 5
    for line in lines:
        assert 0 <= line["lost_ns"] <= max(line["of_ns"], 0) or not line["of_ns"]
        assert line["messages_delayed"] <= line["messages"]
        ranks = [row["lost_ns"] for row in lines if row["kind"] == "fault"]
        assert ranks == sorted(ranks, reverse=True)
