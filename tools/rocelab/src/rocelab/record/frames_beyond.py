# SPDX-License-Identifier: GPL-2.0-or-later
"""Read what linktap counted beyond the bound of its file, and add it to the frames in the file."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from rocelab import json_text
from rocelab.errors import CellError
from rocelab.record.frames import Frames

SCHEMA = "rocelab.linktap/1"
_SAME = (
    *("frames", "bytes", "roce_v1", "roce_v2", "roce_data", "roce_data_bytes"),
    *("roce_payload_bytes", "other", "undecoded"),
)
"""Numbers that `Frames` has by the same names."""
_MAX_COUNT = 2**63


def add(seen: Frames, documents: Iterable[str], control_ports: Collection[int] = ()) -> int:
    """Add the counts of each document to `seen`; return how many frames they are.

    TCP on `control_ports` is not the benchmark's. Raises CellError when one is no such document.
    """
    before = seen.frames
    for text in documents:
        try:
            _add(seen, json_text.parse_any(text), control_ports)
        except (ValueError, LookupError, TypeError) as error:
            raise CellError(
                "the capture did not say what it counted",
                cause=f"linktap printed {text!a:.80}",
                action="Run `rocelab hosts prepare` again.",
            ) from error
    return seen.frames - before


def _add(seen: Frames, counted: dict[str, Any], control_ports: Collection[int]) -> None:
    if counted["schema"] != SCHEMA:
        raise ValueError(SCHEMA)
    for name in _SAME:
        setattr(seen, name, getattr(seen, name) + _number(counted[name]))
    for tcp in counted["tcp"]:
        frames, data = _number(tcp["frames"]), _number(tcp["data"])
        bytes_, payload = _number(tcp["data_bytes"]), _number(tcp["payload_bytes"])
        if not control_ports or not set(tcp["ports"]) & set(control_ports):
            kind = "iwarp" if tcp["iwarp"] is True else "tcp"
            more = {"": frames, "_data": data, "_data_bytes": bytes_, "_payload_bytes": payload}
        else:
            kind, more = "control", {"": frames, "_payload_bytes": payload}
        for suffix, number in more.items():
            setattr(seen, kind + suffix, getattr(seen, kind + suffix) + number)


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MAX_COUNT:
        raise ValueError(value)
    return value
