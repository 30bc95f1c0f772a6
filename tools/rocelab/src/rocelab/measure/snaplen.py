# SPDX-License-Identifier: GPL-2.0-or-later
"""Choose how much of each frame a step's capture keeps, so that a run does not fill the disk.

The capture always has every frame, so the proof and the join still count them all. A truncated
frame lacks only its payload and ICRC.
"""

from __future__ import annotations

from rocelab.plans import steps
from rocelab.plans.plan import Cell
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
    if cell.benchmark.command:
        return WHOLE_FRAMES  # the file is bounded anyway, and a user's packets are to be verified
    expected = steps.message_bytes(cell.benchmark, sizes)
    return WHOLE_FRAMES if expected is not None and expected <= WHOLE_UP_TO else HEADERS_ONLY


def record(snaplen: int, lost: int) -> dict[str, int | bool]:
    """Return the entry of a step's capture in cell.json; `lost`: frames that are not in it."""
    return {"snaplen": snaplen, "whole_frames": snaplen == WHOLE_FRAMES, "lost": lost}
