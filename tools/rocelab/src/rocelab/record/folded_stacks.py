# SPDX-License-Identifier: GPL-2.0-or-later
"""rxecpu's folded stacks (docs/man/rxecpu.8.md#stacks): where processors spent their time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rocelab import limits
from rocelab.directory import Directory
from rocelab.record.folder import RunFolder
from rocelab.record.text import one_line

_PREFIX, _SUFFIX = "rxecpu.", ".folded"
_MAX_FRAMES = 300
"""Of a stack: rxecpu keeps 127 of the kernel and as many of the program."""
_LINE = re.compile(rb"running;([\x21-\x7e]{1,40000}) ([0-9]{1,15})")

Frames = tuple[str, ...]
"""From the outermost: context, owner, command, then functions."""


@dataclass(frozen=True)
class Stacks:
    """Time on a processor by stack, of all nodes, sizes and repetitions of a kind of cell."""

    tool: str
    test: str
    transport: str
    microseconds: Mapping[Frames, int]


def file_name(machine: str) -> str:
    """Where a machine's stacks lie in a step's folder; it is named by its nodes."""
    return f"{_PREFIX}{machine}{_SUFFIX}"


def parse(text: bytes) -> Iterator[tuple[Frames, int]]:
    """Yield the stacks of code that ran, with its microseconds; other lines are skipped."""
    for line in text.splitlines():
        if match := _LINE.fullmatch(line):
            frames = tuple(match[1].decode("ascii").split(";"))
            if len(frames) <= _MAX_FRAMES:
                yield frames, int(match[2])


def load(folder: RunFolder, cells: Sequence[str]) -> tuple[Stacks, ...]:
    """Read those of finished cells. What is missing or damaged is left out."""
    sums: dict[tuple[str, str, str], Counter[Frames]] = {}
    for name in cells:
        record = folder.record(name) or {}
        key = tuple(one_line(str(record.get(part, ""))) for part in ("tool", "test", "transport"))
        for text in _files(folder, name):
            total = sums.setdefault((key[0], key[1], key[2]), Counter())
            for frames, microseconds in parse(text):
                total[frames] += microseconds
    return tuple(Stacks(*key, total) for key, total in sums.items() if total)


def _files(folder: RunFolder, cell: str) -> Iterator[bytes]:
    try:
        with folder.raw(cell) as raw:
            for step in filter(raw.is_folder, raw.names()):
                with raw.folder(step) as files:
                    yield from _of_step(files)
    except OSError:
        return


def _of_step(files: Directory) -> Iterator[bytes]:
    for name in files.names():
        if name.startswith(_PREFIX) and name.endswith(_SUFFIX) and files.is_file(name):
            yield files.read(name, limit=limits.MAX_STACKS_BYTES)
