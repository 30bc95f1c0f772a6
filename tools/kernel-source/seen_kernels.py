# SPDX-License-Identifier: GPL-2.0-or-later
"""kernel/seen.csv: the kernels that `make watch-kernels` has seen, and whether the series fits."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Collection, Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

HEADER = """\
# SPDX-License-Identifier: CC0-1.0
# Kernels that `make watch-kernels` has seen (`make watch-kernels WATCH=--write` renews this file).
# line: the kernel line whose series was tried; none: there is none. rxe: a hash of the driver's
# source. refused: the patch of the series that does not apply; empty: all do. releases: of
# Debian's headers. A mainline tree's version ends with its commit.
"""
MAINLINE, NO_LINE = "mainline", "none"


@dataclass(frozen=True)
class Seen:
    """A row."""

    package: str
    """linux-source-X.Y, or mainline"""
    version: str
    line: str
    rxe: str
    refused: str
    releases: str
    """Separated by spaces."""


def read(path: Path) -> list[Seen]:
    """Read the table."""
    rows = [text for text in path.read_text().splitlines() if not text.startswith("#")]
    return [Seen(**row) for row in csv.DictReader(rows)]


def write(path: Path, rows: Iterable[Seen]) -> None:
    """Write the table."""
    with path.open("w", newline="") as file:
        file.write(HEADER)
        table = csv.writer(file, lineterminator="\n")
        table.writerow(field.name for field in fields(Seen))
        table.writerows(astuple(row) for row in rows)


def digest(rxe: Path) -> str:
    """Return a hash of a driver's source: names and contents."""
    total = hashlib.sha256()
    for path in sorted(rxe.iterdir()):
        total.update(f"{path.name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def line_of(version: str, lines: Collection[str]) -> str:
    """Return which of the kernel lines is tried on a version: its own, or that of all its major."""
    number = re.match(r"(\d+)\.\d+", version)
    assert number, version
    candidates = (number[0], f"{number[1]}.x")
    return next((line for line in candidates if line in lines), NO_LINE)


def news(seen: Iterable[Seen], now: Iterable[Seen]) -> tuple[list[Seen], list[Seen]]:
    """Return what was not seen before, and of all that now is, what does not fit any more.

    A kernel that is known not to fit is no news.
    """
    before = {(row.package, row.version): row for row in seen}
    fresh = [row for row in now if (row.package, row.version) not in before]
    broken = [
        row
        for row in now
        if row.refused and not before.get((row.package, row.version), _FITTED).refused
    ]
    return fresh, broken


_FITTED = Seen("", "", "", "", "", "")
