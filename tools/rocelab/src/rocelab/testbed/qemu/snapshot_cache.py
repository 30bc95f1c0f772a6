# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots of machines on this user's disk: a cache, which may be emptied at any time.

A snapshot is one file, named by its key: a skippable Zstandard frame (RFC 8878, section 3.1.2) with
what it is, and QEMU's migration stream, compressed with a checksum. It is written under another
name, and renamed when it is whole. The folder is private, and the oldest go when it is too large.
"""

from __future__ import annotations

import json
import os
import stat
import struct
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rocelab.directory import Directory
from rocelab.errors import MissingError
from rocelab.testbed import lock
from rocelab.testbed.cache_folder import cache_dir

MAX_BYTES = 4 << 30
"""Of all snapshots: about fifty machines with driver and probes."""
_MAX_DISK_SHARE = 0.5
"""No more than this share of what is free."""
_STALE_SECONDS = 3600
"""No writer takes so long."""
_SCHEMA = "rocelab.snapshot/1"
_SUFFIX = ".zst"
_MAGIC = 0x184D2A50
_HEAD = struct.Struct("<II")
_MAX_HEAD = 4096


@dataclass(frozen=True)
class Snapshot:
    """A machine in the cache."""

    path: Path
    key: str
    what: str
    """The machine, for people."""
    size: int
    """Bytes on the disk."""
    used: float
    """When it was last restored or written, as time.time()."""


def folder() -> Path:
    """Return where the snapshots are; it may not exist."""
    return cache_dir() / "snapshots"


def find(key: str) -> Snapshot | None:
    """Return the snapshot of a key, None if there is none that may be used.

    One that another user may have written, or of another key or schema, is removed.
    """
    path = folder() / f"{key}{_SUFFIX}"
    try:
        snapshot = _read(path)
    except (OSError, ValueError):
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return None
    with suppress(OSError):
        os.utime(path)
    return snapshot


def entries() -> list[Snapshot]:
    """Return all snapshots, the one that was used last first."""
    snapshots = []
    for path in folder().glob(f"*{_SUFFIX}"):
        with suppress(OSError, ValueError):
            snapshots.append(_read(path))
    return sorted(snapshots, key=lambda each: each.used, reverse=True)


def clear() -> tuple[int, int]:
    """Remove all snapshots, and what killed writers left; return how many, and their bytes."""
    count = size = 0
    for path in folder().glob("*"):
        with suppress(OSError):
            size += path.lstat().st_size
            count += path.suffix == _SUFFIX
            path.unlink()
    return count, size


def forget(key: str) -> None:
    """Remove the snapshot of a key."""
    with suppress(OSError):
        (folder() / f"{key}{_SUFFIX}").unlink(missing_ok=True)


def only_writer(key: str, waits: Callable[[], None]) -> AbstractContextManager[None]:
    """Hold the right to make the machines of a key; others wait, and then find the snapshots.

    Calls `waits` if another process holds it.
    """
    _make_folder()
    return lock.hold(folder() / f"{key}.lock", "", waits)


def write(key: str, description: str, save: Callable[[IO[bytes]], None]) -> None:
    """Make a snapshot; `save` writes QEMU's stream. Raises OSError, and what `save` raises."""
    _make_folder()
    with Directory.open(folder()) as here:

        def content(file: IO[bytes]) -> None:
            head = json.dumps({"schema": _SCHEMA, "key": key, "what": description}).encode()
            file.write(_HEAD.pack(_MAGIC, len(head)) + head)
            file.flush()
            save(file)

        here.write(f"{key}{_SUFFIX}", content)
    _make_room()


def compressor(stream: int, file: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the compression of a stream, from a descriptor to the end of a file."""
    return subprocess.Popen(["zstd", "-q", "-1", "--check", "-c"], stdin=stream, stdout=file)


Save = Callable[[IO[bytes]], None]
"""Writes QEMU's stream, compressed, into a file."""

DECOMPRESS = ("setpriv", "--pdeathsig", "KILL", "--", "zstd", "-q", "-d", "-c")
"""The command that writes a snapshot's stream; it fails if the file is torn or corrupt."""


def _read(path: Path) -> Snapshot:
    """Read a snapshot's head. Raises OSError, ValueError."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        entry = os.fstat(file.fileno())
        if not stat.S_ISREG(entry.st_mode) or entry.st_uid != os.getuid() or entry.st_mode & 0o022:
            raise ValueError("it may be another user's")
        magic, length = _HEAD.unpack(file.read(_HEAD.size).ljust(_HEAD.size, b"\0"))
        if magic != _MAGIC or length > _MAX_HEAD:
            raise ValueError("it is no snapshot")
        head = json.loads(file.read(length))
    key = path.name.removesuffix(_SUFFIX)
    if not isinstance(head, dict) or (head.get("schema"), head.get("key")) != (_SCHEMA, key):
        raise ValueError("it is of another version, or of another machine")
    return Snapshot(path, key, str(head.get("what")), entry.st_size, entry.st_mtime)


def _make_folder() -> None:
    """Make the folder if it is missing. Raises MissingError if it is not private."""
    folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    entry = folder().lstat()
    if not stat.S_ISDIR(entry.st_mode) or entry.st_uid != os.getuid() or entry.st_mode & 0o077:
        raise MissingError(
            f"{folder()} is not a private folder of yours",
            cause="another user made it, or its permissions were changed",
            action=f"Remove it, or `chmod 700 {folder()}`.",
        )


def _make_room() -> None:
    """Remove what killed writers left, and the longest unused snapshots until the rest fits."""
    for part in folder().glob(".*.part"):
        with suppress(OSError):
            if time.time() - part.lstat().st_mtime > _STALE_SECONDS:
                part.unlink()
    snapshots = entries()
    disk = os.statvfs(folder())
    used = sum(each.size for each in snapshots)
    limit = min(MAX_BYTES, int(_MAX_DISK_SHARE * (disk.f_bavail * disk.f_frsize + used)))
    for oldest in reversed(snapshots):
        if used <= limit:
            break
        used -= oldest.size
        with suppress(OSError):
            oldest.path.unlink()
