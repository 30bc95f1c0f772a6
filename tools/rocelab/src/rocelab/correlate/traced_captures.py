# SPDX-License-Identifier: GPL-2.0-or-later
"""Find a capture and its traces in a run, a cell or one of its sizes, or as named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rocelab.conditions import system_error
from rocelab.errors import UsageError
from rocelab.record import captures
from rocelab.record.captures import Place


def find(where: Path, traces: Sequence[Path] = (), *, one_clock: bool = False) -> list[Place]:
    """Return what can be joined under `where`. Raises UsageError if there is nothing.

    `where` is the folder of a run, a cell or one size, or a capture whose traces are named. Steps
    without traces (TCP, or measured without rxedump) are left out.
    """
    if traces or where.is_file():
        if not traces:
            raise UsageError(
                f"{where} is a single capture: there is nothing to join it to",
                cause="a join needs the drivers' records in addition to the frames",
                action="Name the nodes' traces: --trace n1.pcapng --trace n2.pcapng.",
            )
        return [Place(where.name, where, tuple(traces), one_clock)]
    if not where.is_dir():
        raise UsageError(
            f"{where} is neither a folder nor a capture",
            cause="it does not exist, cannot be reached, or is a device or a FIFO",
            action="Give a run folder, one of its cells, or a capture with --trace.",
        )
    try:
        places = captures.places(where)
    except OSError as error:
        raise system_error(error, f"{where} cannot be searched for captures") from error
    if not places:
        raise UsageError(
            f"{where} has no capture with traces next to it",
            cause="it was measured without rxedump, or its raw output was removed",
            action='Add "rxedump" to the plan\'s probes and run it again.',
        )
    return places
