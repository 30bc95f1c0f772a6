# SPDX-License-Identifier: GPL-2.0-or-later
"""faults.json of a step: what a link with faults did, frame by frame (docs/formats/run.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from rocelab import json_text, limits
from rocelab.directory import Directory
from rocelab.record import layout

SCHEMA = "rocelab.faults/1"
_NEVER_THERE = ("drop", "flap", "vanish", "rnr_nak", "lost")
_NOT_RECEIVED = (*_NEVER_THERE, "corrupt")
"""What the receiving driver never counts: an ICRC that is wrong is not a received packet."""


@dataclass(frozen=True)
class Event:
    """What was done to one frame. `opcode` and what follows are None if it is no RoCE packet."""

    fault: str
    """The fault's name in the plan."""
    done: str
    """The action; `lost`: dropped because of a flap or an RNR NAK before; `sent cnp` and
    `sent rnr_nak`; `not done`: the packet is too short for it."""
    direction: str
    time_ns: int
    """Of the analyst's machine, on its monotonic clock."""
    opcode: int | None
    psn: int | None
    message: int | None
    packet: int | None


@dataclass(frozen=True)
class Altered:
    """By how much faults changed the numbers of packets, beyond what the senders counted."""

    received: int = 0
    """Packets that both drivers together counted more than were sent; negative: fewer."""
    on_wire: int = 0
    """Frames at the client's card, behind the faults for its answers, before them for requests."""
    spoilt: int = 0
    """Packets that a driver drops on arrival for what is in them: wrong ICRCs, and CNPs."""

    def __add__(self, other: Altered) -> Altered:
        """Return what both changed together."""
        return Altered(
            self.received + other.received,
            self.on_wire + other.on_wire,
            self.spoilt + other.spoilt,
        )

    @classmethod
    def by(cls, event: Event) -> Altered:
        """Return what one event changed."""
        if event.psn is None:
            return cls()
        twice = event.done == "duplicate"
        received = twice - (event.done in _NOT_RECEIVED) + (event.done == "sent rnr_nak")
        spoilt = int(event.done in ("corrupt", "sent cnp"))
        if event.direction != "to_client":
            return cls(received, 0, spoilt)
        on_wire = twice - (event.done in _NEVER_THERE) + event.done.startswith("sent ")
        return cls(received, on_wire, spoilt)


UNALTERED = Altered()
"""No fault changed the number of packets."""


def write(
    step: Path, events: Sequence[Event], frames: dict[str, int], *, unlisted: int = 0
) -> None:
    """Write a step's faults.json, whose `events` lack so many. Raises OSError."""
    content = {
        "schema": SCHEMA,
        "frames": frames,
        "unlisted": unlisted,
        "events": [asdict(each) for each in events],
    }
    with Directory.open(step) as folder:
        folder.write(layout.FAULTS, json.dumps(content, indent=1).encode())


def read(step: Directory) -> tuple[Event, ...]:
    """Return a step's events. Raises OSError, or ValueError for another content."""
    content = json_text.parse(step.read(layout.FAULTS, limit=limits.MAX_JSON_BYTES))
    events = content.get("events")
    if content.get("schema") != SCHEMA or not isinstance(events, list):
        raise ValueError(f"not {SCHEMA}")
    return tuple(map(_event, events))


def _event(values: object) -> Event:
    names = {each.name for each in fields(Event)}
    if not isinstance(values, dict) or set(values) != names:
        raise ValueError("an event has other keys")
    texts = all(isinstance(values[key], str) for key in ("fault", "done", "direction"))
    rest = names - {"fault", "done", "direction"}
    numbers = all(values[key] is None or type(values[key]) is int for key in rest)
    if not texts or not numbers or values["time_ns"] is None:
        raise ValueError("an event has values of other types")
    return Event(**values)
