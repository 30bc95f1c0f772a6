# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the native join over a capture and its traces (docs/formats/join.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from rocelab._core import Join
from rocelab.capture import trace_files
from rocelab.conditions import check_are_captures, lack, shrunk, sizes
from rocelab.errors import UsageError

SCHEMA = "rocelab.join/1"
_ROWS = 1 << 17
"""Rows to take from the core at a time."""


@dataclass(frozen=True)
class Joined:
    """A finished join: sums, and a row for each frame and for each record without a frame."""

    sums: dict[str, Any]
    packets: pl.DataFrame

    @property
    def unexplained(self) -> int:
        """Number of rows that nothing explains."""
        return int(self.sums["unexplained"])


def join(
    wire: Path,
    traces: Sequence[Path],
    *,
    ports: Sequence[int] = (),
    window: int = 0,
) -> Joined:
    """Match each frame of `wire` to its sender's and receiver's driver records.

    Memory holds `window` packets (0: the core's default) and the returned rows. Raises UsageError
    if a file cannot be opened, is not a capture, or is one in a trace's place.
    """
    trace_files.check(wire, traces)
    names = [str(wire), *(str(trace) for trace in traces)]
    before = sizes((wire, *traces))
    try:
        core = Join(names[0], names[1:], ports=list(ports), window=window)
    except OSError as error:
        what = f"cannot read {', '.join(names)}"
        raise lack(error, what) or UsageError(
            what,
            cause=str(error),
            action="Name existing pcap or pcapng files.",
        ) from error
    parts = []
    while core.step():
        if core.pending_packets >= _ROWS:
            parts.append(pl.DataFrame(core.take_packets()))
    sums: dict[str, Any] = core.finish()
    parts.append(pl.DataFrame(core.take_packets()))
    packets = pl.concat(parts).sort("wire_packet", nulls_last=True, maintain_order=True)
    check_are_captures(names, sums["errors"])
    for problem in sums["errors"]:
        if problem["file"] == 0 and sums["wire"]["frames"] == 0:
            raise UsageError(
                f"{wire} cannot be used",
                cause=problem["error"],
                action="Check that it is a complete pcap or pcapng capture; capinfos may say more.",
            )
        problem["file"] = names[problem["file"]]
    sums["errors"] += shrunk((wire, *traces), before)
    sums["records"]["lost"] = dict(zip(names[1:], sums["records"]["lost"], strict=True))
    sums["nodes"] = _by_node(packets)
    return Joined({"files": {"wire": names[0], "traces": names[1:]}, **sums}, packets)


def _by_node(packets: pl.DataFrame) -> dict[str, dict[str, int]]:
    """Count records by node and direction, and how many of them have a frame."""
    nodes: dict[str, dict[str, int]] = {}
    for way in ("tx", "rx"):
        with_frame = pl.col("wire_packet").is_not_null()
        counted = (
            packets.filter(pl.col(f"{way}_node").is_not_null())
            .group_by(f"{way}_node")
            .agg(pl.len().alias("all"), with_frame.sum().alias("matched"))
        )
        for name, every, matched in counted.sort(f"{way}_node").iter_rows():
            nodes.setdefault(name, {}).update({way: every, f"{way}_matched": matched})
    return dict(sorted(nodes.items()))
