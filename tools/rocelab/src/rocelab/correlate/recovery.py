# SPDX-License-Identifier: GPL-2.0-or-later
"""How a connection recovered from the faults of a step, from the capture at the client's card.

The capture is before the faults for requests, and behind them for answers: it holds what the client
really sent and got. All times are the capture's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

from rocelab import capture
from rocelab.record.faults_document import Event
from rocelab.record.psn import behind

_CNP = 0x81
_RESPONSES = range(0x0D, 0x13)
_ACKNOWLEDGE = (0x11, 0x12)
_READ_REQUEST = 0x0C


@dataclass(frozen=True)
class Mended:
    """A fault, and the time from the client's first request for the packet to its good answer."""

    fault: str
    done: str
    direction: str
    message: int | None
    packet: int | None
    psn: int | None
    found: bool
    """Whether the capture shows the fault's packet as the fault must have left it."""
    recovered_ns: int | None
    """None: never answered, or the fault met no request's packet or answer."""


@dataclass(frozen=True)
class Unanswered:
    """The client's tries for the packet that a fault met and that never got a good answer."""

    psn: int
    tries: int
    sent: int
    """Packets that the client sent from the first try on."""
    span_ns: int
    """From the first try to the client's last packet."""


@dataclass(frozen=True)
class Recovery:
    """What a step's faults cost."""

    mended: tuple[Mended, ...]
    usual_ns: int | None
    """Median time from a packet's request to its good answer, of those that no fault met."""
    sent_again: dict[str, int]
    """Packets of `client` and `server` that the analyzer found to be sent again."""
    causes: dict[str, int]
    """Why, as the analyzer says, with the number of packets."""
    naks: dict[str, int]
    """NAKs by kind, and `rnr`."""
    unanswered: Unanswered | None = None
    """None: every fault's packet was answered."""


@dataclass(frozen=True)
class _Sent:
    at_ns: int
    opcode: int
    psn: int
    answer: bool
    dqpn: int
    good: bool
    """Its ICRC is right, and it is no NAK."""


def recovery(wire: Path, client: str, events: Sequence[Event]) -> Recovery:
    """Follow a step's capture; `client` is the client's address. Raises UsageError."""
    analysis = capture.read(str(wire))
    packets = [
        _Sent(
            row["time_ns"],
            row["opcode"],
            row["psn"],
            row["src"] != client,
            row["dqpn"],
            row["icrc_ok"] is not False and (row["syndrome"] or 0) < 0x20,
        )
        for row in _rows(analysis)
        if row["opcode"] != _CNP
    ]
    requests = [each for each in packets if not each.answer and each.opcode not in _RESPONSES]
    answers = [each for each in packets if each.answer and each.opcode in _RESPONSES]
    marked = {row["psn"] for row in _rows(analysis) if row["ecn"] == 3}
    cnps = [row for row in _rows(analysis) if row["opcode"] == _CNP]
    mended = tuple(
        _follow_fault(event, requests, answers, marked, bool(cnps)) for event in _main(events)
    )
    met = {event.psn for event in events}
    return Recovery(
        mended,
        _usual(requests, answers, met),
        *_retransmissions(analysis.result, client),
        _first_unanswered(mended, requests),
    )


def _first_unanswered(mended: Iterable[Mended], requests: Sequence[_Sent]) -> Unanswered | None:
    for each in mended:
        tries = [sent for sent in requests if sent.psn == each.psn]
        if each.recovered_ns is None and tries and each.direction == "to_server":
            later = [
                sent
                for sent in requests
                if sent.at_ns >= tries[0].at_ns and sent.dqpn == tries[0].dqpn
            ]
            return Unanswered(
                tries[0].psn, len(tries), len(later), later[-1].at_ns - tries[0].at_ns
            )
    return None


def _rows(analysis: capture.Analysis) -> Iterable[dict[str, Any]]:
    columns = ["time_ns", "src", "dqpn", "opcode", "psn", "icrc_ok", "syndrome", "ecn"]
    return pl.DataFrame(analysis.packets).select(columns).iter_rows(named=True)


