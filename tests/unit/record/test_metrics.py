# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of metrics round-trip, and no name belongs to two families."""

from __future__ import annotations

from typing import Any

import pytest

from rocelab import metrics
from rocelab.metrics import (
    Account,
    Application,
    Capsule,
    Counter,
    Coverage,
    Joined,
    LifeSpan,
    LifeStage,
    Packets,
    Stage,
)

NAMES: dict[str, Any] = {
    "stage.tx.icrc.p99": Stage("tx", "icrc", "p99"),
    "encapsulation.mean": Capsule("encapsulation", "mean"),
    "decapsulation.typical": Capsule("decapsulation", "typical"),
    "packets.done": Packets("done"),
    "packets.rx.switched": Packets("rx", switched=True),
    "cpu.user.benchmark": Account("user", "benchmark"),
    "cpu.softirq.net_rx.rxe": Account("softirq.net_rx", "rxe"),
    "coverage.outside": Coverage("outside"),
    "join.frames": Joined(None, "frames"),
    "join.tx.record_lost": Joined("tx", "record_lost"),
    "life.answer_rx.gap": LifeStage("answer_rx", "gap"),
    "life.span.requester_side": LifeSpan("requester_side"),
    "application.hpl.rate": Application("hpl.rate"),
}
FAMILIES = (
    Stage, Capsule, Packets, Account, Coverage, Joined, LifeStage, LifeSpan, Application,
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_parsed_into_what_made_it(name: str) -> None:
    made = NAMES[name]
    assert made.name == name
    assert [parsed for family in FAMILIES if (parsed := family.parse(name))] == [made]


@pytest.mark.parametrize(
    "name",
    [
        *(metrics.LATENCY, metrics.PROBE_LOST, metrics.CPU_UTILIZATION, metrics.CPU_EVENTS_LOST),
        *(metrics.LIFE_OF, metrics.HEADER_BYTES, metrics.CpuPer("packet").name),
        *("", "stage.tx.icrc", "stage.up.icrc.mean", "stages.tx.icrc.mean", "bandwidth.mean"),
    ],
)
def test_other_names_are_of_no_family(name: str) -> None:
    assert not any(family.parse(name) for family in FAMILIES)


def test_counters_are_of_their_group() -> None:
    counter = Counter.parse("adapter.hw.tx_bytes", "adapter")
    assert counter == Counter("adapter", "hw.tx_bytes")
    assert (counter.name, counter.unit) == ("adapter.hw.tx_bytes", "bytes")
    assert Counter.parse("driver.sent_pkts", "adapter") is None
    assert Counter("driver", "sent_pkts").unit == "1"
