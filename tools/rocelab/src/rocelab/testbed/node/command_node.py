# SPDX-License-Identifier: GPL-2.0-or-later
"""A node whose commands run through a local command line: ssh(1), sudo(8), or the bare command."""

from __future__ import annotations

import errno
import io
import os
import re
import shlex
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeVar

from rocelab import limits
from rocelab.directory import Directory
from rocelab.errors import TestbedError
from rocelab.testbed.node import awake
from rocelab.testbed.node.awake import LocalProcess
from rocelab.testbed.node.interface import MARK, Completed, DataLink, Printed

# Marks the command, prints its PID, so that we can signal it, then execs it. Once rocelab is dead
# the shell cannot print, so it ends; until then the lease finds it by its mark.
_PID = re.compile(r"rocelab-pid ([1-9][0-9]{0,9})\n")
_PRINT_PID = f'export {MARK}=1; exec sh -c \'echo "rocelab-pid $$" >&2; exec "$@"\' sh "$@"'
# what a hanging command is doing: where it waits, and the state of its signals
_PROCESS_STATE = (
    'cd "/proc/$1" 2>/dev/null || { echo "it has ended on the node"; exit; }; '
    'grep -E "^(Name|State|Sig|Shd)" status; echo "$(cat wchan)"; cat syscall stack'
)
_CHUNK = 1 << 16
_LONGEST_LINE = 1 << 20
"""Characters; a longer line is read in parts."""
_STALLED = 60
"""Seconds after which a copy that did not grow is given up."""
_WRITE_FILE = 'cat > "$1.part" && chmod "$2" "$1.part" && mv "$1.part" "$1"'


_T = TypeVar("_T")