def _main(events: Iterable[Event]) -> list[Event]:
    """Return the faults themselves, without the packets lost and sent because of them."""
    return [
        event
        for event in events
        if event.psn is not None and event.done != "lost" and not event.done.startswith("sent ")
    ]


def _follow_fault(
    event: Event,
    requests: Sequence[_Sent],
    answers: Sequence[_Sent],
    marked: set[int],
    has_cnp: bool,
) -> Mended:
    psn = event.psn if event.psn is not None else -1
    first = _request_of(psn, requests)
    answer = None if first is None else _answer_to(psn, first, answers)
    return Mended(
        event.fault,
        event.done,
        event.direction,
        event.message,
        event.packet,
        event.psn,
        _is_found(event, requests, answers, marked, has_cnp),
        None if first is None or answer is None else answer.at_ns - first.at_ns,
    )


def _is_found(
    event: Event,
    requests: Sequence[_Sent],
    answers: Sequence[_Sent],
    marked: set[int],
    has_cnp: bool,
) -> bool:
    """Whether the capture agrees: a request was sent; an answer came as the fault left it."""
    if event.direction == "to_server":
        sent = any(each.psn == event.psn for each in requests)
        return sent and (event.done != "cnp" or has_cnp)
    seen = [each for each in answers if each.psn == event.psn and each.opcode == event.opcode]
    match event.done:
        case "duplicate":
            return len(seen) > 1
        case "corrupt":
            return not all(each.good for each in seen)
        case "mark_ce":
            return event.psn in marked
        case _:
            return True


def _request_of(psn: int, requests: Sequence[_Sent]) -> _Sent | None:
    """Return the first request for a PSN: the packet itself, or the READ that it answers."""
    own = next((each for each in requests if each.psn == psn), None)
    if own is not None:
        return own
    reads = [
        each for each in requests if each.opcode == _READ_REQUEST and behind(psn, each.psn) >= 0
    ]
    return min(reads, key=lambda each: (behind(psn, each.psn), each.at_ns), default=None)


def _answer_to(psn: int, first: _Sent, answers: Sequence[_Sent]) -> _Sent | None:
    """Return the first good answer: an acknowledgement covers earlier PSNs, a READ's its own."""
    start = bisect_right(answers, first.at_ns, key=lambda each: each.at_ns)
    for each in answers[start:]:
        covers = behind(each.psn, psn) >= 0 if each.opcode in _ACKNOWLEDGE else each.psn == psn
        if each.good and covers:
            return each
    return None


def _usual(requests: Sequence[_Sent], answers: Sequence[_Sent], met: set[int | None]) -> int | None:
    """Return the median time until the answer of packets that were sent once and that none met."""
    times: dict[int, list[int]] = {}
    for each in requests:
        times.setdefault(each.psn, []).append(each.at_ns)
    waits = []
    for each in answers:
        sent = times.get(each.psn, [])
        if each.good and len(sent) == 1 and each.psn not in met and each.at_ns > sent[0]:
            waits.append(each.at_ns - sent[0])
    return round(median(waits)) if waits else None


def _retransmissions(
    result: dict[str, Any], client: str
) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Return what the analyzer says was sent again, why, and which NAKs it saw."""
    again = {"client": 0, "server": 0}
    causes: dict[str, int] = {}
    naks: dict[str, int] = {}
    for connection in result["connections"]:
        for side in connection["directions"]:
            end = "client" if connection[side["from"]]["address"] == client else "server"
            again[end] += side["retransmitted"] + side["retransmitted_requests"]
            for cause, count in side["retransmissions"].items():
                causes[cause] = causes.get(cause, 0) + count
            for kind, count in {**side["naks"], "rnr": side["rnr"]}.items():
                naks[kind] = naks.get(kind, 0) + count
    return again, _positive(causes), _positive(naks)


def _positive(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}
