# SPDX-License-Identifier: GPL-2.0-or-later
"""One line of a verdict, and how costs are put into words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from rocelab import units

Kind = Literal["failure", "fault", "limit", "capture"]
Certainty = Literal["certain", "likely", "possible"]
_FRAMES = 16
"""Frames of a display filter."""


@dataclass
class Line:
    """What is wrong, or what limits, and what it costs."""

    cause: str
    kind: Kind
    what: str
    """A sentence: what happened, and where."""
    advice: str
    """What to do next."""
    certainty: Certainty = "certain"
    where: str | None = None
    """The end towards which it happened, or which causes it."""
    connections: set[int] = field(default_factory=set)
    others: int = 0
    """How many more connections there are, of which only sums are known."""
    worst: int | None = None
    """The connection that lost most."""
    count: int = 0
    lost_ns: int = 0
    of_ns: int = 0
    """How long the connections lasted, summed."""
    timeouts: int = 0
    """How often of `count` only the ACK timeout ended it."""
    timeout_ns: int = 0
    """Of the lost time, what was lost so."""
    messages_delayed: int = 0
    messages: int = 0
    goodput: tuple[float, float] | None = None
    """Bits per second: as it was, and without the lost time."""
    p99_ns: tuple[int, int] | None = None
    """Of the worst connection: of all messages, and of those that were not sent again."""
    at_most: bool = False
    """The lost time is an upper bound."""
    frames: list[tuple[str, int]] = field(default_factory=list)

    def cost(self) -> str:
        """How bad it is, in words; empty if nothing is known, or `what` says it."""
        parts: list[str] = []
        if self.kind == "limit" and not self.at_most:
            return ""
        if self.lost_ns:
            most = "at most " if self.at_most else ""
            whose = _whose(self.connections)
            parts.append(f"{most}{time(self.lost_ns)} of {whose}{time(self.of_ns)}{_share(self)}")
        if self.messages_delayed:
            late = units.integer(self.messages_delayed)
            parts.append(f"{late} of {units.plural(self.messages, 'message')} late")
        if self.goodput and self.goodput[1] > 1.01 * self.goodput[0]:
            before, after = (rate(one) for one in self.goodput)
            parts.append(f"goodput {before}, without it {after}")
        if self.p99_ns and self.p99_ns[0] > 1.02 * self.p99_ns[1]:
            parts.append(f"p99 {time(self.p99_ns[0])}, without it {time(self.p99_ns[1])}")
        return "; ".join(parts)

    def row(self) -> dict[str, Any]:
        """Return the line as in `--json`."""
        goodput, p99 = self.goodput or (None, None), self.p99_ns or (None, None)
        frames = list(dict.fromkeys(self.frames))[:_FRAMES]
        return {
            "cause": self.cause,
            "kind": self.kind,
            "what": self.what,
            "cost": self.cost(),
            "certainty": self.certainty,
            "advice": self.advice,
            "where": self.where,
            "connection": self.worst,
            "connections": len(self.connections) + self.others,
            "count": self.count,
            "lost_ns": self.lost_ns,
            "of_ns": self.of_ns,
            "messages_delayed": self.messages_delayed,
            "messages": self.messages,
            "goodput_bit_per_s": goodput[0],
            "goodput_without_bit_per_s": goodput[1],
            "p99_ns": p99[0],
            "p99_without_ns": p99[1],
            "frames": [{"file": file, "packet": packet} for file, packet in frames],
            "filter": _filter(frames),
        }


def time(value: float) -> str:
    """A time as people read it, in text and on pages."""
    return units.quantity(value, "ns").replace(units.NARROW_SPACE, " ")


def rate(value: float) -> str:
    """Bits per second as people read them."""
    for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if value >= size:
            return f"{units.number(value / size)} {unit}"
    return f"{units.number(value)} bit/s"


def percent(part: float, whole: float) -> str:
    """A share, never 0 % of something."""
    share = 100 * part / whole if whole else 0
    return "less than 1 %" if 0 < share < 1 else f"{share:.0f} %"


def _whose(connections: set[int]) -> str:
    if len(connections) == 1:
        return f"connection {next(iter(connections))}'s "
    return f"{units.integer(len(connections))} connections' "


def _share(line: Line) -> str:
    return f" ({percent(line.lost_ns, line.of_ns)})" if line.of_ns else ""


def _filter(frames: list[tuple[str, int]]) -> str | None:
    """Wireshark's display filter for the frames of the file with most of them."""
    if not frames:
        return None
    file = frames[0][0]
    numbers = sorted({packet for name, packet in frames if name == file})
    return f"frame.number in {{{', '.join(map(str, numbers))}}}"
