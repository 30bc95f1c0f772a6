# SPDX-License-Identifier: GPL-2.0-or-later
"""Time limits that stand still while this process is stopped, as the whole machine may be."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from typing import IO, BinaryIO, Protocol

_SLICE = 1.0
"""Seconds that are waited at once; so much of a stop counts at most."""


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


def slices(seconds: float) -> Iterator[float]:
    """Yield how long to wait next, until that many seconds have passed awake."""
    left = seconds
    while left > 0:
        length = min(left, _SLICE)
        began = time.monotonic()
        yield length
        left -= min(time.monotonic() - began, length + _SLICE)


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

    Raises subprocess.TimeoutExpired; then, or on any other error, the command has been killed.
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
            for length in slices(seconds):
                try:
                    out, err = process.communicate(timeout=length)
                except subprocess.TimeoutExpired:
                    continue
                return subprocess.CompletedProcess(argv, process.returncode, out, err)
        except BaseException:
            process.kill()
            raise
        process.kill()
    raise subprocess.TimeoutExpired(argv, seconds)


def _memory_file(source: BinaryIO, data: bytes) -> BinaryIO:
    source.write(data)
    source.seek(0)
    return source
