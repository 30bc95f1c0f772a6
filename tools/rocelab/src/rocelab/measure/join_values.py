# SPDX-License-Identifier: GPL-2.0-or-later
"""Values for results.parquet from a step's capture and its traces (docs/formats/join.md)."""

from __future__ import annotations

from collections.abc import Iterator

from rocelab import correlate, metrics
from rocelab.correlate import Joined
from rocelab.correlate.median_message import median_message
from rocelab.directory import Directory
from rocelab.errors import CellError, UsageError
from rocelab.plans.benchmarks.tool import Value
from rocelab.record import captures
from rocelab.record.results_table import WIRE


def values(step: Directory) -> Iterator[tuple[str, Value]]:
    """(node, value) of one size; nothing where rxedump did not run.

    Raises CellError when the files are there and cannot be joined.
    """
    files = captures.of_step(step)
    if files is None:
        return
    try:
        joined = correlate.join(*files)
    except UsageError as error:
        raise CellError(error.what, cause=error.cause) from error
    yield from ((WIRE, value) for value in _shares(joined))
    messages = correlate.messages(joined.packets, one_clock=captures.one_clock(step.path))
    typical = median_message(messages)
    if typical is not None:
        yield from typical.life.values()


def _shares(joined: Joined) -> Iterator[Value]:
    sums = joined.sums
    wire, records = sums["wire"], sums["records"]
    yield Value(metrics.Joined(None, "frames").name, "counter", wire["frames"], "1")
    yield Value(metrics.Joined(None, "again").name, "counter", wire["again"], "1")
    yield Value(metrics.Joined(None, "unexplained").name, "counter", sums["unexplained"], "1")
    for way, side, alone in (
        ("tx", "sent", records["tx_alone"]),
        ("rx", "received", records["rx_alone"]),
    ):
        yield Value(metrics.Joined(way, "records").name, "counter", records[way], "1")
        yield Value(
            metrics.Joined(way, "matched").name, "counter", wire[side].get("matched", 0), "1"
        )
        for cause in sorted({*wire[side], *alone} - {"matched"}):
            count = wire[side].get(cause, 0) + alone.get(cause, 0)
            yield Value(metrics.Joined(way, cause).name, "counter", count, "1")
