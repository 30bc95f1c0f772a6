# SPDX-License-Identifier: GPL-2.0-or-later
"""Refuse a capture and traces that were named in each other's place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rocelab._core import trace_origin
from rocelab.errors import UsageError

_MAX_TRACES = 1024
"""Of the core."""


def check(wire: Path, traces: Sequence[Path]) -> None:
    """Refuse what is no file or is named twice, a trace as the capture, and a capture as a trace.

    Without this, a capture named as its own trace has no record, and all its frames would be
    explained by that. Files that cannot be read are left to who reads them. Raises UsageError.
    """
    for path in (wire, *traces):
        _check_is_file(path)
    if not traces:
        return
    if len(traces) > _MAX_TRACES:
        raise UsageError(
            f"{len(traces)} traces are too many",
            cause=f"one capture is joined with at most {_MAX_TRACES}, one of each node",
            action="Name the traces of the nodes whose frames are in the capture.",
        )
    for number, trace in enumerate(traces):
        for other in (wire, *traces[:number]):
            if trace.exists() and other.exists() and trace.samefile(other):
                raise UsageError(
                    f"{trace} is named twice",
                    cause="a capture and each node's trace are different files",
                    action="Name the capture between the nodes once, and each trace once.",
                )
    if _origin(wire) == "rxedump":
        raise UsageError(
            f"{wire} is a trace of rxedump, not a capture between nodes",
            cause="it has what one driver sent and received, not what crossed the link",
            action="Name the capture first, and each node's trace after --trace.",
        )
    for trace in traces:
        if _origin(trace) == "other":
            raise UsageError(
                f"{trace} is no trace of rxedump",
                cause="no packet at its beginning has a driver's record, and no session is in it",
                action="Name what rxedump wrote after --trace; a plan's probe writes NODE.pcapng.",
            )


def _check_is_file(path: Path) -> None:
    if path.is_dir():
        raise UsageError(
            f"{path} is a folder",
            cause="a capture and each node's trace are files",
            action="Name the files in it.",
        )
    if path.exists() and not path.is_file():
        raise UsageError(
            f"{path} is not a file",
            cause="it is read twice, and a stream can be read only once",
            action="Write it to a file first.",
        )


def _origin(path: Path) -> str:
    try:
        return trace_origin(path)
    except OSError:
        return "unknown"
