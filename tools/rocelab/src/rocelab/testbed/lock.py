# SPDX-License-Identifier: GPL-2.0-or-later
"""A lock in a file: of a testbed, for whoever makes it, measures on it or takes it down.

The kernel frees the lock when its process ends, however that ends.
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
def hold(path: Path, what: str, waits: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock `path` of `what`, a testbed's name in messages; the file goes with it.

    When another process holds it: with `waits`, call that and wait, else raise UsageError with the
    other's PID.
    """
    descriptor = _take(path, what, waits)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def holder(path: Path) -> int | None:
    """Return the PID of the process that holds a lock; None if none does, 0 if it is unknown."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _pid(descriptor)
    finally:
        os.close(descriptor)
    return None


def discard(path: Path) -> None:
    """Remove a lock that a killed process left; do nothing while another holds it."""
    with suppress(UsageError), hold(path, ""):
        pass


def _take(path: Path, what: str, waits: Callable[[], None] | None) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            _lock(descriptor, waits)
        except BaseException as error:
            pid = _pid(descriptor)
            os.close(descriptor)
            if not isinstance(error, BlockingIOError):
                raise
            who = f"process {pid}" if pid else "another process"
            raise UsageError(
                f"{what} is in use by {who}",
                cause="another `rocelab` boots it, measures on it or takes it down",
                action=f"Wait for it, or end it: `kill {pid or 'PID'}`.",
            ) from None
        if _is_at(descriptor, path):
            # the PID serves the message of the other process: a full disk must not stop us
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            return descriptor
        # its holder has removed the file meanwhile
        os.close(descriptor)


def _lock(descriptor: int, waits: Callable[[], None] | None) -> None:
    """Raise BlockingIOError if another process holds it, unless we may wait."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if waits is None:
            raise
        waits()
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _pid(descriptor: int) -> int:
    text = os.pread(descriptor, _LONGEST_PID, 0).strip()
    return int(text) if text.isdigit() else 0
