# SPDX-License-Identifier: GPL-2.0-or-later
"""Shells that wait on a machine for commands, which then need no session and no login shell there.

A session costs round trips, processes of sshd, and the user's login shell, which takes seconds
where it loads modules or where the home folder is on a slow network.
"""

from __future__ import annotations

import os
import re
import secrets
import select
import selectors
import shlex
import subprocess
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import IO

from rocelab.testbed.node import awake, local_process
from rocelab.testbed.node.shell_command import ShellCommand

_KEPT = 3
"""How many wait at most: sshd allows ten sessions on a connection (MaxSessions)."""
_BY_A_SIGNAL = 128
"""The exit status of a command that a signal ended is greater."""
_CHUNK = 1 << 16
_MAX_LAST_WORDS = 1 << 16
_END_BYTES = 64
"""More than the line that says a command's end."""
# Runs its words as a command, and then says on both streams that it has ended.
_DEFINE = """rocelab_run() {{
("$@") </dev/null
set -- "$?"
echo "{mark} $1"
echo "{mark}" >&2
}}
rocelab_run true
"""


class ShellEndedError(Exception):
    """The shell, or the way to it, ended before its command did; `output` is its last stderr."""

    def __init__(self, output: bytes) -> None:
        super().__init__(output)
        self.output = output


class WaitingShell:
    """A shell that reads commands from its standard input; one thread at a time may use it."""

    def __init__(self, login: Sequence[str]) -> None:
        """Start it, without waiting for it; the command line `login` runs sh(1) there."""
        # no command can print it by chance
        self._mark = f"rocelab-{secrets.token_hex(8)}"
        self._out_end = re.compile(rb"%s (\d{1,3})\n\Z" % self._mark.encode())
        self._err_end = f"{self._mark}\n".encode()
        self._answers = False
        self._process = local_process.start(login, lifeline=True)

    @property
    def is_there(self) -> bool:
        """Whether it has not ended, as far as is known here."""
        return self._process.poll() is None

    def run(self, argv: Sequence[str], seconds: float) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end. Raises ShellEndedError, subprocess.TimeoutExpired.

        After either, the shell can only be closed.
        """
        limit = _Limit(argv, seconds)
        self._wait_until_it_answers(limit)
        status, out, err = self._ask(_line("rocelab_run", argv), limit)
        return subprocess.CompletedProcess(list(argv), status, out, err)

    def start(
        self, argv: Sequence[str], seconds: float, when_ended: Callable[[int], None]
    ) -> ShellCommand:
        """Start a command; `when_ended` gets its status as soon as this shell can run another.

        Raises like `run`.
        """
        self._wait_until_it_answers(_Limit(argv, seconds))
        self._write(_line("rocelab_run", argv))
        return ShellCommand(argv, self._process, self._mark.encode(), when_ended)

    def become(self, argv: Sequence[str], seconds: float) -> subprocess.Popen[bytes]:
        """Become a command, and return the process here: its streams are then the command's.

        Raises like `run`.
        """
        self._wait_until_it_answers(_Limit(argv, seconds))
        self._write(_line("exec", argv))
        return self._process

    def close(self) -> None:
        """End it; a command that still runs there goes on."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            with suppress(BrokenPipeError):
                _open(pipe).close()

    def _wait_until_it_answers(self, limit: _Limit) -> None:
        """Define what runs commands, and skip what the login shell printed."""
        if not self._answers:
            self._ask(_DEFINE.format(mark=self._mark).encode(), limit)
            self._answers = True

    def _ask(self, text: bytes, limit: _Limit) -> tuple[int, bytes, bytes]:
        """Send the lines that run one command; return its status, stdout and stderr."""
        out, err = bytearray(), bytearray()
        stdin = _open(self._process.stdin)
        with selectors.DefaultSelector() as ready:
            ready.register(stdin, selectors.EVENT_WRITE)
            ready.register(_open(self._process.stdout), selectors.EVENT_READ, out)
            ready.register(_open(self._process.stderr), selectors.EVENT_READ, err)
            while True:
                for key, _ in ready.select(limit.slice()):
                    if key.fileobj is stdin:
                        text = text[self._write_some(text) :]
                        if not text:
                            ready.unregister(stdin)
                    elif chunk := os.read(key.fd, _CHUNK):
                        awake.add(key.data, chunk)
                    else:
                        raise ShellEndedError(bytes(err) + self._last_words())
                ended = self._out_end.search(out, max(0, len(out) - _END_BYTES))
                if ended and err.endswith(self._err_end):
                    status, printed = int(ended[1]), bytes(out[: ended.start()])
                    return status, printed, bytes(err[: -len(self._err_end)])

    def _write(self, text: bytes) -> None:
        while text:
            text = text[self._write_some(text) :]

    def _write_some(self, text: bytes) -> int:
        """Send the beginning of `text`: what a pipe that is ready takes without blocking."""
        try:
            return os.write(_open(self._process.stdin).fileno(), text[: select.PIPE_BUF])
        except BrokenPipeError:
            raise ShellEndedError(self._last_words()) from None

    def _last_words(self) -> bytes:
        """What it said on stderr and nobody has read."""
        self._process.kill()
        return _open(self._process.stderr).read(_MAX_LAST_WORDS)


