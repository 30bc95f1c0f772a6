# SPDX-License-Identifier: GPL-2.0-or-later
"""What a step knows of the data link: its capture, or why there is none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rocelab.measure import snaplen
from rocelab.record import frames, frames_beyond
from rocelab.record.frames import Frames
from rocelab.testbed.interface import Captured


def count(path: Path, captured: Captured, control_ports: Collection[int]) -> Frames | None:
    """Count a step's frames, those in its capture and those beyond; None if nothing captured."""
    if captured.missing:
        return None
    seen = frames.count(path, control_ports=control_ports)
    captured.not_kept = frames_beyond.add(seen, captured.beyond, control_ports)
    return seen


def record(frame_bytes: int, captured: Captured, seen: Frames | None) -> dict[str, Any]:
    """Return the entries of cell.json on a step's capture, which kept so much of each frame."""
    if seen is None:
        return {"capture": {"missing": captured.missing}, "frames": None}
    capture = snaplen.record(frame_bytes, captured.lost) | {"not_kept": captured.not_kept}
    return {"capture": capture, "frames": asdict(seen)}
