# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of each frame a step's capture keeps: a run must not fill the disk.

Every frame is in the capture in any case, so that the proof and the join count as ever. What a cut
frame lacks is its payload and ICRC.
"""

from __future__ import annotations

from rocelab.bench.catalog import Kind
from rocelab.bench.plan import Benchmark, Cell
from rocelab.provider.base import WHOLE_FRAMES

HEADERS_ONLY = 128
"""Snap length (bytes) that has every header that is counted."""
WHOLE_UP_TO = 256 << 20
"""Message bytes of a step whose frames are kept whole."""


def of(cell: Cell, sizes: tuple[int, ...]) -> int:
    """The snap length for a step of these sizes.

    TCP's headers are what is counted, and its super-frames would fill the disk. RoCE frames are
    kept whole, so that their ICRCs can be verified, unless the plan asks for too many bytes or
    leaves open how many there will be.
    """
    if cell.transport.family == "tcp":
        return HEADERS_ONLY
    expected = _message_bytes(cell.benchmark, cell.test.kind, sizes)
    return WHOLE_FRAMES if expected is not None and expected <= WHOLE_UP_TO else HEADERS_ONLY


def record(snaplen: int) -> dict[str, int | bool]:
    """What cell.json says of a step's capture."""
    return {"snaplen": snaplen, "whole_frames": snaplen == WHOLE_FRAMES}


def _message_bytes(benchmark: Benchmark, kind: Kind, sizes: tuple[int, ...]) -> int | None:
    """Those that cross the link at most, but for warm-up and what is sent again; None: not told."""
    if kind is Kind.APPLICATION or benchmark.cpu_util:
        return None
    if kind is Kind.WHOLE_FILE:
        return sum(sizes)
    each = 2 * benchmark.iterations * sum(sizes)  # there and back, or both ways
    mpi = benchmark.mpi
    if mpi is None:
        return each
    if kind is Kind.COLLECTIVE:
        return each * mpi.ranks * mpi.ranks
    pairs = mpi.ranks // 2 if kind is Kind.ALL_PAIRS else 1
    return each * pairs * (mpi.window if kind in _STREAMS else 1)


_STREAMS = {Kind.ONE_WAY, Kind.BOTH_WAYS, Kind.ALL_PAIRS}
