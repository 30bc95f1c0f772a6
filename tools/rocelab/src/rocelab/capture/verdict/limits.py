# SPDX-License-Identifier: GPL-2.0-or-later
"""What limits connections while nothing goes wrong: how the time of their senders passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rocelab import units
from rocelab.capture.verdict.connections import all_connections
from rocelab.capture.verdict.faults import duration
from rocelab.capture.verdict.line import Line, percent, rate, time

_MIN_MESSAGES = 10
"""Fewer show nothing of what limits them."""
_MAX_GAPS = 0.02
"""Of the packets, that the capture may lack."""
_MAX_LOST = 0.95
"""Of the time: what remains shows nothing."""
_SMALL = 1024
"""Bytes: messages of less are limited by their number."""
_MIN_SHARE = 0.1
"""Of the time, that a second limit has."""
_MIN_MTU_SHARE = 0.05
_ETHERNET = 1024
"""The path MTU that fits each Ethernet link."""


@dataclass
class Times:
    """The connections of the capture, and how their time passed, summed."""

    connections: list[dict[str, Any]] = field(default_factory=list)
    all_ns: int = 0
    idle_ns: int = 0
    waiting_ns: int = 0
    lost_ns: int = 0
    messages: int = 0
    data: int = 0
    most: int = 0
    longest: dict[str, Any] = field(default_factory=lambda: {"ns": 0})
    """Idle time."""
    fastest: list[int] = field(default_factory=list)
    middle: Counter[int] = field(default_factory=Counter)
    others: int = 0
    """Connections of which there are only sums."""

    @property
    def rest_ns(self) -> int:
        """The time in which nothing went wrong."""
        return max(self.all_ns - self.lost_ns, 1)

    @property
    def count(self) -> int:
        return len(self.connections) + self.others

    @property
    def half_ns(self) -> int:
        """The median of the directions' medians."""
        left = self.middle.total() // 2
        for ns in sorted(self.middle):
            left -= self.middle[ns]
            if left < 0:
                return ns
        return 0

    @property
    def sending_ns(self) -> int:
        return max(self.rest_ns - self.idle_ns - self.waiting_ns, 0)


def lines(result: dict[str, Any], before: Sequence[Line]) -> Iterator[Line]:
    """Return what limits the connections, the strongest limit first; `before`: what is wrong."""
    seen = _times(result)
    wrong = any(line.kind != "capture" for line in before)
    gaps = sum(line.count for line in before if line.cause == "capture_gap")
    if gaps > _MAX_GAPS * result["roce"]["packets"]:
        return
    if wrong and seen.lost_ns > _MAX_LOST * seen.all_ns:
        return
    start = "Otherwise limited" if wrong else "Nothing is wrong: limited"
    if seen.messages < _MIN_MESSAGES:
        if not wrong:
            yield Line(
                cause="unlimited",
                kind="limit",
                what="Nothing is wrong in what was captured; "
                + (
                    f"{units.plural(seen.messages, 'acknowledged message')} cannot show what "
                    "limits the connections."
                ),
                advice="Capture a longer time, and both directions.",
                certainty="certain" if all_connections(result) else "possible",
            )
        return
    ranked = sorted((_idle(seen), _waiting(seen), _sending(seen)), key=lambda line: -line.lost_ns)
    for at, line in enumerate(ranked):
        if at and line.lost_ns < _MIN_SHARE * seen.rest_ns:
            break
        line.what = f"{start if at == 0 else 'And'} by {line.what}."
        yield line
    yield from _small_mtu(seen)


def _times(result: dict[str, Any]) -> Times:
    seen = Times()
    for one in all_connections(result):
        ways = [way for way in one["directions"] if way["pace"] and way["latency_ns"]["count"]]
        if not ways or not duration(one):
            continue
        span = duration(one)
        lost = sum(row["ns"] for way in ways for row in way["costs"])
        seen.connections.append(one)
        seen.all_ns += span
        seen.lost_ns += min(lost, span)
        # both ends may wait at once
        left = span - min(lost, span)
        seen.idle_ns += min(*(way["pace"]["idle_ns"] for way in ways), left)
        waiting = sum(way["pace"]["waiting_ns"] for way in ways)
        seen.waiting_ns += min(waiting, left)
        for way in ways:
            seen.messages += way["latency_ns"]["count"] + way["pace"]["delayed"]
            seen.most = max(seen.most, way["pace"]["most_messages"])
            seen.middle[way["latency_ns"]["p50"]] += 1
            if longest := way["pace"]["longest_idle"]:
                seen.longest = max(seen.longest, longest, key=lambda one: one["ns"])
            if way["pace"]["fastest_ns"] is not None:
                seen.fastest.append(way["pace"]["fastest_ns"])
        seen.data += sum(way["goodput_bytes"] for way in one["directions"])
    if "unlisted" in result and (others := result["unlisted"]["others"]):
        _add(seen, others)
    return seen


def _add(seen: Times, others: dict[str, Any]) -> None:
    """Add the sums of connections that have no row."""
    seen.others = others["connections"]
    seen.all_ns += others["span_ns"]
    seen.lost_ns += others["lost_ns"]
    seen.idle_ns += others["idle_ns"]
    seen.waiting_ns += others["waiting_ns"]
    seen.messages += others["messages"]
    seen.data += others["goodput_bytes"]
    seen.most = max(seen.most, others["most_messages"])
    if others["fastest_ns"] is not None:
        seen.fastest.append(others["fastest_ns"])
    for ns, count in others["medians_ns"]:
        seen.middle[ns] += count
    if longest := others["longest_idle"]:
        seen.longest = max(seen.longest, longest, key=lambda one: one["ns"])


