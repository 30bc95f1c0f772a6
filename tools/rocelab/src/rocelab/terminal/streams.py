# SPDX-License-Identifier: GPL-2.0-or-later
"""Standard output and error that keep the exit code true, wherever they lead."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

from rocelab.errors import UsageError

_OUT, _ERR = 1, 2


class _Output(io.FileIO):
    """A stream that takes everything once nobody reads it.

    A reader such as `head` that has enough does not change what the command found, so its exit
    code stays. Any other error of standard output is raised once, and names it.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)
        self._number = number
        self._lost = False

    def write(self, data: ReadableBuffer, /) -> int:
        size = memoryview(data).nbytes
        if self._lost:
            return size
        try:
            return super().write(data) or 0
        except OSError as error:
            self._lost = True
            if self._number == _ERR or isinstance(error, BrokenPipeError):
                return size
            raise OSError(error.errno, error.strerror, "standard output") from error


def _is_file(stream: TextIO | None, number: int) -> bool:
    """Whether the stream is the process's own, not one that a test puts in its place."""
    try:
        return stream is not None and stream.fileno() == number
    except (OSError, ValueError):
        return False


def install() -> None:
    """Put such streams in place. Raises UsageError when standard output is closed."""
    missing = {number for number in (0, _OUT, _ERR) if not _is_open(number)}
    for _ in missing:
        # the lowest free number: no file that is opened later takes a stream's place
        os.open(os.devnull, os.O_RDWR)
    for number, name in ((_OUT, "stdout"), (_ERR, "stderr")):
        stream = getattr(sys, name)
        if stream is None or _is_file(stream, number):
            buffer = io.BufferedWriter(_Output(number))
            by_line = number == _ERR or (stream is not None and stream.isatty())
            new = io.TextIOWrapper(
                buffer, "utf-8", errors="backslashreplace", line_buffering=by_line
            )
            setattr(sys, name, new)
    if _OUT in missing:
        raise UsageError(
            "cannot write to standard output: it is closed",
            cause="the shell or the program that started rocelab closed it (`>&-`)",
            action="Leave it open; send what you do not need to /dev/null.",
        )


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def flush() -> None:
    """Write out what is buffered. Raises OSError when standard output cannot take it."""
    sys.stdout.flush()
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
