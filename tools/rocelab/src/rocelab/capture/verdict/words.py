# SPDX-License-Identifier: GPL-2.0-or-later
"""The words for each cause: what happened, and what to do next."""

from __future__ import annotations

from math import log2
from typing import Any

from rocelab import units
from rocelab.capture.verdict.connections import all_connections
from rocelab.capture.verdict.cost import Cost
from rocelab.capture.verdict.line import time

NAMES = {
    "loss": "loss",
    "corrupted": "corruption",
    "reordered": "reordering",
    "not_ready": "receiver_not_ready",
    "late": "late_answers",
    "needless": "needless_retransmission",
    "paused": "pause",
}
"""The names of causes in `--json`, by that of the core."""

COUNTERS = "ethtool -S IF | grep -iE 'drop|discard|pause|crc'"
_TIMER_UNIT_NS = 4096


def times(count: int) -> str:
    """How often, as `once`."""
    return {1: "once", 2: "twice"}.get(count, f"{units.integer(count)} times")


def of(cause: str, cost: Cost, result: dict[str, Any]) -> tuple[str, str]:
    """Return what happened, and what to do next."""
    match cause:
        case "loss":
            words = _loss(cost)
        case "corrupted":
            words = (
                f"Packets were damaged between {cost.where} and the capture point "
                f"({times(cost.count)}): their ICRC is wrong.",
                "Find what changes bytes there: a bad cable fails the FCS, so its frames are lost "
                f"before they are captured ({COUNTERS}).",
            )
        case "reordered":
            words = (
                f"Packets overtake each other on the way to {cost.where}, and it asks for them "
                f"again ({times(cost.count)}).",
                "Turn off packet spraying and adaptive routing for RoCE, or use adapters that take "
                "packets out of order.",
            )
        case "not_ready":
            words = _not_ready(cost, result)
        case "late":
            words = (
                f"{cost.where}, or the path to it, answers late ({times(cost.count)}): "
                f"the fastest answer takes {_fastest(cost)}.",
                f"Look at {cost.where} meanwhile (CPU load, interrupts, PCIe), and capture there "
                "to tell it from the path.",
            )
        case "paused":
            words = _pause(cost, result)
        case _:
            words = (
                f"{cost.where} sends again what the capture shows acknowledged "
                f"({times(cost.count)}): ACKs are lost between the capture point and it, or its "
                "ACK timeout is too short.",
                f"Compare {time(cost.least_ns['needless'])}, after which it sends again, with the "
                f"QP's timeout; then look for drops on the way to {cost.where}.",
            )
    return words


def _fastest(cost: Cost) -> str:
    known = [way["pace"]["fastest_ns"] for _, way in cost.ways if way["pace"]]
    return time(min((ns for ns in known if ns is not None), default=0))


def _loss(cost: Cost) -> tuple[str, str]:
    timeouts = cost.counts.get("timeout", 0)
    where = f"between the capture point and {cost.where}" if cost.where else "somewhere"
    what = f"Packets are lost {where} ({times(cost.count)})"
    if not cost.where:
        what = f"Packets are lost ({times(cost.count)}); the capture does not show where"
    advice = f"Look for drops there: {COUNTERS}; then PFC and ECN for this priority."
    if timeouts:
        least = cost.least_ns["timeout"]
        which = "all" if timeouts == cost.count else units.integer(timeouts)
        what += (
            f"; {which} only repaired by the ACK timeout, after {time(least)} or more "
            f"({_timeout(least)})"
        )
        if timeouts == cost.unsure == cost.count:
            what = what.replace("Packets are lost", "Requests or their answers are lost", 1)
            advice = f"Is {cost.where} alive, and its answer only late? {advice}"
        if 2 * cost.repairs["timeout"] > cost.ns:
            advice += " A shorter timeout of the QPs would cost less each time."
    return what + ".", advice


def _timeout(least_ns: int) -> str:
    """The setting that a timer betrays: it runs out after one to four times its value."""
    most = max(int(log2(max(least_ns / _TIMER_UNIT_NS, 1))), 1)
    return f"a QP timeout of {max(most - 2, 1)} to {most}"


def _not_ready(cost: Cost, result: dict[str, Any]) -> tuple[str, str]:
    numbers = {one["id"] for one, _ in cost.ways}
    timers = [
        way["rnr_timer_ns"][1]
        for one in all_connections(result)
        if one["id"] in numbers
        for way in one["directions"]
        if way["rnr_timer_ns"]
    ]
    wait = f" ({time(max(timers))} now)" if timers else ""
    return (
        f"{cost.where} had no receive buffer posted (RNR NAK, {times(cost.count)}), and the sender "
        "waited.",
        f"Post more receives on {cost.where}, and before they are needed; a shorter min_rnr_timer "
        f"there{wait} makes each wait shorter.",
    )


def _pause(cost: Cost, result: dict[str, Any]) -> tuple[str, str]:
    pauses = sorted(result["congestion"]["pauses"], key=lambda row: -row["quanta"])
    first = pauses[0]
    which = "the whole link" if first["class"] is None else f"class {first['class']}"
    return (
        f"Flow control paused the link: {first['source']} sent XOFF {times(first['xoff'])} for "
        f"{which}, and nothing was sent {times(cost.count)}.",
        f"Find what fills the buffers of {first['source']}: the slowest receiver behind it "
        "(ethtool -S IF | grep -i pause on each hop).",
    )
