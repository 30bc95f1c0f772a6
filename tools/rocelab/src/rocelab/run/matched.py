# SPDX-License-Identifier: GPL-2.0-or-later
"""Values for results.parquet from a step's capture and its traces (docs/formats/join.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rocelab import correlate
from rocelab.bench.tool import Value
from rocelab.correlate import Joined, places
from rocelab.correlate.life import Life, median_life
from rocelab.errors import CellError, UsageError

WIRE = "wire"
_KIND = "median_message"
_AT_REQUESTER = ("tx", "answer_rx")


def values(folder: Path) -> Iterator[tuple[str, Value]]:
    """(node, value) of one size; nothing where rxedump did not run.

    Raises CellError when the files are there and cannot be joined.
    """
    if not (folder / places.WIRE).is_file() or not any(folder.glob("*.pcapng*")):
        return
    try:
        (place,) = correlate.find(folder)
        joined = correlate.join(place.wire, place.traces)
    except UsageError as error:
        raise CellError(error.what, cause=error.cause) from error
    yield from ((WIRE, value) for value in _shares(joined))
    life = median_life(correlate.messages(joined.packets, one_clock=place.one_clock))
    if life is not None:
        yield from _life(life)


def _shares(joined: Joined) -> Iterator[Value]:
    sums = joined.sums
    wire, records = sums["wire"], sums["records"]
    yield Value("join.frames", "counter", wire["frames"], "1")
    yield Value("join.again", "counter", wire["again"], "1")
    yield Value("join.unexplained", "counter", sums["unexplained"], "1")
    for way, side, alone in (
        ("tx", "sent", records["tx_alone"]),
        ("rx", "received", records["rx_alone"]),
    ):
        yield Value(f"join.{way}.records", "counter", records[way], "1")
        yield Value(f"join.{way}.matched", "counter", wire[side].get("matched", 0), "1")
        for cause in sorted({*wire[side], *alone} - {"matched"}):
            count = wire[side].get(cause, 0) + alone.get(cause, 0)
            yield Value(f"join.{way}.{cause}", "counter", count, "1")


def _life(life: Life) -> Iterator[tuple[str, Value]]:
    yield WIRE, Value("life.of", _KIND, life.of, "1")
    for name, ns in life.spans.items():
        yield life.requester, Value(f"life.span.{name}", _KIND, ns, "ns")
    for place, stages in life.stages.items():
        node = life.requester if place in _AT_REQUESTER else life.responder
        for stage, ns in stages.items():
            yield node, Value(f"life.{place}.{stage}", _KIND, ns, "ns")
