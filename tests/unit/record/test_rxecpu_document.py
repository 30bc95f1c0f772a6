# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time from rxecpu's documents: sums, divisors, hostile documents."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from rocelab.errors import CellError
from rocelab.record import rxecpu_document
from rocelab.record.rxecpu_document import Traffic

DOCUMENT: dict[str, Any] = {
    "schema": "rocelab.rxecpu/1",
    "duration_ns": 1_000,
    "cpus": 2,
    "events": 12,
    "lost": 0,
    "late": 1,
    "rows": [
        {"cpu": 0, "context": "idle", "owner": "none", "ns": 400},
        {"cpu": 1, "context": "idle", "owner": "none", "ns": 100},
        {"cpu": 0, "context": "user", "owner": "benchmark", "ns": 600},
        {"cpu": 1, "context": "softirq.net_rx", "owner": "rxe", "ns": 300},
        {"cpu": 1, "context": "softirq.tasklet", "owner": "rxe", "ns": 200},
        {"cpu": 1, "context": "syscall", "owner": "network", "ns": 250},
        {"cpu": 1, "context": "kthread", "owner": "other", "ns": 150},
    ],
}


def values(traffic: Traffic) -> dict[tuple[str, str], float]:
    return {(v.metric, v.kind): v.value for v in rxecpu_document.parse(DOCUMENT).values(traffic)}


def test_values() -> None:
    """CPUs and softirqs are summed, also by kind; no time is lost or counted twice."""
    costs = values(Traffic(packets=50, messages=10, megabytes=0.5))
    assert costs["cpu.softirq.rxe", "time"] == 500
    assert costs["cpu.softirq.net_rx.rxe", "time"] == 300
    assert costs["cpu.softirq.rxe", "per_message"] == 50
    assert costs["cpu.softirq.rxe", "per_packet"] == 10
    assert costs["cpu.idle", "time"] == 500
    assert costs["cpu.wall", "time"] == 1000
    assert costs["cpu.busy_cores", "cores"] == 1.5
    assert costs["cpu.utilization", "per_core"] == 0.75
    # `other` is not part of the transport; kernel time excludes user mode
    assert costs["cpu.per_packet", "communication"] == 1350 / 50
    assert costs["cpu.per_packet", "kernel"] == 750 / 50
    assert costs["cpu.per_message", "kernel"] == 75
    assert costs["cpu.per_mb", "communication"] == 2700
    assert costs["cpu.events.late", "counter"] == 1
    parts = [v for (name, kind), v in costs.items() if kind == "time" and name.count(".") == 2]
    assert sum(parts) + costs["cpu.idle", "time"] == 2000


def test_nothing_is_divided_by_nothing() -> None:
    """Without packets there is no value per packet."""
    costs = values(Traffic(packets=0, messages=0, megabytes=0))
    assert not [name for name, _ in costs if name.startswith("cpu.per_")]
    assert not [name for name, kind in costs if kind in ("per_message", "per_packet")]


@pytest.mark.parametrize(
    "garble",
    [
        lambda d: d.update(schema="rocelab.rxecpu/9"),
        lambda d: d.pop("rows"),
        lambda d: d.update(cpus=0),
        lambda d: d.update(duration_ns=-1),
        lambda d: d.update(duration_ns=10**40),
        lambda d: d["rows"][2].update(context="../user"),
        lambda d: d["rows"][2].update(context="softirq.<b>"),
        lambda d: d["rows"][2].update(owner="someone"),
        lambda d: d["rows"][2].update(ns=-5),
        lambda d: d["rows"][2].update(ns=1.5),
        lambda d: d["rows"][2].update(ns=True),
        lambda d: d["rows"].append("row"),
        # two per cent of the time are missing
        lambda d: d["rows"][2].update(ns=560),
        lambda d: d["rows"][2].update(ns=640),
    ],
)
def test_hostile_documents(garble: Callable[[dict[str, Any]], object]) -> None:
    """Each is a CellError, also a document whose parts do not sum to wall time times CPUs."""
    document = copy.deepcopy(DOCUMENT)
    garble(document)
    with pytest.raises(CellError):
        rxecpu_document.parse(document)


def test_within_one_per_cent() -> None:
    """One per cent of the time may be missing."""
    document = copy.deepcopy(DOCUMENT)
    document["rows"][2]["ns"] = 585
    assert rxecpu_document.parse(document).busy["user", "benchmark"] == 585
