# SPDX-License-Identifier: GPL-2.0-or-later
"""Build messages from joined packets: a request's packets, its answer, and their times.

Each machine has its own clock, so spans are taken within one clock. On the requester's: from the
first packet's first stage to the end of the answer's last stage. On the capture's: from frame to
frame. On the responder's: from arrival to the end of the answer's last stage. The outer span minus
the inner one is the time between the two machines, both ways together; clocks that do not agree
cannot divide it. With `one_clock` it is divided into `there_ns` and `back_ns`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from rocelab import stage_table

_MODULUS = 1 << 24
_MAX_PENDING = 1 << 16
"""Unanswered requests to keep per queue pair."""

Row = Mapping[str, Any]
Values = dict[str, Any]

_PARTS = {
    "tx": tuple(f"tx_{stage}_ns" for stage in (*stage_table.TX, stage_table.GAP)),
    "rx": tuple(f"rx_{stage}_ns" for stage in (*stage_table.RX, stage_table.GAP)),
}
_NOT_ON_THE_WAY = frozenset(
    {*(f"rx_{stage}_ns" for stage in stage_table.ANSWERING), "tx_gap_ns", "rx_gap_ns"}
)
_SCHEMA: dict[str, Any] = {
    "requester": pl.String,
    "responder": pl.String,
    "src": pl.String,
    "dst": pl.String,
    "net": pl.String,
    "qpn": pl.UInt32,
    "dqpn": pl.UInt32,
    "opcode_name": pl.String,
    "psn": pl.UInt32,
    "packets": pl.UInt32,
    "payload_bytes": pl.UInt64,
    "clean": pl.Boolean,
    "answered": pl.Boolean,
    "first_frame": pl.UInt64,
    "last_frame": pl.UInt64,
    "answer_frame": pl.UInt64,
    **dict.fromkeys((*_PARTS["tx"], *_PARTS["rx"]), pl.Int64),
    **{f"answer_{name}": pl.Int64 for name in (*_PARTS["tx"], *_PARTS["rx"])},
    "on_the_way_ns": pl.Int64,
    "requester_ns": pl.Int64,
    "wire_ns": pl.Int64,
    "responder_ns": pl.Int64,
    "requester_side_ns": pl.Int64,
    "responder_side_ns": pl.Int64,
    "between_ns": pl.Int64,
    "there_ns": pl.Int64,
    "back_ns": pl.Int64,
    "period_ns": pl.Int64,
}


def messages(packets: pl.DataFrame, *, one_clock: bool = False) -> pl.DataFrame:
    """Return one row for each request message that is complete in the capture.

    `packets` is `Joined.packets`. A message is `clean` if no part of it was lost, duplicated or
    retransmitted, no task was switched out during it, and all its records exist. Only a request
    with its own answer has times of both (an ACK may answer several requests).
    """
    key = ["src", "dst", "dqpn", "psn", "opcode", "sqpn"]
    whole = (pl.col("sent") == "matched") & (pl.col("received") == "matched")
    undisturbed = ~(pl.col("tx_switched") | pl.col("rx_switched"))
    marked = packets.with_columns(
        ((pl.len() == 1) & whole.all() & undisturbed.all())
        .over(key)
        .fill_null(value=False)
        .alias("clean")
    )
    maker = _Maker(one_clock)
    for row in marked.filter(pl.col("wire_packet").is_not_null()).iter_rows(named=True):
        maker.add(row)
    return pl.DataFrame(maker.finish(), schema=_SCHEMA)


class _Maker:
    def __init__(self, one_clock: bool) -> None:
        self._one_clock = one_clock
        self._open: dict[tuple[Any, ...], list[Row]] = {}
        self._pending: defaultdict[tuple[Any, ...], deque[list[Row]]] = defaultdict(
            lambda: deque(maxlen=_MAX_PENDING)
        )
        self._answers: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
        self._last_begin: dict[tuple[Any, ...], tuple[int, Values]] = {}
        self._done: list[Values] = []

    def add(self, row: Row) -> None:
        name = row["opcode_name"] or ""
        service, _, operation = name.partition("_")
        if row["again"] or row["sent"] == "copy" or service not in {"RC", "UC", "UD", "XRC"}:
            return
        if "RESPONSE" in operation or "ACKNOWLEDGE" in operation:
            self._answer(row, operation)
        else:
            self._request(row, service, operation)

    def finish(self) -> list[Values]:
        for waiting in self._pending.values():
            for request in waiting:
                self._emit(request, [])
        return sorted(self._done, key=lambda one: (one["first_frame"], one["psn"]))

    def _request(self, row: Row, service: str, operation: str) -> None:
        flow = (row["src"], row["dst"], row["dqpn"], row["sqpn"])
        parts = self._open.pop(flow, None)
        begins = not any(word in operation for word in ("_MIDDLE", "_LAST"))
        if begins:
            parts = [row]
        elif parts is None or (parts[-1]["psn"] + 1) % _MODULUS != row["psn"]:
            return  # the capture lacks its first packet or a later one
        else:
            parts.append(row)
        if "_FIRST" in operation or "_MIDDLE" in operation:
            self._open[flow] = parts
        elif service in {"RC", "XRC"} and row["tx_qpn"] is not None:
            waiting = self._pending[row["src"], row["dst"], row["tx_qpn"]]
            if len(waiting) == _MAX_PENDING:
                self._emit(waiting.popleft(), [])
            waiting.append(parts)
        else:
            self._emit(parts, [])

    def _answer(self, row: Row, operation: str) -> None:
        """An answer with PSN p completes every request up to p; it belongs to the last of them."""
        flow = (row["dst"], row["src"], row["dqpn"])
        self._answers[flow].append(row)
        if "_FIRST" in operation or "_MIDDLE" in operation:
            return
        answers = self._answers.pop(flow)
        waiting = self._pending[flow]
        answered: list[list[Row]] = []
        while waiting and (row["psn"] - waiting[0][-1]["psn"]) % _MODULUS < _MODULUS // 2:
            answered.append(waiting.popleft())
        for request in answered[:-1]:
            self._emit(request, [])
        if answered:
            # a READ's last response has a higher PSN than its request
            own = answered[-1][-1]["psn"] == answers[0]["psn"]
            self._emit(answered[-1], answers if own else [])

    def _emit(self, request: list[Row], answers: list[Row]) -> None:
        first, last = request[0], request[-1]
        values: Values = {
            "requester": first["tx_node"],
            "responder": first["rx_node"],
            "src": first["src"],
            "dst": first["dst"],
            "net": first["net"],
            "qpn": first["tx_qpn"],
            "dqpn": first["dqpn"],
            "opcode_name": last["opcode_name"],
            "psn": first["psn"],
            "packets": len(request),
            "payload_bytes": sum(row["payload_bytes"] or 0 for row in request),
            "clean": all(row["clean"] for row in (*request, *answers)),
            "answered": bool(answers),
            "first_frame": first["wire_packet"],
            "last_frame": last["wire_packet"],
            "answer_frame": answers[-1]["wire_packet"] if answers else None,
        }
        for prefix, rows in (("", request), ("answer_", answers)):
            for name in (*_PARTS["tx"], *_PARTS["rx"]):
                values[prefix + name] = _sum(row[name] for row in rows)
        values |= self._spans(request, answers)
        values["period_ns"] = None
        self._done.append(values)
        begin = first["tx_ns"]
        if begin is not None:
            flow = (first["src"], first["dst"], first["dqpn"], first["sqpn"])
            before = self._last_begin.get(flow)
            if before and begin > before[0]:
                before[1]["period_ns"] = begin - before[0]
            self._last_begin[flow] = (begin, values)

    def _spans(self, request: list[Row], answers: list[Row]) -> Values:
        first = request[0]
        spans: Values = {}
        stages = [name for names in _PARTS.values() for name in names]
        stages = [name for name in stages if name not in _NOT_ON_THE_WAY]
        if all(_end(row, "tx") is not None and row["rx_ns"] is not None for row in request):
            spans["on_the_way_ns"] = sum(row[name] or 0 for row in request for name in stages)
        if not answers:
            return spans
        answer = answers[-1]
        spans["requester_ns"] = outer = _difference(_end(answer, "rx"), first["tx_ns"])
        spans["wire_ns"] = middle = _difference(answer["wire_ns"], first["wire_ns"])
        spans["responder_ns"] = inner = _difference(_end(answer, "tx"), first["rx_ns"])
        spans["responder_side_ns"] = _difference(middle, inner)
        if len(request) > 1 or len(answers) > 1:
            return spans  # these packets overlap in time, so their stages do not add up
        sending, receipt = _length(first, "tx"), _length(answer, "rx")
        if None not in (outer, middle, sending, receipt):
            spans["requester_side_ns"] = outer - middle - sending - receipt  # type: ignore[operator]
        work = _length(first, "rx")
        replying = _length(answer, "tx")
        if None not in (inner, work, replying):
            # `reply` contains the answer's stages
            spans["between_ns"] = inner - work + (first["rx_reply_ns"] or 0) - replying  # type: ignore[operator]
        if self._one_clock:
            spans["there_ns"] = _difference(first["rx_ns"], _end(first, "tx"))
            spans["back_ns"] = _difference(answer["rx_ns"], _end(answer, "tx"))
        return spans


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _difference(late: int | None, early: int | None) -> int | None:
    return None if late is None or early is None else late - early


def _length(row: Row, way: str) -> int | None:
    """A packet's total time at one end; None if its record or its last stage is missing."""
    last = "tx_xmit_ns" if way == "tx" else "rx_exec_ns"
    if row[f"{way}_ns"] is None or row[last] is None:
        return None
    return sum(row[name] or 0 for name in _PARTS[way])


def _end(row: Row, way: str) -> int | None:
    """When the packet's last stage ended, on its node's clock."""
    length = _length(row, way)
    return None if length is None else int(row[f"{way}_ns"]) + length
