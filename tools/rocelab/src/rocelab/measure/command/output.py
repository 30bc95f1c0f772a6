# SPDX-License-Identifier: GPL-2.0-or-later
"""What commands print: passed on byte by byte, or line by line with a node's name in front."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

_CHUNK = 1 << 16
_LONGEST = 1 << 16
"""Bytes of a line without an end that are held back; what is longer becomes several lines."""
MAX_KEPT = 16 << 20
"""Bytes of a stream that are kept in a file."""
_TAIL = 2000
"""Bytes of a stream that are kept for an error message."""


class Stream:
    """Standard output or error of this process; several threads may write to it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def write(self, data: bytes) -> None:
        """Write all of it. Raises OSError."""
        with self._lock:
            left = memoryview(data)
            while left:
                try:
                    left = left[os.write(self._descriptor, left) :]
                except BlockingIOError:
                    # somebody who shares it made it so
                    select.select((), (self._descriptor,), ())

    def end(self) -> None:
        """Do nothing: nothing is held back."""


class Lines:
    """Whole lines for a stream, with the name of a node in front of each, if one is given."""

    def __init__(self, stream: Stream, name: str) -> None:
        self._stream = stream
        self._front = f"{name}: ".encode() if name else b""
        self._held = b""

    def write(self, data: bytes) -> None:
        """Pass on what are whole lines. Raises OSError."""
        *whole, self._held = (self._held + data).split(b"\n")
        if len(self._held) >= _LONGEST:
            whole.append(self._held)
            self._held = b""
        if whole:
            self._stream.write(b"".join(self._front + line + b"\n" for line in whole))

    def end(self) -> None:
        """Pass on a line that did not end. Raises OSError."""
        if self._held:
            self._stream.write(self._front + self._held + (b"\n" if self._front else b""))


class Kept:
    """A file with the beginning of a stream."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._left = MAX_KEPT

    def write(self, data: bytes) -> None:
        """Add it, as far as the file may grow. Raises OSError."""
        self._file.write(data[: self._left])
        self._left = max(0, self._left - len(data))

    def end(self) -> None:
        """Close the file. Raises OSError."""
        self._file.close()


class LookFor:
    """Calls `on_match` once when a line has `needle`."""

    def __init__(self, needle: bytes, on_match: Callable[[], None]) -> None:
        self._needle = needle
        self._on_match: Callable[[], None] | None = on_match
        self._held = b""

    def write(self, data: bytes) -> None:
        """Look through it."""
        if self._on_match is None:
            return
        self._held += data
        if self._needle in self._held:
            self._on_match()
            self._on_match, self._held = None, b""
        else:
            # the needle may have begun
            self._held = self._held[len(self._held) - len(self._needle) + 1 :]

    def end(self) -> None:
        """Do nothing."""


Sink = Stream | Lines | LookFor | Kept


class Copy(threading.Thread):
    """Copies a command's stream to its end; never holds more of it than a line."""

    def __init__(self, source: IO[bytes], sinks: Sequence[Sink]) -> None:
        super().__init__(daemon=True)
        self._source = source
        self._sinks = sinks
        self.tail = b""
        """The end of what came."""
        self.failed: OSError | None = None
        """What prevented it, unless nobody reads any more."""
        self.start()

    def run(self) -> None:
        """Copy, and close the stream: whoever still writes to it then gets SIGPIPE."""
        with self._source:
            try:
                while data := os.read(self._source.fileno(), _CHUNK):
                    self.tail = (self.tail + data)[-_TAIL:]
                    for sink in self._sinks:
                        sink.write(data)
                for sink in self._sinks:
                    sink.end()
            except BrokenPipeError:
                pass
            except OSError as error:
                self.failed = error


def feed(source: int, into: IO[bytes]) -> None:
    """Copy a descriptor's input into a command's, in a thread that nobody waits for."""

    # reading from its terminal would stop this process in the background (SIGTTIN)
    if os.isatty(source) and os.tcgetpgrp(source) != os.getpgrp():
        into.close()
        return

    def copy() -> None:
        try:
            with into:
                while data := os.read(source, _CHUNK):
                    into.write(data)
                    into.flush()
        except (OSError, ValueError):
            pass  # the command no longer reads, or there is no input

    threading.Thread(target=copy, daemon=True).start()
