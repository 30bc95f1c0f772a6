# SPDX-License-Identifier: GPL-2.0-or-later
"""Count what a capture of the data link holds: kinds of frames, message bytes.

The Rust core counts (crates/engine/src/frame_counts.rs) without a check of the frames themselves;
linktap counts in the same way (ebpf/linktap/count.c).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from rocelab._core import count_frames
from rocelab.conditions import lack
from rocelab.errors import CellError


@dataclass
class Frames:
    """What a capture holds; docs/formats/run.md describes each number."""

    frames: int = 0
    bytes: int = 0
    roce_v1: int = 0
    roce_v2: int = 0
    roce_data: int = 0
    roce_data_bytes: int = 0
    roce_payload_bytes: int = 0
    tcp: int = 0
    tcp_data: int = 0
    tcp_data_bytes: int = 0
    tcp_payload_bytes: int = 0
    iwarp: int = 0
    iwarp_data: int = 0
    iwarp_data_bytes: int = 0
    iwarp_payload_bytes: int = 0
    control: int = 0
    control_payload_bytes: int = 0
    other: int = 0
    undecoded: int = 0

    @property
    def over_tcp(self) -> int:
        """Bytes that TCP carried, with those of iWARP."""
        return self.tcp_payload_bytes + self.iwarp_payload_bytes


def count(path: Path, *, control_ports: Collection[int] = frozenset()) -> Frames:
    """Count the frames of a capture file; TCP on `control_ports` is not the benchmark's.

    Raises CellError when it is no capture, or cut off, and MissingError if this machine lacks what
    it takes to read it.
    """
    try:
        return Frames(**count_frames(path, control_ports=list(control_ports)))
    except (OSError, ValueError) as error:
        raise lack(error, f"cannot read {path}") or CellError(
            f"{path.name} is not a complete capture of an Ethernet link: {error}",
            cause="the capture ended before its last record was written",
        ) from error
