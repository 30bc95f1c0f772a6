# SPDX-License-Identifier: GPL-2.0-or-later
"""A lock in a file: of a testbed, for whoever makes it, measures on it or takes it down.

The kernel frees the lock when its process ends, however that ends. Commands that do not disturb
each other share it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rocelab.errors import UsageError

_LONGEST_PID = 20


@contextmanager
def hold(
    path: Path, name: str, waits: Callable[[], None] | None = None, *, shared: bool = False
) -> Iterator[None]:
    """Hold the lock `path` of `name`, a testbed's name in messages; the file goes with it.

    `shared`: others may share it, and the last of them removes the file. When another process holds
    it: with `waits`, call that and wait, else raise UsageError with the other's PID.
    """
    descriptors: list[int] = []
    try:
        try:
            _take(path, name, waits, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, descriptors)
            yield
        finally:
            _release(descriptors, path, shared=shared)
    except KeyboardInterrupt:
        # it may have come before the new file was locked, or while it was removed
        _release(descriptors, path, shared=shared)
        with suppress(OSError):
            discard(path)
        raise


def _release(descriptors: list[int], path: Path, *, shared: bool) -> None:
    """Remove the file and close the descriptor; again does no harm."""
    for descriptor in descriptors:
        # interrupted here before, it may be another process's by now
        if _is_at(descriptor, path):
            if shared:
                _leave(descriptor, path)
            else:
                path.unlink(missing_ok=True)
    while descriptors:
        os.close(descriptors.pop())


def holder(path: Path) -> int | None:
    """Return the PID of the process that holds a lock; None if none does, 0 if it is unknown."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        # those who share it would let us share it, too
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _pid(descriptor)
    finally:
        os.close(descriptor)
    return None


def discard(path: Path) -> None:
    """Remove a lock that a killed process left; do nothing while another holds it."""
    with suppress(UsageError), hold(path, ""):
        pass


def _leave(descriptor: int, path: Path) -> None:
    """Remove the file if no other process shares it; else forget the PID, which may be ours."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
    else:
        path.unlink(missing_ok=True)


def _take(
    path: Path, name: str, waits: Callable[[], None] | None, kind: int, descriptors: list[int]
) -> None:
    """Lock the file; its descriptor is in `descriptors` from then on."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            _lock(descriptor, waits, kind)
            descriptors.append(descriptor)
        except BaseException as error:
            if descriptor in descriptors:
                raise
            pid = _pid(descriptor)
            os.close(descriptor)
            if not isinstance(error, BlockingIOError):
                raise
            who = f"process {pid}" if pid else "another process"
            raise UsageError(
                f"{name} is in use by {who}",
                cause="another `rocelab` boots it, uses it or takes it down",
                action=f"Wait for it, or end it: `kill {pid or 'PID'}`.",
            ) from None
        if _is_at(descriptor, path):
            # the PID serves the message of the other process: a full disk must not stop us
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            return
        # its holder has removed the file meanwhile
        os.close(descriptors.pop())


def _lock(descriptor: int, waits: Callable[[], None] | None, kind: int) -> None:
    """Raise BlockingIOError if another process holds it, unless we may wait."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        if waits is None:
            raise
        waits()
        fcntl.flock(descriptor, kind)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _pid(descriptor: int) -> int:
    text = os.pread(descriptor, _LONGEST_PID, 0).strip()
    return int(text) if text.isdigit() else 0
