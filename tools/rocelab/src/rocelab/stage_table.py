# SPDX-License-Identifier: GPL-2.0-or-later
"""The stages of a packet in the driver, from `tables/stages.csv`: names, order and meaning.

Nothing in this package lists stages again: an order, a sum or a colour is a selection from here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rocelab import shared_tables


@dataclass(frozen=True)
class Stage:
    """One exclusive step of a packet; the columns of the table, which explains their values."""

    direction: str
    name: str
    event: str
    capsule: str
    subject: str
    passed: str
    stock: bool
    kind: str
    """The table's `class`."""
    meaning: str


STAGES = tuple(
    Stage(
        row["direction"],
        row["stage"],
        row["event"],
        row["capsule"],
        row["subject"],
        row["passed"],
        row["stock"] == "yes",
        row["class"],
        row["meaning"],
    )
    for row in shared_tables.rows("stages")
)
"""Every stage, sent packets first, each direction in the order in which a packet passes them."""


def _names(chosen: Callable[[Stage], bool]) -> tuple[str, ...]:
    return tuple(stage.name for stage in STAGES if chosen(stage))


TX = _names(lambda stage: stage.direction == "tx")
RX = _names(lambda stage: stage.direction == "rx")
BY_DIRECTION = {"tx": TX, "rx": RX}
ENCAPSULATION = _names(lambda stage: stage.capsule == "encapsulation")
DECAPSULATION = _names(lambda stage: stage.capsule == "decapsulation")
CAPSULES = {"encapsulation": ("tx", ENCAPSULATION), "decapsulation": ("rx", DECAPSULATION)}
"""Sums over stages: the direction that each belongs to, and what it sums."""

WAITING = frozenset(_names(lambda stage: stage.subject == "wait"))
"""Stages in which the driver does not work on the packet."""
ANSWERING = frozenset(_names(lambda stage: stage.subject == "answer"))
"""Stages that work on the answer, which is a packet with its own stages."""
DELIVERING = _names(lambda stage: stage.direction == "rx" and stage.subject != "answer")
"""Stages until the receiver has the message."""
OBSERVED = frozenset(_names(lambda stage: stage.passed == "observed"))
"""Stages that a probe can miss: where one is absent it was not seen, not skipped."""


def is_passed_by_some(direction: str, name: str) -> bool:
    """Whether only some packets of a direction pass the stage `name`."""
    return any(
        stage.direction == direction and stage.name == name and stage.passed == "some"
        for stage in STAGES
    )


GAP = "gap"
"""The time between the two records of a packet, which no stage covers."""


def _with_gap(direction: str) -> tuple[str, ...]:
    own = [stage for stage in STAGES if stage.direction == direction]
    first = [stage.name for stage in own if stage.event == own[0].event]
    return (*first, GAP, *(stage.name for stage in own[len(first) :]))


IN_TIME = {"tx": _with_gap("tx"), "rx": _with_gap("rx")}
"""All of a packet's time in a driver, in order, with the gap between its two records."""
EVERY_NAME = tuple(dict.fromkeys((*TX, *RX)))
"""Each name once: `icrc` and `copy` are stages of both directions."""
APART = WAITING | ANSWERING
"""Stages that are not work on this packet; figures give them as numbers next to the bars."""