class WaitingShells:
    """The shells of one user on one machine; several threads may use them."""

    def __init__(self, login: Sequence[str], *, at_first: int = 2) -> None:
        """Start the first; the command line `login` runs sh(1) there."""
        self._login = tuple(login)
        self._lock = threading.Lock()
        self._closed = False
        self._waiting = [WaitingShell(self._login) for _ in range(at_first)]
        # they also end with this process, but not without a warning
        weakref.finalize(self, _close, self._waiting)

    def run(self, argv: Sequence[str], seconds: float) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end. Raises ShellEndedError, subprocess.TimeoutExpired."""
        shell = self._take()
        try:
            done = shell.run(argv, seconds)
        except BaseException:
            shell.close()
            raise
        self._keep(shell)
        return done

    def start(self, argv: Sequence[str], seconds: float) -> ShellCommand:
        """Start a command, whose input is empty. Raises ShellEndedError, TimeoutExpired."""
        shell = self._take_for_long()

        def end_use(status: int) -> None:
            # what a signal ended may have left others that still write
            if status > _BY_A_SIGNAL:
                shell.close()
            else:
                self._keep(shell)

        try:
            return shell.start(argv, seconds, end_use)
        except BaseException:
            shell.close()
            raise

    def become(self, argv: Sequence[str], seconds: float) -> subprocess.Popen[bytes]:
        """Start a command that keeps standard input, and return its process here.

        Raises ShellEndedError, TimeoutExpired.
        """
        shell = self._take_for_long()
        try:
            return shell.become(argv, seconds)
        except BaseException:
            shell.close()
            raise

    def open(self) -> None:
        """Keep shells again, after `close`."""
        with self._lock:
            self._closed = False

    def close(self) -> None:
        """End those that wait, and keep no more until `open`."""
        with self._lock:
            self._closed = True
            waiting = self._waiting.copy()
            self._waiting.clear()
        _close(waiting)

    def _take_for_long(self) -> WaitingShell:
        shell = self._take()
        # the next command is not to wait for a login shell
        if not self._waiting:
            self._keep(WaitingShell(self._login))
        return shell

    def _take(self) -> WaitingShell:
        """Return the shell that has waited longest, or a new one."""
        while True:
            with self._lock:
                shell = self._waiting.pop(0) if self._waiting else None
            if shell is None:
                return WaitingShell(self._login)
            if shell.is_there:
                return shell
            shell.close()

    def _keep(self, shell: WaitingShell) -> None:
        with self._lock:
            has_room = not self._closed and len(self._waiting) < _KEPT
            if has_room:
                self._waiting.append(shell)
        if not has_room:
            shell.close()


def _close(shells: Iterable[WaitingShell]) -> None:
    for shell in shells:
        shell.close()


class _Limit:
    """Seconds that a command may take; they stand still while this process is stopped."""

    def __init__(self, argv: Sequence[str], seconds: float) -> None:
        self._argv, self._seconds = list(argv), seconds
        self._slices = awake.slices(seconds)

    def slice(self) -> float:
        """How long to wait next, in seconds. Raises subprocess.TimeoutExpired."""
        for length in self._slices:
            return length
        raise subprocess.TimeoutExpired(self._argv, self._seconds)


def _line(by: str, argv: Sequence[str]) -> bytes:
    """Return a command of the shell that has `by` run `argv`. Raises ValueError for a NUL."""
    line = os.fsencode(f"{by} {shlex.join(argv)}\n")
    if b"\0" in line:
        raise ValueError("embedded null byte")
    return line


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
