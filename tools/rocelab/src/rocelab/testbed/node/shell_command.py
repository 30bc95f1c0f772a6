# SPDX-License-Identifier: GPL-2.0-or-later
"""A command that runs in a shell on a machine, which runs others after it."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO

_CHUNK = 1 << 16
_NO_STATUS = 255
"""As of ssh(1): the shell, or the way to it, ended before it said the command's."""


class ShellCommand:
    """The command, with what subprocess.Popen has for one without input."""

    def __init__(
        self,
        argv: Sequence[str],
        shell: subprocess.Popen[bytes],
        mark: bytes,
        when_ended: Callable[[int], None],
    ) -> None:
        """Follow the streams of `shell` until `mark` says on both that the command has ended.

        `when_ended` gets its exit status before `wait` returns it.
        """
        self.stdin: IO[bytes] | None = None
        self._argv = list(argv)
        self._shell = shell
        self._is_over = False
        self._when_ended = when_ended
        self._status = _NO_STATUS
        self._ended = threading.Event()
        self.stdout, out = _pipe()
        self.stderr, err = _pipe()
        copies = [
            threading.Thread(target=self._copy, args=(source, into, mark), daemon=True)
            for source, into in ((shell.stdout, out), (shell.stderr, err))
        ]
        for copy in copies:
            copy.start()
        threading.Thread(target=self._end, args=(copies,), daemon=True).start()

    def _copy(self, source: IO[bytes], into: int, mark: bytes) -> None:
        status = _copy(source.fileno(), into, mark)
        os.close(into)
        if status.isdigit():
            self._status = int(status)

    def _end(self, copies: Sequence[threading.Thread]) -> None:
        for copy in copies:
            copy.join()
        self._is_over = True
        self._when_ended(self._status)
        self._ended.set()

    def poll(self) -> int | None:
        """Return its exit status if it has ended."""
        return self._status if self._ended.is_set() else None

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit status. Raises subprocess.TimeoutExpired."""
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(self._argv, timeout or 0)
        return self._status

    def kill(self) -> None:
        """End the shell if the command has not ended, which goes on there."""
        if not self._is_over:
            self._shell.kill()


def _pipe() -> tuple[IO[bytes], int]:
    ours, theirs = os.pipe()
    return os.fdopen(ours, "rb"), theirs


def _copy(source: int, into: int, mark: bytes) -> bytes:
    """Copy a stream until a line's end after `mark`; return what is between, or nothing."""
    pending = b""
    while True:
        position = pending.find(mark)
        if position < 0:
            position = len(pending) - _partial_length(pending, mark)
        elif (end := pending.find(b"\n", position)) >= 0:
            _write(into, pending[:position])
            return pending[position + len(mark) : end].strip()
        _write(into, pending[:position])
        pending = pending[position:]
        chunk = os.read(source, _CHUNK)
        if not chunk:
            _write(into, pending)
            return b""
        pending += chunk


def _partial_length(text: bytes, mark: bytes) -> int:
    """How many bytes at the end of `text` may be the beginning of `mark`."""
    longest = min(len(text), len(mark) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(mark[:n])), 0)


def _write(into: int, data: bytes) -> None:
    # nobody may read it any more
    with suppress(BrokenPipeError):
        while data:
            data = data[os.write(into, data) :]
