# SPDX-License-Identifier: GPL-2.0-or-later
"""The capture corpus for tests: its folder and its generators."""

from __future__ import annotations

import sys
from pathlib import Path

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
sys.path.insert(0, str(CAPTURES))

import scenarios  # type: ignore[import-not-found] # noqa: E402
from generator import crc, files, fragments, frames, lossy_wire, schedule  # type: ignore[import-not-found] # noqa: E402

__all__ = [
    "CAPTURES",
    "IN_WIRESHARK",
    "SAMPLES",
    "crc",
    "files",
    "fragments",
    "frames",
    "lossy_wire",
    "scenarios",
    "schedule",
]

SAMPLES = sorted(
    path.name for path in CAPTURES.iterdir() if path.suffix in {".pcap", ".pcapng", ".gz", ".zst"}
)
"""File names of all samples."""
IN_WIRESHARK = [name for name in SAMPLES if name != "infiniband.pcap"]
"""Those whose link type Wireshark reads."""
