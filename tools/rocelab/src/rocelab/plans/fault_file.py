# SPDX-License-Identifier: GPL-2.0-or-later
"""Read a plan's `[testbed.faults]`."""

from __future__ import annotations

import re

from rocelab.plans.fault import (
    COUNTED,
    ENDING,
    LAST,
    OF_PACKETS,
    OF_PROCESS,
    TIMED,
    TO_CLIENT,
    TO_SERVER,
    Action,
    FaultPlan,
)
from rocelab.strict import Table, quote

_NAME = re.compile(r"[a-z0-9]{1,20}")
_MAX_FAULTS = 64
_MAX_MESSAGES = 1_000_000
_ONE_SECOND = 1_000_000
_LATEST_US = 3600 * _ONE_SECOND
_ONCE = {
    "why": "it is for faults of packets, and not with at_us",
    "action": "Remove it, or choose another action.",
}
_BTH_BITS = 8 * 12
_MAX_BITS = 8 * 4096
_BY_TIME = {"why": "a fault by time meets any packet", "action": "Remove it, or at_us."}
_BY_COUNT = {"why": "a fault by count meets packets to the end", "action": "Remove it."}
_MAX_PACKETS = 10_000
"""The most that tc counts (act_gact)."""
_BY_PLACE = {"why": "the fault does not begin at a time", "action": "Give at_us, too."}
_ANSWERED = (Action.CNP, Action.RNR_NAK)
_ONLY_REQUESTS = (*_ANSWERED, *ENDING, *OF_PROCESS)


def read(table: Table) -> tuple[FaultPlan, ...]:
    """Return the faults by name, in the plan's order. Raises UsageError."""
    names = table.keys()
    if len(names) > _MAX_FAULTS:
        table.fail(names[-1], f"is one more than {_MAX_FAULTS} faults")
    for name in names:
        if not _NAME.fullmatch(name):
            table.fail(quote(name), "cannot name a fault", action="Use up to 20 of a-z and 0-9.")
    faults = tuple(_fault(name, table.table(name)) for name in names)
    table.done()
    return faults


def _fault(name: str, table: Table) -> FaultPlan:
    action = Action(table.choice("action", tuple(map(str, Action))))
    direction = table.choice("direction", (TO_SERVER, TO_CLIENT), default=TO_SERVER)
    if action in _ONLY_REQUESTS and direction != TO_SERVER:
        table.fail("direction", f"{action} meets a request", action='Use "to_server".')
    at_us = table.integer("at_us", default=0, low=0, high=_LATEST_US)
    counted = action in OF_PACKETS and not at_us
    every_packets = _of(table, "every_packets", counted, 0, 0, _MAX_PACKETS, **_ONCE)
    if every_packets == 1:
        table.fail("every_packets", "every packet is met", action="Use 2 or more.")
    by_place = at_us == 0 and every_packets == 0
    why = _BY_COUNT if every_packets else _BY_TIME
    message = _of(table, "message", by_place, 2, 1, _MAX_MESSAGES, **why)
    if action in _ANSWERED and by_place and message < 2:
        table.fail(
            "message",
            f"{action} needs the client's queue pair number, which the first answer tells",
            action="Use 2 or more.",
        )
    most = 1 if action in ENDING else 1000
    fault = FaultPlan(
        name=name,
        action=action,
        direction=direction,
        message=message,
        packet=_of(table, "packet", by_place, 0, LAST, (1 << 23) - 1, **why),
        times=_of(table, "times", not every_packets, 1, 1, most, **why),
        every=_of(table, "every", by_place, 0, 0, _MAX_MESSAGES, **why),
        at_us=at_us,
        every_us=_of(table, "every_us", at_us > 0, 0, 0, _LATEST_US, **_BY_PLACE),
        bit=_of(table, "bit", action == Action.CORRUPT, _BTH_BITS, 0, _MAX_BITS - 1),
        duration_us=_of(table, "duration_us", action in TIMED, 1000, 1, 10 * _ONE_SECOND),
        count=_of(table, "count", action in COUNTED, 1, 1, 1000),
        rnr_timer=_of(table, "rnr_timer", action is Action.RNR_NAK, 14, 0, 31),
        every_packets=every_packets,
    )
    table.done()
    return fault


def _of(
    table: Table,
    key: str,
    used: bool,
    default: int,
    low: int,
    high: int,
    *,
    why: str = "the action does not use it",
    action: str = "Remove it.",
) -> int:
    """Return a number that only some faults use. run.json holds it for all of them, as 0."""
    if used:
        return table.integer(key, default=default, low=low, high=high)
    if table.integer(key, default=0, low=min(low, 0), high=high):
        table.fail(key, why, action=action)
    return 0
