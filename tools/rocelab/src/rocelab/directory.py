# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of a folder that a stranger may have filled: nothing in it leads out of it, or blocks.

Every entry is reached by its name in an open directory, never by a path. Symbolic links are not
followed, only regular files are opened, reads have a limit, and a new file gets a random name
before it takes its place. The path of the folder itself is the user's own: links in it are
followed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Self

from rocelab.errors import MissingError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# without O_NONBLOCK, opening a FIFO waits for its writer
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = "/proc/self/fd"
_RANDOM = 8
"""Bytes of randomness in a temporary name."""
_MAX_OF_NAME = 200
"""Bytes of a file's name that are in the temporary one; file systems allow 255 together."""


class Directory:
    """An open folder. All methods raise OSError; a name that is a path is a ValueError."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._fd = descriptor
        self.path = path
        """Where it was found, for messages."""

    @classmethod
    def open(cls, path: Path, *, make: bool = False) -> Self:
        """Open the folder that a user names; with `make`, create it and its parents."""
        if make:
            path.mkdir(parents=True, exist_ok=True)
        return cls(os.open(path, _FOLDER), path)

    @classmethod
    @contextlib.contextmanager
    def making(cls, path: Path) -> Iterator[Self]:
        """Open the folder that a user names; make it if it is missing, and with it its parents.

        When the context fails, those that were made and are empty are removed again.
        """
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        try:
            with cls.open(path, make=True) as folder:
                yield folder
        except BaseException:
            for made in missing:
                with contextlib.suppress(OSError):
                    made.rmdir()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def lock(self, *, shared: bool = False) -> bool:
        """Lock this folder until it is closed; return whether nobody else holds it.

        The kernel frees the lock when the process ends, however it ends.
        """
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(self._fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def folder(self, name: str, *, make: bool = False) -> Directory:
        """Open a folder in this one; with `make`, create it unless it is there."""
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(_entry(name), dir_fd=self._fd)
        try:
            descriptor = os.open(_entry(name), _FOLDER | os.O_NOFOLLOW, dir_fd=self._fd)
        except NotADirectoryError as error:
            problem = "is a symbolic link" if self._is(name, stat.S_ISLNK) else "is not a folder"
            raise NotADirectoryError(errno.ENOTDIR, f"{name} {problem}", name) from error
        return Directory(descriptor, self.path / name)

    def names(self) -> list[str]:
        """The names of all entries, sorted."""
        return sorted(os.listdir(self._fd))  # noqa: PTH208 -- a path would leave the descriptor

    def is_file(self, name: str) -> bool:
        """Say whether there is a regular file of that name."""
        return self._is(name, stat.S_ISREG)

    def is_folder(self, name: str) -> bool:
        """Say whether there is a folder of that name."""
        return self._is(name, stat.S_ISDIR)

    def exists(self, name: str) -> bool:
        """Say whether there is anything of that name, were it a broken link."""
        return self._is(name, lambda _: True)

    def _is(self, name: str, kind: Callable[[int], bool]) -> bool:
        try:
            return kind(os.stat(_entry(name), dir_fd=self._fd, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return False

    def open_file(self, name: str, *, limit: int) -> BinaryIO:
        """Open a regular file of at most `limit` bytes for reading."""
        # looking first spares a device the opening; looking again after it makes sure
        if self.exists(name) and not self.is_file(name):
            raise _irregular(name)
        return _regular(
            os.open(_entry(name), _FILE | os.O_NOFOLLOW, dir_fd=self._fd), name, limit=limit
        )

    def read(self, name: str, *, limit: int) -> bytes:
        """Read a regular file of at most `limit` bytes."""
        with self.open_file(name, limit=limit) as file:
            return _whole(file, name, limit)

    def write(
        self, name: str, content: bytes | Callable[[BinaryIO], object], *, durable: bool = False
    ) -> None:
        """Write a file atomically, replacing anything with this name but a device.

        `content` is its bytes, or writes them. With `durable`, it is on the disk on return.
        """
        # root may have named /dev/null, and must not replace it
        if self._is(name, stat.S_ISCHR) or self._is(name, stat.S_ISBLK):
            raise _irregular(name)
        with (
            self.replacing(name, durable=durable) as descriptor,
            os.fdopen(descriptor, "wb", closefd=False) as file,
        ):
            if isinstance(content, bytes):
                file.write(content)
            else:
                content(file)

    @contextlib.contextmanager
    def replacing(self, name: str, *, durable: bool = False) -> Iterator[int]:
        """Yield a new file's descriptor; it takes the place of `name` when the context ends well.

        Until then it has no name, so not even SIGKILL leaves it. Between the last two system calls,
        and on file systems without O_TMPFILE, it is `.<name>.<random>.part`.
        """
        part = _part(name)
        made = self._open_unnamed()
        named = made is None
        descriptor = made if made is not None else os.open(part, _NEW, 0o666, dir_fd=self._fd)
        try:
            yield descriptor
            if durable:
                os.fsync(descriptor)
            if made is not None:
                named = True
                os.link(f"{_OPEN}/{made}", part, dst_dir_fd=self._fd, follow_symlinks=True)
            os.replace(part, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except BaseException:
            # An interrupt may come just after the renaming; or just before the body of the context,
            # which is then left when this folder is closed already.
            if named:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(part, dir_fd=self._fd)
            raise
        finally:
            os.close(descriptor)

    def _open_unnamed(self) -> int | None:
        """Return a new file without a name; None where there is no such thing."""
        if not os.path.isdir(_OPEN):  # noqa: PTH112
            return None
        try:
            return os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666, dir_fd=self._fd)
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
                return None
            raise

    def rename(self, old: str, new: str) -> None:
        """Rename an entry; a link is renamed, not what it leads to."""
        os.rename(_entry(old), _entry(new), src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def remove(self, name: str) -> None:
        """Remove a file, a link or a folder with all that is in it; nothing there is fine."""
        if self.is_folder(name):
            # its walk holds descriptors, too, and follows no links
            shutil.rmtree(_entry(name), dir_fd=self._fd)
        elif self.exists(name):
            os.unlink(_entry(name), dir_fd=self._fd)

    def remove_parts(self) -> None:
        """Remove what an interrupted `write` left here."""
        for name in self.names():
            if _is_part(name) and self.is_file(name):
                os.unlink(name, dir_fd=self._fd)


def temporary_place() -> Path:
    """The folder for temporary files. Raises MissingError if there is none.

    Unlike tempfile.gettempdir(), it writes no file to try them, which a signal could leave there.
    """
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    for place in (*filter(None, named), "/tmp", "/var/tmp", "."):  # noqa: S108 - as tempfile does
        if Path(place).is_dir() and os.access(place, os.W_OK | os.X_OK):
            return Path(place).absolute()
    raise MissingError(
        "there is no folder for temporary files",
        cause="neither TMPDIR nor /tmp is a folder that you can write to",
        action="Set TMPDIR to one.",
    )


@contextlib.contextmanager
def temporary_folder(*, prefix: str = "rocelab-", dir: Path | None = None) -> Iterator[str]:  # noqa: A002
    """Yield the path of a new folder, which is removed afterwards with all that is in it.

    Unlike tempfile.TemporaryDirectory, it also goes when a signal comes while it is made or
    removed.
    """
    path: Path | None = None
    try:
        while path is None:
            path = Path(dir or temporary_place(), prefix + os.urandom(_RANDOM // 2).hex())
            try:
                path.mkdir(mode=0o700)
            except FileExistsError:
                path = None
        yield str(path)
    finally:
        if path is not None:
            try:
                shutil.rmtree(path)
            except FileNotFoundError:
                pass
            except BaseException:
                # a signal, or a thread of a library that still wrote
                shutil.rmtree(path, ignore_errors=True)
                raise


def read_named(path: Path, *, limit: int) -> bytes:
    """Read the regular file that a user names; links are the user's own. Raises OSError."""
    if path.exists() and not path.is_file():
        raise _irregular(str(path))
    with _regular(os.open(path, _FILE), str(path), limit=limit) as file:
        return _whole(file, str(path), limit)


