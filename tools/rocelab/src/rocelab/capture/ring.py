# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of a long capture in a directory, while dumpcap or tcpdump writes them.

The writer closes a file before it opens the next one. So all files are complete but the one that
begins last, and the one that was written last, which is another one only where a clock was set
back. A file that begins with other bytes than before was overwritten.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from rocelab._core import capture_start
from rocelab.capture import ring_names
from rocelab.conditions import lack, system_error
from rocelab.errors import UsageError

_HEAD = 4096
"""Bytes by which a file is known: they have the time of a packet."""
_MAGIC = 4
"""Bytes that tell a capture from other files."""
_GLOB = frozenset("*?[")


@dataclass
class Part:
    """A file of the capture."""

    name: str
    inode: int
    head: bytes = b""
    start_ns: int | None = None
    """When its first packet was captured; None before there is one."""
    size: int = -1
    changed_ns: int = 0
    is_taken: bool = False
    """It was read, or cannot be."""
    is_continued: bool = False
    """It has grown since."""

    @property
    def order(self) -> tuple[int, list[tuple[str, int]]]:
        """Sorts parts as they were written."""
        start = self.changed_ns if self.start_ns is None else self.start_ns
        return start, ring_names.order(self.name)


@dataclass
class Ring:
    """Use it as a context, and call `new_parts` again and again."""

    where: str
    """A directory, or a pattern of names in one."""
    missed: list[str] = field(default_factory=list)
    """Files that were gone before they were read, in words; whoever tells of them empties it."""
    others: list[str] = field(default_factory=list)
    """Names that are no part of the capture, likewise."""

    def __post_init__(self) -> None:
        path = Path(self.where)
        self._pattern: str | None = None
        if not path.is_dir() and _GLOB & set(path.name):
            self._pattern, path = path.name, path.parent
        try:
            self._directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise system_error(
                error,
                f"cannot follow {self.where}",
                action="Name the directory into which dumpcap or tcpdump writes.",
            ) from error
        self._parts: dict[str, Part] = {}
        self._series: str | None = None
        self._ignored: set[str] = set()
        self._number: int | None = None
        self._missed_numbers: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._directory)

    def new_parts(self) -> list[Part]:
        """The complete files that were not read yet, in order.

        Raises UsageError if there are files of several captures.
        """
        self._look()
        parts = sorted(self._parts.values(), key=lambda part: part.order)
        if not parts:
            return []
        latest = max(parts, key=lambda part: (part.changed_ns, part.order))
        return [
            part for part in parts[:-1] if part is not latest and part.size and not part.is_taken
        ]

    def rest(self) -> list[Part]:
        """All files that were not read yet, in order: the last one may be incomplete."""
        self._look()
        parts = sorted(self._parts.values(), key=lambda part: part.order)
        return [part for part in parts if part.head and not part.is_taken]

    @contextlib.contextmanager
    def open_part(self, part: Part) -> Iterator[str | None]:
        """A path of the file, which stays the same file; None if it is gone or overwritten.

        Whoever has read it sets `is_taken`.
        """
        self._count(part.name)
        try:
            file = self._open(part.name)
        except OSError:
            self._miss(part, "deleted")
            yield None
            return
        try:
            if not _begins(file, part):
                self._miss(part, "overwritten")
                yield None
            else:
                yield f"/proc/self/fd/{file}"
        finally:
            os.close(file)

    def _count(self, name: str) -> None:
        """Note the numbers that dumpcap gave to files which were never there to be read."""
        number = ring_names.number(name)
        if number is None:
            return
        if self._number is not None and number > self._number + 1:
            # what a look has seen is named
            between = range(self._number + 1, number)
            seen = sum(one in between for one in self._missed_numbers)
            if gone := len(between) - seen:
                self.missed.append(f"{gone} file(s) before {name} were deleted")
        self._number = number
        self._missed_numbers = {one for one in self._missed_numbers if one > number}

    def _miss(self, part: Part, why: str) -> None:
        part.is_taken = True
        self.missed.append(f"{part.name} was {why}")
        number = ring_names.number(part.name)
        if number is not None:
            self._missed_numbers.add(number)

    def _look(self) -> None:
        """Look at all files that have changed since the last time."""
        there = self._names()
        for name in [name for name in self._parts if name not in there]:
            part = self._parts.pop(name)
            packed = next((one for one in there if ring_names.plain(one) == name), None)
            if packed is not None:
                # tcpdump -z: the same packets in another file
                self._parts[packed] = Part(packed, -1, is_taken=part.is_taken)
            elif part.start_ns is not None and not part.is_taken:
                self._miss(part, "deleted")
        for name, state in there.items():
            if name == ring_names.plain(name) or ring_names.plain(name) not in there:
                self._look_at(name, state)

    def _names(self) -> dict[str, os.stat_result]:
        """The files of the capture; raises UsageError if there are several captures."""
        there = {}
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if self._pattern and not fnmatch.fnmatchcase(entry.name, self._pattern):
                    continue
                with contextlib.suppress(OSError):
                    there[entry.name] = entry.stat(follow_symlinks=False)
        self._ignored &= set(there)
        for name, state in there.items():
            if stat.S_ISLNK(state.st_mode):
                self._ignore(name, "is a link")
        return {
            name: state
            for name, state in there.items()
            if stat.S_ISREG(state.st_mode) and self._is_part(name)
        }

    def _is_part(self, name: str) -> bool:
        if name in self._ignored:
            return False
        if self._pattern or name in self._parts or ring_names.series(name) == self._series:
            return True
        if not self._is_capture(name):
            return False
        if self._series is None:
            self._series = ring_names.series(name)
            return True
        if not self._parts:
            raise UsageError(
                f"{self.where} has files of several captures",
                cause=f"the names of {name} and others differ in more than numbers",
                action=f"Name one: --follow '{Path(self.where) / 'PREFIX*'}'.",
            )
        self._ignore(name, "is a file of another capture")
        return False

    def _is_capture(self, name: str) -> bool:
        try:
            file = self._open(name)
        except OSError as error:
            self._ignore(name, f"cannot be read ({error.strerror})")
            return False
        try:
            capture_start(f"/proc/self/fd/{file}")
            # an empty file may become one
            return len(os.pread(file, _MAGIC, 0)) == _MAGIC
        except (OSError, ValueError):
            self._ignore(name, "is no capture")
            return False
        finally:
            os.close(file)

    def _ignore(self, name: str, why: str) -> None:
        if name not in self._ignored:
            self._ignored.add(name)
            self.others.append(f"{name} {why}")

    def _look_at(self, name: str, state: os.stat_result) -> None:
        part = self._parts.get(name)
        if part and (part.inode, part.size, part.changed_ns) == (
            state.st_ino,
            state.st_size,
            state.st_mtime_ns,
        ):
            return
        try:
            file = self._open(name)
        except OSError:
            return
        try:
            state = os.fstat(file)
            head = os.pread(file, _HEAD, 0)
            packed = part is not None and part.inode == -1
            is_same = part and (packed or _is_same(part, state.st_ino, head))
            if part is None or not is_same:
                if part and part.start_ns is not None and not part.is_taken:
                    self._miss(part, "overwritten")
                part = Part(name, state.st_ino)
            if part.is_taken and not part.is_continued and state.st_size > part.size >= 0:
                part.is_continued = True
                self.missed.append(f"{name} was written on after it was read")
            part.inode, part.head = state.st_ino, head
            part.size, part.changed_ns = state.st_size, state.st_mtime_ns
            if part.start_ns is None and head:
                with contextlib.suppress(OSError, ValueError):
                    part.start_ns = capture_start(f"/proc/self/fd/{file}")
        finally:
            os.close(file)
        self._parts[name] = part

    def _open(self, name: str) -> int:
        # a pipe of this name keeps nobody waiting, and a link leads nowhere
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            file = os.open(name, flags, dir_fd=self._directory)
        except OSError as error:
            # the file itself may be good
            if missing := lack(error, f"cannot read {name}"):
                raise missing from error
            raise
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(errno.EINVAL, "it is no file")
        return file


def _begins(file: int, part: Part) -> bool:
    """Whether the open file is the one that was looked at."""
    return _is_same(part, os.fstat(file).st_ino, os.pread(file, _HEAD, 0))


def _is_same(part: Part, inode: int, head: bytes) -> bool:
    return part.inode == inode and head.startswith(part.head)
