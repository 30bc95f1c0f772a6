# SPDX-License-Identifier: GPL-2.0-or-later
"""What a step knows of the data link: its capture, or why there is none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rocelab.measure import snaplen
from rocelab.record import frames
from rocelab.record.frames import Frames
from rocelab.testbed.interface import Captured


def count(path: Path, captured: Captured, control_ports: Collection[int]) -> Frames | None:
    """Count the frames of a step's capture; None if there is none."""
    return None if captured.missing else frames.count(path, control_ports=control_ports)


def record(kept: int, captured: Captured, seen: Frames | None) -> dict[str, Any]:
    """Return the entries of cell.json on a step's capture, which kept so much of each frame."""
    if seen is None:
        return {"capture": {"missing": captured.missing}, "frames": None}
    return {"capture": snaplen.record(kept, captured.lost), "frames": asdict(seen)}
