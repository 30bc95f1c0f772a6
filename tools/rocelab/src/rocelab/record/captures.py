# SPDX-License-Identifier: GPL-2.0-or-later
"""Where captures and their traces lie: in a run, a cell, or one size of a cell.

What is found is a regular file, and no link leads to it from the folder that was searched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rocelab.directory import Directory
from rocelab.errors import UsageError
from rocelab.plans.catalog import Provider
from rocelab.record import layout
from rocelab.record.folder import RunFolder

Files = tuple[Path, tuple[Path, ...]]
"""A capture and its traces."""


@dataclass(frozen=True)
class Place:
    """A capture between two nodes, and their drivers' traces."""

    name: str
    wire: Path
    traces: tuple[Path, ...]
    one_clock: bool = False
    """All times come from one clock, so differences between machines are times."""


def places(where: Path) -> list[Place]:
    """Return the captures with traces under a folder: a run's, a cell's, or that of one size.

    Steps without traces (TCP, or measured without rxedump) are left out. Raises OSError.
    """
    clock = one_clock(where)
    with Directory.open(where) as folder:
        steps = list(_steps(folder))
    return [Place(name or where.resolve().name, *files, one_clock=clock) for name, files in steps]


def of_step(step: Directory) -> Files | None:
    """Return a step's capture and traces; None without one of them. Raises OSError."""
    traces = tuple(
        step.path / name for name in step.names() if layout.is_trace(name) and step.is_file(name)
    )
    if not traces or not step.is_file(layout.WIRE_CAPTURE):
        return None
    return step.path / layout.WIRE_CAPTURE, traces


def one_clock(where: Path) -> bool:
    """Say whether a folder is in a run whose nodes stamp with one clock."""
    for folder in (where, *where.resolve().parents[:3]):
        try:
            plan = RunFolder(folder).meta()["plan"]
            return Provider(plan["testbed"]["provider"]).one_clock
        except (UsageError, KeyError, TypeError, ValueError):
            continue
    return False


def _steps(where: Directory) -> Iterator[tuple[str, Files]]:
    """Names and files: a run has cells, a cell has steps, a step has the capture."""
    if files := of_step(where):
        yield "", files
    yield from _inside(where)
    if where.is_folder(layout.CELLS):
        with where.folder(layout.CELLS) as cells:
            for name in _folders(cells):
                with cells.folder(name) as cell:
                    for step, files in _inside(cell):
                        yield f"{name}/{step}", files


def _inside(cell: Directory) -> Iterator[tuple[str, Files]]:
    for name in sorted(_folders(cell), key=_by_size):
        with cell.folder(name) as step:
            if files := of_step(step):
                yield name, files


def _folders(where: Directory) -> list[str]:
    return [name for name in where.names() if not name.startswith(".") and where.is_folder(name)]


def _by_size(name: str) -> tuple[int, str]:
    return int(name) if name.isdecimal() else 0, name
