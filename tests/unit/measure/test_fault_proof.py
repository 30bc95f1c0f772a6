# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults that the plan asked for explain exactly the packets that they took or added."""

from __future__ import annotations

import pytest

from rocelab.measure.counters import Counters
from rocelab.measure.transport_proof import prove
from rocelab.plans.benchmarks.tool import Measurement
from rocelab.plans.catalog import TRANSPORTS
from rocelab.record.faults_document import Altered
from rocelab.record.frames import Frames

SENT = {"n1": 100, "n2": 10}


def proven(altered: Altered, *, received: int, on_wire: int) -> bool:
    got = {"n1": 10, "n2": received - 10}
    moved = {node: Counters({"sent_pkts": SENT[node], "rcvd_pkts": got[node]}, {}) for node in SENT}
    frames = Frames(frames=on_wire, roce_v2=on_wire, roce_data=100, roce_payload_bytes=1000)
    measured = Measurement((), 1000, 10)
    return prove(TRANSPORTS["rxe-v2"], moved, frames, measured, altered=altered).ok


@pytest.mark.parametrize(
    ("altered", "received", "on_wire"),
    [
        (Altered(), 110, 110),
        (Altered(received=-3), 107, 110),
        (Altered(received=-1, on_wire=-1), 109, 109),
        (Altered(received=2, on_wire=6), 112, 116),
    ],
)
def test_what_faults_took_is_neither_more_nor_less(
    altered: Altered, received: int, on_wire: int
) -> None:
    assert proven(altered, received=received, on_wire=on_wire)
    assert not proven(altered, received=received + 1, on_wire=on_wire)
    assert not proven(altered, received=received - 1, on_wire=on_wire)
    assert not proven(altered, received=received, on_wire=on_wire - 1)


@pytest.mark.parametrize("spoilt", [0, 2])
def test_what_came_after_the_servers_end_was_dropped_by_its_driver(spoilt: int) -> None:
    """Those drops explain what was not received, but for the connection manager's packets."""

    def holds(received: int, on_wire: int = 110, managed: int | None = 0) -> bool:
        moved = {
            "n1": Counters({"sent_pkts": 100, "rcvd_pkts": 10}, {}),
            "n2": Counters(
                {"sent_pkts": 10, "rcvd_pkts": received - 10, "rcvd_drops": 4 + spoilt}, {}
            ),
        }
        frames = Frames(frames=on_wire, roce_v2=on_wire, roce_data=100, roce_payload_bytes=1000)
        altered = Altered(received=-spoilt, spoilt=spoilt)
        over, nothing = TRANSPORTS["rxe-v2"], Measurement((), 0)
        return prove(over, moved, frames, nothing, altered=altered, managed=managed).ok

    right = 106 - spoilt
    assert holds(right)
    assert not holds(right + 1)
    assert not holds(right - 1)
    assert not holds(right, managed=None)
    assert not holds(right, 111)
    assert holds(right - 3, 113, managed=3)
    assert not holds(right - 4, 113, managed=3)
    assert not holds(right - 3, 114, managed=3)