class Connection(Protocol):
    """How commands get to a node."""

    def command(self, argv: Sequence[str]) -> list[str]:
        """The local command line that runs `argv` on the node."""

    def run(
        self, argv: Sequence[str], *, stdin: bytes, seconds: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Run `argv` on the node to its end; `is_lost` judges its status.

        Raises subprocess.TimeoutExpired.
        """

    def start(self, argv: Sequence[str], *, lifeline: bool) -> LocalProcess:
        """Start `argv` on the node; with `lifeline`, standard input is a pipe."""

    def is_lost(self, done: subprocess.CompletedProcess[bytes]) -> bool:
        """Whether the connection failed, and not the command."""

    def noise(self, line: str) -> bool:
        """Whether a line of stderr is the connection's, and says nothing that matters."""

    @property
    def login(self) -> str:
        """The command line with which a person logs in."""

    def as_root(self) -> Connection:
        """The connection for root's commands; itself if all commands run as root."""


class CommandProcess:
    """A command that runs on a node (rocelab.testbed.node.interface.Process)."""

    def __init__(self, node: CommandNode, argv: Sequence[str], *, lifeline: bool = False) -> None:
        self._node = node
        self._argv = tuple(argv)
        self._lines: list[tuple[str, str]] = []
        """The stream of each, and itself."""
        self._changed = threading.Condition()
        self._open = 2
        self._pid = 0
        self._process = node.connection.start(
            ["sh", "-c", _PRINT_PID, "sh", *argv], lifeline=lifeline
        )
        for name in ("stdout", "stderr"):
            threading.Thread(target=self._read, args=(name,), daemon=True).start()

    def _read(self, name: str) -> None:
        with io.TextIOWrapper(getattr(self._process, name), errors="replace") as lines:
            left = limits.MAX_PRINTED_BYTES
            while line := lines.readline(_LONGEST_LINE):
                left -= len(line)
                if left < 0:
                    self._process.kill()
                    line = f"it printed over {limits.MAX_PRINTED_BYTES >> 20} MiB\n"
                    name = "stderr"
                with self._changed:
                    if name == "stderr" and not self._pid and (match := _PID.fullmatch(line)):
                        self._pid = int(match[1])
                    elif name == "stdout" or not self._node.connection.noise(line):
                        self._lines.append((name, line))
                    self._changed.notify_all()
                if left < 0:
                    break
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    def _describe(self) -> str:
        return f"`{shlex.join(self._argv)}` on {self._node.name}"

    def _tail(self) -> str:
        return "\n".join(line.rstrip("\n") for _, line in self._lines[-5:]) or "it printed nothing"

    def _text(self, stream: str) -> str:
        return "".join(line for name, line in self._lines if name == stream)

    def _output(self) -> Printed:
        return Printed(self._text("stdout"), self._text("stderr"))

    def wait_for_line(self, needle: str, *, timeout: float) -> str:
        """Return the first line with `needle`; see rocelab.testbed.node.interface.Process."""
        seen = 0

        def with_it() -> str | None:
            nonlocal seen
            lines, seen = self._lines[seen:], len(self._lines)
            return next((line.rstrip("\n") for _, line in lines if needle in line), None)

        with self._changed:
            return self._wait_for(with_it, repr(needle), timeout)

    def take(self, is_whole: Callable[[Printed], bool], *, timeout: float) -> Printed:
        """Return and forget what it has printed; see rocelab.testbed.node.interface.Process."""

        def whole() -> Printed | None:
            printed = self._output()
            return printed if is_whole(printed) else None

        with self._changed:
            printed = self._wait_for(whole, "what was asked for", timeout)
            self._lines.clear()
            return printed

    def _wait_for(self, find: Callable[[], _T | None], expected: str, timeout: float) -> _T:
        """Wait until `find` finds something in what was printed."""
        timeout *= self._node.patience
        limit = awake.slices(timeout)
        while (done := find()) is None:
            if not self._open:
                raise TestbedError(
                    f"{self._describe()} ended before it printed {expected}", cause=self._tail()
                )
            length = next(limit, None)
            if length is None:
                raise TestbedError(
                    f"{self._describe()} did not print {expected} within {timeout:.0f} s",
                    cause=self._tail(),
                )
            self._changed.wait(length)
        return done

    def _state(self) -> str:
        """Describe what the command is doing on the node, if the node still answers."""
        try:
            done = self._node.run(["sh", "-c", _PROCESS_STATE, "sh", str(self._pid)], check=False)
        except TestbedError as error:
            return f"{error.what}: {error.cause}"
        return done.stdout.strip()

    def _signal(self, name: str) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._pid or not self._open, timeout=30)
            if not self._pid or self._process.poll() is not None:
                return
        self._node.run(["kill", f"-{name}", str(self._pid)], check=False)

    def interrupt(self) -> None:
        """Send SIGINT on the node."""
        self._signal("INT")

    def say(self, line: str) -> None:
        """Write a line to its standard input; see rocelab.testbed.node.interface.Process."""
        if self._process.stdin is None:
            return
        with self._changed:
            # a shell that becomes the command would read what comes before it has
            self._changed.wait_for(lambda: self._pid or not self._open, timeout=30)
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise TestbedError(f"{self._describe()} has ended", cause=self._tail()) from error

    def release(self) -> None:
        """Close its standard input; see rocelab.testbed.node.interface.Process."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def wait(self, *, timeout: float) -> Completed:
        """Wait for the end; see rocelab.testbed.node.interface.Process."""
        timeout *= self._node.patience
        try:
            status = awake.wait(self._process, timeout)
        except subprocess.TimeoutExpired:
            state = self._state()
            self.kill()
            raise TestbedError(
                f"{self._describe()} did not end within {timeout:.0f} s",
                cause=f"{self._tail()}\n{state}",
            ) from None
        with self._changed:
            self._changed.wait_for(lambda: not self._open, timeout=10)
            return Completed(self._argv, status, self._text("stdout"), self._text("stderr"))

    def kill(self) -> None:
        """Kill the command, on the node and here."""
        if self._process.poll() is None:
            try:
                self._signal("KILL")
                self._process.wait(10)
            except (TestbedError, subprocess.TimeoutExpired):
                self._process.kill()
                self._process.wait()
        # a line that it no longer read may be left
        with suppress(OSError):
            self.release()


def _copy(
    source: LocalProcess, into: io.FileIO, local: Path, failed: list[OSError], limit: int
) -> None:
    """Copy a command's output; what prevents it, such as a full disk, goes into `failed`.

    `local` is the file's name to be.
    """
    size = 0
    assert source.stdout is not None
    while chunk := source.stdout.read(_CHUNK):
        size += len(chunk)
        if size > limit:
            reason = f"it has more than {limit >> 20} MiB"
            failed.append(OSError(errno.EFBIG, reason, str(local)))
            # it may never end
            source.kill()
            return
        left = memoryview(chunk)
        try:
            # after an error read on, or the stream's writer would wait for us
            while left and not failed:
                left = left[into.write(left) :]
        except OSError as error:
            failed.append(error)


class CommandNode:
    """A node reached through a command line (rocelab.testbed.node.interface.Node).

    `patience` multiplies every time limit: some nodes are far slower than others.
    """

    def __init__(
        self, name: str, link: DataLink, connection: Connection, patience: float = 1
    ) -> None:
        self._name = name
        self._link = link
        self.connection = connection
        self.patience = patience

    @property
    def name(self) -> str:
        """Short name."""
        return self._name

    @property
    def login(self) -> str:
        """The command line with which a person logs in."""
        return self.connection.login

    @property
    def link(self) -> DataLink:
        """The data interface."""
        return self._link

    @property
    def has_root(self) -> bool:
        """Whether commands can run as root."""
        return True

    @cached_property
    def root(self) -> CommandNode:
        """The same node with commands run as root; itself if they already are."""
        connection = self.connection.as_root()
        if connection is self.connection:
            return self
        return CommandNode(self._name, self._link, connection, self.patience)

    def _run(
        self, argv: Sequence[str], timeout: float, stdin: bytes | None
    ) -> subprocess.CompletedProcess[bytes]:
        timeout *= self.patience
        try:
            done = self.connection.run(argv, stdin=stdin or b"", seconds=timeout)
        except subprocess.TimeoutExpired:
            raise TestbedError(
                f"`{shlex.join(argv)}` on {self.name} did not end within {timeout:.0f} s",
                cause="the node is overloaded or hangs",
                action=f"Log in with `{self.login}` and see what it is doing.",
            ) from None
        except awake.TooMuchOutputError:
            raise TestbedError(
                f"`{shlex.join(argv)}` on {self.name} printed over "
                f"{limits.MAX_PRINTED_BYTES >> 20} MiB",
                cause="the node is broken or hostile",
                action=f"Log in with `{self.login}` and see what it is doing.",
            ) from None
        if self.connection.is_lost(done):
            raise TestbedError(
                f"node {self.name} does not answer",
                cause=done.stderr.decode(errors="replace").strip()[-500:] or "the connection broke",
                action=f"See whether `{self.login}` works.",
            )
        return done

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = 60,
        check: bool = True,
        stdin: str | None = None,
    ) -> Completed:
        """Run a command to its end; see rocelab.testbed.node.interface.Node."""
        raw = self._run(argv, timeout, None if stdin is None else stdin.encode())
        lines = raw.stderr.decode(errors="replace").splitlines(keepends=True)
        done = Completed(
            tuple(argv),
            raw.returncode,
            raw.stdout.decode(errors="replace"),
            "".join(line for line in lines if not self.connection.noise(line)),
        )
        if check and done.returncode:
            raise TestbedError(
                f"`{shlex.join(argv)}` on {self.name} exited with {done.returncode}",
                cause=(done.stderr or done.stdout).strip()[-2000:],
            )
        return done

    def start(self, argv: Sequence[str], *, lifeline: bool = False) -> CommandProcess:
        """Start a command and return at once."""
        return CommandProcess(self, argv, lifeline=lifeline)

    def put(self, local: Path, remote: str, *, mode: int = 0o644) -> None:
        """Copy a file to the node atomically: there it is whole or absent."""
        argv = ["sh", "-c", _WRITE_FILE, "sh", remote, f"{mode:o}"]
        done = self._run(argv, 120, local.read_bytes())
        if done.returncode:
            raise TestbedError(
                f"cannot write {local.name} to {self.name}:{remote}",
                cause=done.stderr.decode(errors="replace").strip(),
                action=f"Check the free space and the permissions on {self.name}.",
            )

    def get(self, remote: str, local: Path, *, limit: int = limits.MAX_FILE_BYTES) -> None:
        """Copy a file of at most `limit` bytes from the node: here it is whole or absent.

        Raises TestbedError, and OSError when it is larger or cannot be written here.
        """
        with (
            Directory.open(local.parent) as folder,
            folder.replacing(local.name) as made,
            # without a buffer, nothing is left to write when it is closed
            io.FileIO(made, "wb", closefd=False) as file,
        ):
            self._fetch(remote, local, file, limit)

    def _fetch(self, remote: str, local: Path, file: io.FileIO, limit: int) -> None:
        """Copy a file from the node into an open one, which is to be `local`."""
        process = self.connection.start(["cat", "--", remote], lifeline=False)
        assert process.stdout is not None
        assert process.stderr is not None
        with process.stdout, process.stderr:
            failed: list[OSError] = []
            copying = threading.Thread(target=_copy, args=(process, file, local, failed, limit))
            copying.start()
            try:
                self._wait_for_file(process, file, remote)
            finally:
                process.kill()
                process.wait()
                copying.join()
            error = process.stderr.read(4096).decode(errors="replace").strip()
        if failed:
            raise failed[0]
        if process.poll():
            raise TestbedError(
                f"cannot read {self.name}:{remote}",
                cause=error,
                action=f"Check whether the command on {self.name} that writes it succeeded.",
            )

    def _wait_for_file(self, process: LocalProcess, file: io.FileIO, remote: str) -> None:
        """Wait until a copy has ended. Raises TestbedError when it stands still."""
        size = -1
        while True:
            try:
                process.wait(_STALLED * self.patience)
            except subprocess.TimeoutExpired:
                before, size = size, os.fstat(file.fileno()).st_size
                if size == before:
                    raise TestbedError(
                        f"{self.name}:{remote} does not come: no byte of it within "
                        f"{_STALLED * self.patience:.0f} s",
                        cause="the node or the network to it hangs",
                        action=f"Log in with `{self.login}` and see what it is doing.",
                    ) from None
            else:
                return
