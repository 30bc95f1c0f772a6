# SPDX-License-Identifier: GPL-2.0-or-later
"""How long the cells of earlier runs took, to say how long the next run will take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from rocelab import accelerators
from rocelab.errors import RocelabError
from rocelab.plans.forecast import kind_of
from rocelab.record.folder import RunFolder

_NEWEST = 10
"""As many runs are read, newest first: older ones were measured on what the machine was then."""


def seconds(runs: Path, *, counted: bool | None) -> dict[tuple[str, str, str], list[float]]:
    """Return the seconds of good cells in the folder's newest runs, by tool, title and transport.

    `counted`: only of runs on nodes that count instructions, or only of others; None: of all.
    What is no run, or is damaged, counts as absent.
    """
    taken: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    try:
        # a run's name begins with its time
        folders = sorted((path for path in runs.iterdir() if path.is_dir()), reverse=True)
    except OSError:
        return {}
    for path in islice(folders, _NEWEST):
        try:
            folder = RunFolder.open(path)
            if counted not in (None, _counts(folder.meta())):
                continue
            cells = folder.plan().cells()
            records = [(cell, folder.record(cell.name)) for cell in cells]
        except (RocelabError, OSError):
            continue
        for cell, record in records:
            if record and record.get("status") == "ok":
                begun, ended = (_moment(record.get(key)) for key in ("started", "ended"))
                if begun and ended and ended >= begun:
                    taken[kind_of(cell)].append((ended - begun).total_seconds())
    return dict(taken)


def _counts(meta: Mapping[str, Any]) -> bool:
    return accelerators.of(str(meta.get("accelerator"))).counts_instructions


def _moment(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
