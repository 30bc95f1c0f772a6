# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames, counted as those of a capture."""

from __future__ import annotations

import tempfile
from pathlib import Path

from fake_testbed import pcap
from rocelab.record import frames
from rocelab.record.frames import Frames


def count_frames(*whole: bytes, captured: int | None = None) -> Frames:
    """What a capture of these frames holds that kept so many bytes of each (None: all)."""
    with tempfile.TemporaryDirectory(prefix="rocelab-frames-") as folder:
        path = Path(folder) / "wire.pcap"
        path.write_bytes(pcap([(frame[:captured], len(frame)) for frame in whole]))
        return frames.count(path)
