# SPDX-License-Identifier: GPL-2.0-or-later
"""Choose how much of each frame a step's capture keeps, so that a run does not fill the disk.

The capture always has every frame, so the proof and the join still count them all. A truncated
frame lacks only its payload and ICRC.
"""

from __future__ import annotations

from rocelab.plans.catalog import Kind
from rocelab.plans.plan import Benchmark, Cell
from rocelab.testbed.interface import WHOLE_FRAMES

HEADERS_ONLY = 128
"""Snap length (bytes) that includes all headers we count."""
WHOLE_UP_TO = 256 << 20
"""Frames are kept whole up to this many message bytes per step."""


def choose(cell: Cell, sizes: tuple[int, ...]) -> int:
    """Return the snap length for a step of these sizes.

    For TCP we count only headers, and its super-frames would fill the disk. RoCE frames are kept
    whole, so that their ICRCs can be verified, unless the step sends too many bytes or the plan
    does not determine how many.
    """
    if cell.transport.family == "tcp":
        return HEADERS_ONLY
    expected = _message_bytes(cell.benchmark, cell.test.kind, sizes)
    return WHOLE_FRAMES if expected is not None and expected <= WHOLE_UP_TO else HEADERS_ONLY


def record(snaplen: int, lost: int) -> dict[str, int | bool]:
    """Return the entry of a step's capture in cell.json; `lost`: frames that are not in it."""
    return {"snaplen": snaplen, "whole_frames": snaplen == WHOLE_FRAMES, "lost": lost}


def _message_bytes(benchmark: Benchmark, kind: Kind, sizes: tuple[int, ...]) -> int | None:
    """Return the most message bytes that cross the link, without warm-up and retransmissions.

    None if the plan does not determine them.
    """
    if kind is Kind.APPLICATION or benchmark.cpu_util:
        return None
    if kind is Kind.WHOLE_FILE:
        return sum(sizes)
    each = 2 * benchmark.iterations * sum(sizes)  # back and forth, or both ways at once
    mpi = benchmark.mpi
    if mpi is None:
        return each
    if kind is Kind.COLLECTIVE:
        return each * mpi.ranks * mpi.ranks
    pairs = mpi.ranks // 2 if kind is Kind.ALL_PAIRS else 1
    return each * pairs * (mpi.window if kind in _STREAMS else 1)


_STREAMS = {Kind.ONE_WAY, Kind.BOTH_WAYS, Kind.ALL_PAIRS}