def _entry(name: str) -> str:
    """The name of an entry. Raises ValueError when it leads elsewhere."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"{name!a:.60} is not a file's name")
    return name


def _part(name: str) -> str:
    """A new name for a part of an entry; a long name is cut, for the file system's sake."""
    head = os.fsdecode(os.fsencode(_entry(name))[:_MAX_OF_NAME])
    return f".{head}.{os.urandom(_RANDOM).hex()}.part"


def _is_part(name: str) -> bool:
    head, _, token = name.removesuffix(".part").rpartition(".")
    random = len(token) == 2 * _RANDOM and set(token) <= set("0123456789abcdef")
    return name.startswith(".") and name.endswith(".part") and bool(head) and random


def _irregular(name: str) -> OSError:
    return OSError(errno.EINVAL, "it is not a regular file", name)


def _too_large(name: str, limit: int) -> OSError:
    return OSError(errno.EFBIG, f"it is too large (over {limit >> 20} MiB)", name)


def _regular(descriptor: int, name: str, *, limit: int) -> BinaryIO:
    file = os.fdopen(descriptor, "rb")
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        file.close()
        raise _irregular(name)
    if status.st_size > limit:
        file.close()
        raise _too_large(name, limit)
    return file


def _whole(file: BinaryIO, name: str, limit: int) -> bytes:
    content = file.read(limit + 1)
    if len(content) > limit:  # it grew
        raise _too_large(name, limit)
    return content
