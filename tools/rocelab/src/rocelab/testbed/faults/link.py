# SPDX-License-Identifier: GPL-2.0-or-later
"""A link with faults: decide what becomes of each frame, and note what was done. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rocelab.plans.fault import (
    LAST,
    TO_CLIENT,
    TO_SERVER,
    Action,
    FaultPlan,
)
from rocelab.record.faults_document import UNALTERED, Altered, Event
from rocelab.testbed.faults import roce_frame
from rocelab.testbed.faults.messages import Messages, Place
from rocelab.testbed.faults.roce_frame import Packet

_HOLD_NS = 200_000_000
"""A held packet goes on after this time, even if nothing overtakes it."""
_MAX_EVENTS = 100_000
_FOREVER_NS = 1 << 62


@dataclass(frozen=True)
class Due:
    """A frame to hand over, now or later."""

    at_ns: int
    direction: str
    frame: bytes


@dataclass
class _Held:
    due: Due
    left: int
    """Packets that have yet to overtake it."""


@dataclass
class _Parked:
    """A link that waits until something is done to the server's process."""

    fault: FaultPlan
    packet: Packet
    place: Place
    frames: list[tuple[str, bytes]]
    """With their directions; the first one is the packet that the fault met."""


@dataclass
class _Rule:
    fault: FaultPlan
    left: int
    due_us: int
    """Of a fault by time: when it happens next, since the client's first request."""
    seen: int = 0
    """Of a fault by count: packets so far."""

    def meets(self, direction: str, place: Place, since_us: int) -> bool:
        fault = self.fault
        if direction != fault.direction:
            return False
        if fault.every_packets:
            self.seen += 1
            return self.seen % fault.every_packets == 0
        if self.left == 0:
            return False
        if fault.at_us:
            return since_us >= self.due_us
        number, every = place.message - fault.message, fault.every
        chosen = number == 0 or (every > 0 and number > 0 and number % every == 0)
        return chosen and (place.is_last if fault.packet == LAST else place.packet == fault.packet)

    def advance(self, since_us: int) -> None:
        """Count it, and find the next time; those at which no packet came are over."""
        self.left -= 1
        if every := self.fault.every_us:
            self.due_us += every * ((since_us - self.due_us) // every + 1)


@dataclass
class FaultyLink:
    """Two directions of frames, of which the plan's faults meet some.

    Faults meet the packets of the first queue pair that the client sends a request to, after
    `pairs_before` others.
    """

    faults: Sequence[FaultPlan]
    pairs_before: int = 0
    events: list[Event] = field(default_factory=list)
    passed: dict[str, int] = field(default_factory=lambda: {TO_SERVER: 0, TO_CLIENT: 0})
    """Frames that came in, by direction."""
    altered: Altered = UNALTERED
    """What the faults changed in the packets' numbers."""
    met: set[str] = field(default_factory=set)
    """Names of the faults that met a packet."""
    unlisted: int = 0
    """Events that are not in `events`, which has the first ones."""

    def __post_init__(self) -> None:
        self._rules = [_Rule(fault, fault.times, fault.at_us) for fault in self.faults]
        self._start_ns: int | None = None
        self._messages = Messages()
        self._server_qpn: int | None = None
        self._others: set[tuple[str, int]] = set()
        self._client_qpn: int | None = None
        self._msn = 0
        self._held: list[_Held] = []
        self._parked: _Parked | None = None
        self._down_until = 0
        self._down_by = self._refused_by = ""
        self._not_ready: int | None = None
        self._owed: list[tuple[Action, bytes, Packet, _Rule, Place]] = []

    def frame(self, direction: str, frame: bytes, now_ns: int) -> list[Due]:
        """Take a frame from one side; return the frames to hand over."""
        self.passed[direction] += 1
        return self._take(direction, frame, now_ns)

    @property
    def awaits(self) -> FaultPlan | None:
        """What is to be done to the server's process: frames wait until `done` says that it is."""
        return self._parked.fault if self._parked else None

    def done(self, now_ns: int) -> list[Due]:
        """Note that it is done; return the frames to hand over."""
        parked, self._parked = self._parked, None
        if parked is None:
            return []
        name = parked.fault.name
        self._note(now_ns, TO_SERVER, parked.packet, parked.place, name, str(parked.fault.action))
        (first, *others) = parked.frames
        # not through `_take`: the packet that the fault met has been followed already
        out = [Due(now_ns, *first)]
        for direction, frame in others:
            out += self._take(direction, frame, now_ns)
        return out

    def _take(self, direction: str, frame: bytes, now_ns: int) -> list[Due]:
        if self._parked is not None:
            self._parked.frames.append((direction, frame))
            return []
        packet = roce_frame.parse(frame)
        if now_ns < self._down_until:
            self._note(now_ns, direction, packet, None, self._down_by, "lost")
            return []
        place = self._follow(direction, frame, packet)
        out: list[Due] = []
        if packet is None or place is None:
            out = [Due(now_ns, direction, frame)]
        elif self._is_refused(direction, packet, place, now_ns):
            return []
        else:
            if self._start_ns is None:
                self._start_ns = now_ns
            since_us = (now_ns - self._start_ns) // 1000
            meeting = (rule for rule in self._rules if rule.meets(direction, place, since_us))
            rule = next(meeting, None)
            if rule is None:
                out = [Due(now_ns, direction, frame)]
            else:
                rule.advance(since_us)
                out = list(self._apply(rule, direction, frame, packet, place, now_ns))
        return [*out, *self._answers(now_ns), *self._overtaken(direction, len(out), now_ns)]

    def late(self, now_ns: int) -> list[Due]:
        """Return the held frames that nothing overtook in time."""
        ready = [waiting for waiting in self._held if waiting.due.at_ns <= now_ns]
        self._held = [waiting for waiting in self._held if waiting.due.at_ns > now_ns]
        return [waiting.due for waiting in ready]

    def _follow(self, direction: str, frame: bytes, packet: Packet | None) -> Place | None:
        if packet is None:
            return None
        if direction == TO_SERVER:
            if packet.is_response:
                return None
            if self._server_qpn is None and not self._is_other(direction, packet):
                self._server_qpn = packet.dqpn
            return self._messages.place(packet) if packet.dqpn == self._server_qpn else None
        if not packet.is_response or self._client_qpn not in (None, packet.dqpn):
            return None
        if self._client_qpn is None and self._is_other(direction, packet):
            return None
        self._client_qpn = packet.dqpn
        msn = roce_frame.msn_of(frame, packet)
        self._msn = self._msn if msn is None else msn
        return self._messages.place(packet)

    def _is_other(self, direction: str, packet: Packet) -> bool:
        """Whether a packet is of one of the queue pairs before."""
        seen = {qpn for way, qpn in self._others if way == direction}
        if packet.dqpn not in seen and len(seen) < self.pairs_before:
            self._others.add((direction, packet.dqpn))
        return (direction, packet.dqpn) in self._others

    def _is_refused(self, direction: str, packet: Packet, place: Place, now_ns: int) -> bool:
        """Whether a server that is not ready drops the request, until the refused one comes."""
        if self._not_ready is None or direction != TO_SERVER:
            return False
        if packet.psn == self._not_ready:
            self._not_ready = None
            return False
        self._note(now_ns, direction, packet, place, self._refused_by, "lost")
        return True

    def _apply(
        self,
        rule: _Rule,
        direction: str,
        frame: bytes,
        packet: Packet,
        place: Place,
        now_ns: int,
    ) -> Iterator[Due]:
        fault, now = rule.fault, Due(now_ns, direction, frame)
        done = str(fault.action)
        match fault.action:
            case Action.DROP:
                pass
            case Action.DUPLICATE:
                yield from (now, now)
            case Action.CORRUPT:
                try:
                    yield Due(now_ns, direction, roce_frame.flip(frame, packet, fault.bit))
                except ValueError:
                    done = "not done"
                    yield now
            case Action.DELAY:
                yield Due(now_ns + fault.duration_us * 1000, direction, frame)
            case Action.REORDER:
                self._held.append(_Held(Due(now_ns + _HOLD_NS, direction, frame), fault.count))
            case Action.MARK_CE:
                yield Due(now_ns, direction, roce_frame.mark_ce(frame))
            case Action.CNP:
                yield now
                self._owed += [(Action.CNP, frame, packet, rule, place)] * fault.count
            case Action.RNR_NAK:
                self._not_ready = packet.psn
                self._owed.append((Action.RNR_NAK, frame, packet, rule, place))
                self._refused_by = fault.name
            case Action.FLAP:
                self._down_until = now_ns + fault.duration_us * 1000
                self._down_by = fault.name
            case Action.VANISH:
                self._down_until, self._down_by = _FOREVER_NS, fault.name
            case Action.KILL | Action.STOP:
                self._parked = _Parked(fault, packet, place, [(direction, frame)])
                return
        self._note(now_ns, direction, packet, place, fault.name, done)

    def _answers(self, now_ns: int) -> Iterator[Due]:
        """Yield the answers that we owe, as soon as we know the client's queue pair."""
        if self._client_qpn is None:
            return
        for action, frame, packet, rule, place in self._owed:
            if action is Action.CNP:
                made = roce_frame.cnp(frame, packet, self._client_qpn)
            else:
                timer = rule.fault.rnr_timer
                made = roce_frame.rnr_nak(frame, packet, self._client_qpn, timer, self._msn)
            self._note(now_ns, TO_CLIENT, packet, place, rule.fault.name, f"sent {action}")
            yield Due(now_ns, TO_CLIENT, made)
        self._owed.clear()

    def _overtaken(self, direction: str, passed: int, now_ns: int) -> list[Due]:
        """Return the held frames that enough others have overtaken."""
        for waiting in self._held:
            waiting.left -= passed if waiting.due.direction == direction else 0
        ready = [waiting for waiting in self._held if waiting.left <= 0]
        self._held = [waiting for waiting in self._held if waiting.left > 0]
        return [Due(now_ns, waiting.due.direction, waiting.due.frame) for waiting in ready]

    def _note(
        self,
        now_ns: int,
        direction: str,
        packet: Packet | None,
        place: Place | None,
        fault: str,
        done: str,
    ) -> None:
        event = Event(
            fault=fault,
            done=done,
            direction=direction,
            time_ns=now_ns,
            opcode=packet.opcode if packet else None,
            psn=packet.psn if packet else None,
            message=place.message if place else None,
            packet=place.packet if place else None,
        )
        self.met.add(fault)
        self.altered += Altered.by(event)
        if len(self.events) < _MAX_EVENTS:
            self.events.append(event)
        else:
            self.unlisted += 1
