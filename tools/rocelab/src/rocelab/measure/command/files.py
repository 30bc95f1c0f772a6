# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of a user's command: copied to its node before it, and back after it.

Nothing is mounted: a node reaches only what was copied to it. What comes back is hostile: only
regular files and folders are taken, by names that stay in the folder, up to a limit.
"""

from __future__ import annotations

import errno
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from rocelab.conditions import system_error
from rocelab.directory import Directory, temporary_folder
from rocelab.errors import CommandError, UsageError
from rocelab.measure.command.guard import Guard
from rocelab.strict import quote
from rocelab.testbed.node.command_node import CommandNode
from rocelab.testbed.node.endpoint import machine_of

LITTLE = 16 << 20
"""Bytes of the current folder up to which it is copied without being named."""
MUCH = 128 << 20
"""Bytes that are copied to a node at most."""
_MAX_BACK = 1 << 30
_MAX_ENTRIES = 20_000
_TOP = 2
_UNPACK = """
cd "$1" && tar -xzf files.tgz --no-same-owner && rm files.tgz && touch copied
"""
_FILES, _LIBRARIES = Path("files"), Path("lib")
"""Folders of what is sent."""
# ctime also shows what was moved here, or has an older mtime
_PACK = """
cd "$1/files" &&
find . -mindepth 1 \\( -type f -o -type d \\) -newercm ../copied -print0 >../changed &&
tar -czf ../back.tgz --no-recursion --null -T ../changed
"""


@dataclass(frozen=True)
class Copied:
    """A file of this machine, and its place in the command's folder."""

    here: Path
    there: str


@dataclass(frozen=True)
class Fetched:
    """A file of a node, by a path from the command's folder, and its place here."""

    there: str
    here: Path


@dataclass(frozen=True)
class Files:
    """What is copied."""

    folder: Path | None = None
    """Its content is in the command's folder."""
    writes_back: bool = False
    """Whether what the command changes there is copied back; nothing is deleted."""
    copied: tuple[Copied, ...] = ()
    fetched: tuple[Fetched, ...] = ()


def parse_copy(text: str) -> Copied:
    """Read the value of --copy, FILE or FILE:WHERE. Raises UsageError."""
    here, colon, there = text.rpartition(":")
    if not colon or Path(text).exists():
        here, there = text, Path(text).name
    parts = Path(there).parts
    if not parts or there.startswith("/") or ".." in parts:
        raise UsageError(
            f"--copy cannot put a file at {quote(there)}",
            cause="the place is in the folder that the command runs in",
            action="Give FILE:WHERE with WHERE a path in that folder.",
        )
    if not Path(here).is_file():
        raise UsageError(
            f"--copy {quote(here)} is no file",
            cause="it does not exist, or is a folder",
            action="Name a regular file, or a folder with --folder.",
        )
    return Copied(Path(here), there)


def parse_get(text: str) -> Fetched:
    """Read the value of --get, FILE or FILE:WHERE. Raises UsageError."""
    there, colon, here = text.rpartition(":")
    if not colon:
        there, here = text, Path(text).name
    if not there or not here:
        raise UsageError(
            f"--get {quote(text)} names no file",
            cause="a file on the node has a name, and so has its copy",
            action="Give FILE or FILE:WHERE.",
        )
    place = Path(here)
    # the command may take hours: refuse first what cannot be written
    if not place.parent.is_dir() or (place.exists() and not place.is_file()):
        raise UsageError(
            f"--get cannot write {quote(here)}",
            cause="its folder does not exist, or a folder or a device has that name",
            action="Give FILE:WHERE with WHERE a file's name in a folder that exists.",
        )
    return Fetched(there, Path(here))


def may_go_unnamed(folder: Path) -> bool:
    """Whether a folder that nobody named may be copied: it is small, readable and no system's.

    The user's home, what contains it, and what is at the top of the file system, are not.
    """
    real = Path(os.path.realpath(folder))
    with suppress(RuntimeError):  # a user without a home
        own = Path(os.path.realpath(Path.home()))
        if real == own or real in own.parents:
            return False
    if len(real.parts) <= _TOP:
        return False
    try:
        return fits(folder, LITTLE)
    except OSError:
        return False


