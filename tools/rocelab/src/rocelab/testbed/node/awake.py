# SPDX-License-Identifier: GPL-2.0-or-later
"""Time limits that stand still while this process is stopped, as the whole machine may be.

Signals reach the main thread only; an `Interruption` takes them to the waits of other threads.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO, Protocol

from rocelab import limits

SLICE = 1.0
"""Seconds that are waited at once; so much of a stop counts at most."""
_CHUNK = 1 << 16


class TooMuchOutputError(Exception):
    """A command printed more than limits.MAX_PRINTED_BYTES."""


class LocalProcess(Protocol):
    """What stands here for a command on a node: a process, or a shell that runs several."""

    stdin: IO[bytes] | None

    @property
    def stdout(self) -> IO[bytes] | None:
        """Its standard output."""

    @property
    def stderr(self) -> IO[bytes] | None:
        """Its standard error."""

    def poll(self) -> int | None:
        """Return its exit status if it has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit status. Raises subprocess.TimeoutExpired."""

    def kill(self) -> None:
        """End it here."""


class Interruption:
    """Ends the waits of the threads that heed it, once in each: they then clean up."""

    def __init__(self) -> None:
        # a thread may begin others: what ends it ends them
        self._outer: Interruption | None = getattr(_heeded, "by", None)
        self._came = False

    def come(self) -> None:
        """Have each of those threads raise KeyboardInterrupt where it next waits."""
        self._came = True

    @contextmanager
    def heed(self) -> Iterator[None]:
        """Heed it in this thread."""
        _heeded.by = self
        try:
            yield
        finally:
            _heeded.by = None

    @property
    def has_come(self) -> bool:
        """Whether this thread is to end."""
        return self._came or (self._outer is not None and self._outer.has_come)


_heeded = threading.local()


def _heed() -> None:
    by: Interruption | None = getattr(_heeded, "by", None)
    if by is not None and by.has_come:
        _heeded.by = None
        raise KeyboardInterrupt


def slices(seconds: float) -> Iterator[float]:
    """Yield how long to wait next, until that many seconds have passed awake.

    Raises KeyboardInterrupt after an Interruption.
    """
    left = seconds
    while left > 0:
        _heed()
        length = min(left, SLICE)
        began = time.monotonic()
        yield length
        left -= min(time.monotonic() - began, length + SLICE)


def wait(process: LocalProcess, seconds: float) -> int:
    """Return a process's exit status. Raises subprocess.TimeoutExpired."""
    command = ""
    for length in slices(seconds):
        try:
            return process.wait(length)
        except subprocess.TimeoutExpired as expired:
            command = expired.cmd
    raise subprocess.TimeoutExpired(command, seconds)


def run(argv: list[str], *, stdin: bytes, seconds: float) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a new session, otherwise as subprocess.run does.

    Raises subprocess.TimeoutExpired and TooMuchOutputError; then, or on any other error, the
    command has been killed.
    """
    # a file, because Popen.communicate forgets what it has not written when its time is over
    with (
        os.fdopen(os.memfd_create("stdin"), "w+b") as source,
        subprocess.Popen(
            argv,
            stdin=_memory_file(source, stdin),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process,
    ):
        try:
            out, err = _outputs(process, seconds)
            return subprocess.CompletedProcess(argv, wait(process, seconds), out, err)
        except BaseException:
            process.kill()
            raise


def _outputs(process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bytes]:
    """Read both streams to their ends."""
    assert process.stdout is not None
    assert process.stderr is not None
    streams = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as ready:
        for stream, output in streams.items():
            ready.register(stream, selectors.EVENT_READ, output)
        for length in slices(seconds):
            until = time.monotonic() + length
            while ready.get_map() and (left := until - time.monotonic()) > 0:
                for key, _ in ready.select(left):
                    if chunk := os.read(key.fd, _CHUNK):
                        add(key.data, chunk)
                    else:
                        ready.unregister(key.fileobj)
            if not ready.get_map():
                out, err = streams.values()
                return bytes(out), bytes(err)
    raise subprocess.TimeoutExpired(process.args, seconds)


def add(output: bytearray, chunk: bytes) -> None:
    """Add to what a command has printed. Raises TooMuchOutputError."""
    if len(output) + len(chunk) > limits.MAX_PRINTED_BYTES:
        raise TooMuchOutputError
    output.extend(chunk)


def _memory_file(source: BinaryIO, data: bytes) -> BinaryIO:
    source.write(data)
    source.seek(0)
    return source