def _line(seen: Times, cause: str, ns: int, what: str, advice: str) -> Line:
    numbers = {one["id"] for one in seen.connections}
    return Line(
        cause=cause,
        kind="limit",
        what=what,
        advice=advice,
        certainty="certain" if 2 * ns > seen.rest_ns else "likely",
        connections=numbers,
        others=seen.others,
        lost_ns=ns,
        of_ns=seen.rest_ns,
    )


def _idle(seen: Times) -> Line:
    longest = seen.longest["ns"]
    line = _line(
        seen,
        "stalled_sender",
        seen.idle_ns,
        f"the senders: for {percent(seen.idle_ns, seen.rest_ns)} of the time nothing was "
        "outstanding, and nothing was sent"
        + (f" (up to {time(longest)} at once)" if longest else ""),
        "Look at the application: it posts its next work request late. (A request whose first copy "
        "was lost before the capture point looks the same.)",
    )
    if longest:
        line.frames = [(seen.longest["file"], seen.longest["packet"])]
    return line


def _waiting(seen: Times) -> Line:
    share = percent(seen.waiting_ns, seen.rest_ns)
    least = min(seen.fastest, default=0)
    # a quantile is accurate to 1.6 %
    half = time(max(seen.half_ns, least))
    fastest = time(least)
    if seen.most <= 1:
        what = (
            f"latency: one message in flight, whose sender waits for its answer {share} of the "
            f"time (half of the answers within {half}, the fastest {fastest})"
        )
        advice = "Keep more messages in flight (perftest: --tx-depth), or send larger ones."
        return _line(seen, "one_in_flight", seen.waiting_ns, what, advice)
    what = (
        f"the window: at most {seen.most} messages in flight, and senders wait for answers "
        f"{share} of the time (half within {half}, the fastest {fastest})"
    )
    advice = "Keep more messages in flight (perftest: --tx-depth), or ask for fewer ACKs."
    return _line(seen, "window", seen.waiting_ns, what, advice)


def _sending(seen: Times) -> Line:
    size = seen.data / seen.messages
    per_second = 1e9 * seen.count * seen.messages / seen.rest_ns
    bits = rate(8e9 * seen.count * seen.data / seen.rest_ns)
    share = percent(seen.sending_ns, seen.rest_ns)
    if size < _SMALL:
        what = (
            f"the message rate: messages of {units.number(round(size))} B on average, "
            f"{units.number(round(per_second))} a second ({bits}), sent {share} of the time"
        )
        advice = "Send larger messages, several with one doorbell, or on more queue pairs."
        return _line(seen, "small_messages", seen.sending_ns, what, advice)
    what = (
        f"the rate of sending: {bits}, sent {share} of the time; that is the link's speed or the "
        "sender's"
    )
    advice = "Compare with the link (ethtool IF | grep Speed); below it, the sender is the limit."
    return _line(seen, "rate", seen.sending_ns, what, advice)


def _small_mtu(seen: Times) -> Iterator[Line]:
    """Return a line where the path MTU is less than the link allows, or than another's there."""
    best: dict[frozenset[str], int] = {}
    for one in seen.connections:
        for way in one["directions"]:
            ends = frozenset((one["a"]["address"], one["b"]["address"]))
            best[ends] = max(best.get(ends, _ETHERNET), way["path_mtu"])
    small = []
    for one in seen.connections:
        ends = frozenset((one["a"]["address"], one["b"]["address"]))
        for way in one["directions"]:
            # it matters where messages need several packets
            several = way["messages"] and way["goodput_bytes"] > way["messages"] * way["path_mtu"]
            if several and 0 < way["path_mtu"] < best[ends]:
                small.append((one, way, best[ends]))
    if not small:
        return
    one, way, possible = max(small, key=lambda row: row[1]["wire_bytes"])
    packets = sum(way["packets"] for _, way, _ in small)
    headers = sum(way["wire_bytes"] - way["payload_bytes"] for _, way, _ in small)
    wire = sum(way["wire_bytes"] for _, way, _ in small)
    saved = headers * (1 - way["path_mtu"] / possible)
    span = sum(duration(one) for one in {row[0]["id"]: row[0] for row in small}.values())
    # while a sender waits, headers cost nothing
    lost = span * saved / wire * seen.sending_ns / seen.all_ns
    if lost < _MIN_MTU_SHARE * span:
        return
    why = "every Ethernet link allows" if possible == _ETHERNET else "another connection there has"
    yield Line(
        cause="path_mtu",
        kind="limit",
        what=f"The path MTU is {way['path_mtu']}, though {why} {possible}: headers take "
        f"{percent(headers, wire)} of the bytes, and {units.integer(packets)} packets were sent.",
        advice="ip link set IF mtu 4200 on both ends and every hop allows a path MTU of 4096; the "
        "application chooses it (perftest: -m).",
        certainty="likely",
        connections={row[0]["id"] for row in small},
        worst=one["id"],
        count=len(small),
        lost_ns=round(lost),
        of_ns=span,
        at_most=True,
    )
