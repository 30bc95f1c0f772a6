# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults of the data link that a plan asks for, exact to the packet."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    """What happens to the chosen packet."""

    DROP = "drop"
    DUPLICATE = "duplicate"
    """A second copy follows at once."""
    CORRUPT = "corrupt"
    """One bit changes; the UDP checksum is removed, so that only the ICRC can tell."""
    DELAY = "delay"
    REORDER = "reorder"
    """Later packets of its direction overtake it."""
    MARK_CE = "mark_ce"
    """IP says that congestion was experienced."""
    CNP = "cnp"
    """The client gets congestion notifications; the packet passes."""
    RNR_NAK = "rnr_nak"
    """The client gets an RNR NAK instead of an answer, as if the server had no receive buffer."""
    FLAP = "flap"
    """The link is down for a while, in both directions and for everything."""
    VANISH = "vanish"
    """From the packet on, nothing reaches or leaves the server, as if its machine lost power."""
    KILL = "kill"
    """The server's process is killed before its machine gets the packet."""
    STOP = "stop"
    """The server's process is stopped before its machine gets the packet, and continues later."""


TIMED = (Action.DELAY, Action.FLAP, Action.STOP)
"""Actions that last for `duration_us`."""
COUNTED = (Action.REORDER, Action.CNP)
"""Actions of `count` packets."""
ENDING = (Action.VANISH, Action.KILL)
"""Actions after which the client's connection must end with an error: that is what is measured."""
OF_PROCESS = (Action.KILL, Action.STOP)
"""Actions on the server's process. The link waits until they are done."""
OF_PACKETS = (
    *(Action.DROP, Action.DUPLICATE, Action.CORRUPT),
    *(Action.DELAY, Action.REORDER, Action.MARK_CE),
)
"""Actions on a packet itself, which may happen throughout a step."""
TO_SERVER, TO_CLIENT = "to_server", "to_client"
LAST = -1
"""As `packet`: the last one of its message."""


@dataclass(frozen=True)
class FaultPlan:
    """A fault: which packet of each step it meets, and what happens to it."""

    name: str
    action: Action
    direction: str
    """`to_server` (requests) or `to_client` (their answers)."""
    message: int
    """Number of the client's message, from 1; an answer belongs to the message that it answers."""
    packet: int
    """Position in the message, from 0, by PSN; `LAST` for the last one."""
    times: int
    """How often, if the packet is sent again; or in how many messages, with `every`."""
    every: int
    """After `message`, each so many messages again; 0: only that one."""
    at_us: int
    """Instead of `message` and `packet`: it meets the first packet of its direction so long after
    the client's first request, on the analyst's clock; 0: by place."""
    every_us: int
    """After `at_us`, again after each such time, `times` in all; 0: with the next packets."""
    bit: int
    """The bit to change, from the first bit of the BTH."""
    duration_us: int
    count: int
    rnr_timer: int
    """Code of the time after which the client may send again (IBA volume 1, table 45)."""
    every_packets: int = 0
    """Instead of `message` and `packet`: it meets every n-th packet of its direction, of those
    that no earlier fault met, throughout the step; 0: by place or time."""
