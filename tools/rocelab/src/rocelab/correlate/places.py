# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a capture and its traces lie: in a run, a cell, one size of a cell, or as named."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rocelab.errors import UsageError

WIRE = "wire.pcap"
_TRACES = "*.pcapng*"
"""Rotated ones have a number behind their name."""
_ONE_CLOCK = frozenset({"veth"})
"""Providers whose endpoints, and their capture, share one machine."""


@dataclass(frozen=True)
class Place:
    """A capture between two nodes, and what their drivers recorded."""

    name: str
    wire: Path
    traces: tuple[Path, ...]
    one_clock: bool = False
    """Every time is of the same clock, so that differences between places are times."""


def find(where: Path, traces: Sequence[Path] = (), *, one_clock: bool = False) -> list[Place]:
    """Return what can be joined under `where`; UsageError when there is nothing.

    `where` is a run folder, a cell's, that of one size, or a capture, whose traces must be named.
    Steps without traces (TCP, or measured without rxedump) are left out.
    """
    if traces or where.is_file():
        if not traces:
            raise UsageError(
                f"{where} is one capture: there is nothing to join it with",
                action="name the nodes' traces: --trace n1.pcapng --trace n2.pcapng",
            )
        return [Place(where.name, where, tuple(traces), one_clock)]
    if not where.is_dir():
        raise UsageError(
            f"{where} is neither a folder nor a capture",
            action="give a run folder, a cell of it, or a capture with --trace",
        )
    found = list(_folders(where))
    if not found:
        raise UsageError(
            f"{where} holds no capture with traces beside it",
            cause="it was measured without rxedump, or its raw output was taken away",
            action='put "rxedump" into the plan\'s probes and run it again',
        )
    return found


def _folders(where: Path) -> Iterator[Place]:
    root = next((one for one in (where, *where.resolve().parents[:3]) if _is_run(one)), None)
    one_clock = root is not None and _provider(root) in _ONE_CLOCK
    # a run has cells, a cell has sizes, a size has the capture
    for pattern in (WIRE, f"*/{WIRE}", f"cells/*/*/{WIRE}"):
        for wire in sorted(where.glob(pattern), key=_order):
            folder = wire.parent
            traces = tuple(sorted(folder.glob(_TRACES)))
            if traces and not folder.parent.name.startswith("."):
                name = str(folder.relative_to(where)).removeprefix("cells/")
                yield Place(folder.name if name == "." else name, wire, traces, one_clock)


def _order(wire: Path) -> tuple[str, int, str]:
    size = wire.parent.name
    return str(wire.parent.parent), int(size) if size.isdecimal() else 0, size


def _is_run(folder: Path) -> bool:
    return (folder / "run.json").is_file()


def _provider(run: Path) -> str:
    try:
        meta = json.loads((run / "run.json").read_text("utf-8"))
        return str(meta["plan"]["testbed"]["provider"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
