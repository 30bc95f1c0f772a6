# SPDX-License-Identifier: GPL-2.0-or-later
"""The faults of a step: have them happen, write down what they met, and how it was mended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rocelab.errors import CellError
from rocelab.measure.counters import Counters
from rocelab.measure.rig import Rig
from rocelab.plans.fault import FaultPlan
from rocelab.record import faults_document, layout
from rocelab.testbed.faults.link import FaultyLink
from rocelab.testbed.interface import CanFail

_COUNTERS = (
    *("duplicate_request", "out_of_seq_request", "rcvd_seq_err", "rcvd_rnr_err", "send_rnr_err"),
    *("completer_retry_err", "retry_exceeded_err", "retry_rnr_exceeded_err"),
)
"""Of rxe: what tells that something was lost or sent again."""


@contextmanager
def faulty(rig: Rig, faults: Sequence[FaultPlan]) -> Iterator[FaultyLink]:
    """Have faults happen meanwhile; without any, the link is left alone.

    Raises CellError when the testbed cannot, TestbedError when it fails to.
    """
    if not faults:
        yield FaultyLink(())
        return
    testbed = rig.testbed
    if not isinstance(testbed, CanFail):
        raise CellError(
            "this testbed's link cannot have faults",
            cause="faults happen on the link between two virtual machines",
            action='Use provider = "qemu" with two nodes.',
        )
    with testbed.faulty(faults) as link:
        yield link


def record(link: FaultyLink, step: Path, rig: Rig, moved: Mapping[str, Counters]) -> dict[str, Any]:
    """Write faults.json, and return what cell.json says of a step's faults: nothing without any."""
    if not link.faults:
        return {}
    from rocelab.correlate.recovery import recovery

    faults_document.write(step, link.events, link.passed, unlisted=link.unlisted)
    client = rig.nodes[0].link.ipv4
    found = recovery(step / layout.WIRE_CAPTURE, client, link.events)
    counted = {
        node: {name: counters.rxe[name] for name in _COUNTERS if counters.rxe.get(name)}
        for node, counters in moved.items()
    }
    never = [fault.name for fault in link.faults if fault.name not in link.met]
    return {"faults": {**asdict(found), "driver": counted, "never_met": never}}
