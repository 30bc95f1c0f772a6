# SPDX-License-Identifier: GPL-2.0-or-later
"""What can make a fault happen: a proxy between two virtual machines, elsewhere tc(8).

The proxy holds every frame and knows its message. tc counts packets where the server's machine gets
them; it makes none, and a rule of its cannot know PSNs, which a connection chooses when it begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rocelab.plans.catalog import Kind, Provider, Test
from rocelab.plans.fault import ENDING, OF_PROCESS, TO_CLIENT, Action, FaultPlan

_NEVER = {
    Action.REORDER: (
        "tc holds a packet back for a time, not until others have passed",
        "Use delay with a duration_us longer than a few packets take.",
    ),
    Action.DUPLICATE: (
        "a copy by tc takes another way in, and packets overtake it and the first one",
        "Leave it out, or use provider qemu.",
    ),
    Action.CNP: ("tc makes no packets", "Leave it out, or use provider qemu."),
    Action.RNR_NAK: (
        "tc makes no packets",
        "Stop the server: with a small rx_depth its own driver sends RNR NAKs.",
    ),
    Action.FLAP: (
        "no capture tells which packets tc took in a span of time",
        "Use drop with every_packets, or provider qemu.",
    ),
    Action.VANISH: ("no capture tells which packets tc took in a span of time", "Use kill."),
}


@dataclass(frozen=True)
class Refusal:
    """Why a provider cannot make a fault happen."""

    fault: str
    key: str
    why: str
    action: str


def refusal(
    faults: Iterable[FaultPlan], provider: Provider, nodes: int, switches: int | None
) -> Refusal | None:
    """Return why such a testbed cannot make one of the faults happen; None if it can."""
    for fault in faults:
        if nodes > 2:
            return Refusal(fault.name, "action", "faults need two nodes", "Set nodes = 2.")
        if provider == Provider.QEMU and switches:
            why = "a switch is between the two machines and the proxy"
            return Refusal(fault.name, "action", why, "Set switches = 0.")
        if provider != Provider.QEMU and (reason := _tc_refusal(fault)):
            return reason
    return None


def may_wait(test: Test, faults: Iterable[FaultPlan], provider: Provider) -> str:
    """Name a fault that might leave a test's client waiting for ever; empty: none.

    The proxy kills a server with a request on its way, whose loss the client notices. In a
    ping-pong the client may have none, and wait for the server's message.
    """
    if provider == Provider.QEMU or test.kind is not Kind.ONE_WAY_HALF_RTT:
        return ""
    return next((fault.name for fault in faults if fault.action in ENDING), "")


MAY_WAIT = (
    "the server may die while the client has nothing under way and waits for ever",
    "Use read_lat or a bandwidth test, or provider qemu.",
)
"""Why such a benchmark is refused, and what to do."""


def _tc_refusal(fault: FaultPlan) -> Refusal | None:
    if fault.action in _NEVER:
        return Refusal(fault.name, "action", *_NEVER[fault.action])
    if fault.direction == TO_CLIENT:
        return Refusal(
            *(fault.name, "direction", "tc takes answers before the client's capture sees them"),
            'Use "to_server", or provider qemu.',
        )
    if fault.action in OF_PROCESS:
        if fault.at_us and fault.times == 1:
            return None
        return Refusal(
            fault.name,
            *("times", "it happens once outside provider qemu", "Leave it out.")
            if fault.at_us
            else ("message", "tc does not know messages", "Use at_us, or provider qemu."),
        )
    if fault.every_packets:
        return None
    return Refusal(
        *(fault.name, "at_us" if fault.at_us else "message"),
        "tc counts packets: it knows no times" if fault.at_us else "tc does not know messages",
        "Use every_packets, or provider qemu.",
    )