def fits(folder: Path, limit: int) -> bool:
    """Whether a folder's files have at most so many bytes, and are not too many.

    Raises OSError if one cannot be read.
    """
    left, entries = limit, _MAX_ENTRIES
    for path, about in _entries(folder):
        if stat.S_ISREG(about.st_mode):
            left -= about.st_size
            if not os.access(path, os.R_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        entries -= 1
        if left < 0 or entries < 0:
            return False
    return True


def _entries(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield all files, links and folders below a folder; links are not followed."""

    def fail(error: OSError) -> NoReturn:
        raise error

    for parent, folders, names in os.walk(folder, onerror=fail):
        for name in sorted((*folders, *names)):
            path = Path(parent, name)
            try:
                about = path.lstat()
            except FileNotFoundError:
                continue  # it has just gone
            if stat.S_IFMT(about.st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
                yield path, about


def check(folder: Path) -> None:
    """Raise UsageError for a folder that is too large to copy, or cannot be read."""
    try:
        fitting = fits(folder, MUCH)
    except OSError as error:
        raise system_error(error, f"cannot copy {quote(str(folder))} to a node") from error
    if not fitting:
        raise UsageError(
            f"{quote(str(folder))} is too large to copy to a node",
            cause=f"it has more than {MUCH >> 20} MiB, or {_MAX_ENTRIES:,} files",
            action="Name a smaller folder with --folder, or single files with --copy.",
        )


@contextmanager
def pack(files: Files, shift: float, libraries: Mapping[str, Path]) -> Iterator[Path | None]:
    """Yield a temporary file with what goes to the nodes, None if nothing does.

    `libraries` go into `library_folder`. `shift` is by how many seconds a node's clock is ahead of
    ours: make(1) there compares times.
    Raises UsageError when it is too much, or cannot be read.
    """
    if files.folder is None and not files.copied and not libraries:
        yield None
        return
    if files.folder is not None:
        check(files.folder)
    with temporary_folder() as folder, Path(folder, "files.tar").open("xb") as file:
        try:
            _pack(files, shift, libraries, file)
        except OSError as error:
            raise system_error(error, "cannot copy files to a node") from error
        if file.tell() > MUCH:
            raise UsageError(
                "the files are too large to copy to a node",
                cause=f"together they have more than {MUCH >> 20} MiB",
                action="Copy fewer with --copy.",
            )
        yield Path(file.name)


def _pack(files: Files, shift: float, libraries: Mapping[str, Path], into: IO[bytes]) -> None:
    def shift_time(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime = max(0, member.mtime + shift)
        return member

    # level 1: the nodes, which may be emulated, decrypt more slowly than they unpack
    with tarfile.open(fileobj=into, mode="w:gz", compresslevel=1, format=tarfile.GNU_FORMAT) as tar:
        if files.folder is not None:
            for path, _ in _entries(files.folder):
                name = _FILES / path.relative_to(files.folder)
                tar.add(path, name, recursive=False, filter=shift_time)
        for one in files.copied:
            tar.add(one.here.resolve(), _FILES / one.there, recursive=False, filter=shift_time)
        for library, path in libraries.items():
            tar.add(path.resolve(), _LIBRARIES / library, recursive=False)
    into.flush()


def library_folder(guard: Guard) -> str:
    """Return where the libraries are that a command's node lacks."""
    return f"{guard.folder}/{_LIBRARIES}"


def here(files: Files, word: str) -> Path | None:
    """Return the file of this machine whose copy a command's first word names, if there is one."""
    if "/" not in word:
        return None
    place = os.path.normpath(word)
    for one in files.copied:
        if os.path.normpath(one.there) == place:
            return one.here
    if files.folder is None or place.startswith(("/", "../")):
        return None
    return files.folder / place


def send(archive: Path, guard: Guard) -> None:
    """Put packed files into a command's folder. Raises TestbedError."""
    _machine(guard).put(archive, f"{guard.folder}/files.tgz")
    guard.node.run(("sh", "-c", _UNPACK, "sh", guard.folder), timeout=120)


def fetch(files: Files, guard: Guard) -> None:
    """Copy back what was asked for. Raises TestbedError, UsageError, CommandError, OSError."""
    machine = _machine(guard)
    for one in files.fetched:
        # `get` renames what is whole
        machine.get(
            f"{guard.files}/{one.there}" if one.there[0] != "/" else one.there,
            one.here,
            limit=_MAX_BACK,
        )
    if files.folder is None or not files.writes_back:
        return
    guard.node.run(("sh", "-c", _PACK, "sh", guard.folder), timeout=120)
    with temporary_folder(prefix="rocelab-exec-") as own:
        back = Path(own, "back.tgz")
        machine.get(f"{guard.folder}/back.tgz", back, limit=MUCH)
        unpack(back, files.folder, guard.node.name)


def unpack(archive: Path, into: Path, node: str) -> None:
    """Write a node's files into a folder. Raises CommandError for what no node of ours packs."""
    left, entries = _MAX_BACK, _MAX_ENTRIES
    try:
        with Directory.open(into) as folder, tarfile.open(archive, "r|gz") as tar:
            for member in tar:
                left -= member.size
                entries -= 1
                parts = [part for part in member.name.split("/") if part != "."]
                wrong = not parts or any(part in ("", "..") for part in parts)
                if left < 0 or entries < 0 or wrong or not (member.isreg() or member.isdir()):
                    raise _refusal(member.name, node)
                _write(folder, parts, member, tar)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise _refusal(str(error), node) from error
    except OSError as error:
        raise system_error(error, f"cannot write into {quote(str(into))}") from error


def _refusal(name: str, node: str) -> CommandError:
    return CommandError(
        f"what {node} sent back is refused: {quote(name)}",
        cause="a name leads out of the folder, is no file, or there is too much of it",
        action="Fetch single files with --get.",
    )


def _write(
    folder: Directory, parts: list[str], member: tarfile.TarInfo, tar: tarfile.TarFile
) -> None:
    with ExitStack() as opened:
        *parents, name = parts
        for parent in parents:
            folder = opened.enter_context(folder.folder(parent, make=True))
        if member.isdir():
            opened.enter_context(folder.folder(name, make=True))
            return
        source = tar.extractfile(member)
        assert source is not None

        def copy(file: IO[bytes]) -> None:
            # permissions only: neither set-user-ID nor an owner
            os.fchmod(file.fileno(), member.mode & 0o777)
            while chunk := source.read(1 << 16):
                file.write(chunk)

        folder.write(name, copy)


def _machine(guard: Guard) -> CommandNode:
    machine = machine_of(guard.node)
    assert isinstance(machine, CommandNode)
    return machine
