# SPDX-License-Identifier: GPL-2.0-or-later
"""Ordinary conditions of a machine, as errors that say what failed, why, and what to do.

A full disk, a folder of another user or a missing program is no bug. This is the only place that
says what each means to a user and which exit code it has.
"""

from __future__ import annotations

import errno
import os
import re
import resource
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rocelab.errors import MissingError, RocelabError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

_Meaning = tuple[type[RocelabError], str, str]
"""The kind of error, which gives the exit code; the likely cause; what to do."""

_ELSEWHERE = "Name another path."
_KIND = (UsageError, "it is another kind of file than is needed here", _ELSEWHERE)
_PERMISSION = (
    UsageError,
    "it belongs to another user, or its permissions deny access",
    "Look at its owner and mode with `ls -ld`, or name another path.",
)
_FULL = (MissingError, "the disk is full", "Free some space, or name a path on another disk.")
_DESCRIPTORS = (
    MissingError,
    "too many files are open, or the limit is low",
    "Close some programs, or raise the limit with `ulimit -n`.",
)
_DISK = (
    MissingError,
    "the disk or the network file system fails",
    "Look at the kernel's log with `dmesg`, or name a path on another disk.",
)

_MEANINGS: dict[int, _Meaning] = {
    errno.ENOENT: (UsageError, "it does not exist, or a folder on the way to it", _ELSEWHERE),
    errno.ENOTDIR: (UsageError, "a file stands where a folder is needed", _ELSEWHERE),
    errno.EISDIR: (UsageError, "it is a folder, and a file is needed", _ELSEWHERE),
    errno.EEXIST: (UsageError, "a file of that name is there already", _ELSEWHERE),
    errno.ENOTEMPTY: (UsageError, "a folder of that name is there already", _ELSEWHERE),
    errno.ELOOP: (UsageError, "symbolic links lead in a circle", _ELSEWHERE),
    errno.ENAMETOOLONG: (UsageError, "the name is too long for the file system", _ELSEWHERE),
    errno.EFBIG: (UsageError, "it is larger than such a file can be", _ELSEWHERE),
    errno.EINVAL: _KIND,
    errno.ENXIO: _KIND,
    errno.ENODEV: _KIND,
    errno.ESPIPE: _KIND,
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.EROFS: (UsageError, "the file system is read-only", "Name a path on another disk."),
    errno.ENOSPC: _FULL,
    errno.EDQUOT: (
        MissingError,
        "your quota on that disk is used up",
        "Free some space, or name a path on another disk.",
    ),
    errno.EIO: _DISK,
    errno.ESTALE: _DISK,
    errno.EMFILE: _DESCRIPTORS,
    errno.ENFILE: _DESCRIPTORS,
    errno.ENOMEM: (MissingError, "memory is used up", "Close some programs, and try again."),
    errno.EAGAIN: (
        MissingError,
        "the limit of processes is reached",
        "Close some programs, or raise the limit with `ulimit -u`.",
    ),
    errno.EBADF: (UsageError, "it was closed before rocelab started", "Do not close it."),
}


_RUST = re.compile(r"\(os error (\d{1,3})\)|\bcode: (\d{1,3}), kind:")

_EXTRAS = {
    **dict.fromkeys(("altair", "jinja2", "markupsafe", "polars", "vl_convert"), "report"),
    "qemu": "report,lab",
}
"""By module: the extra of pyproject.toml that has it."""

_MIN_DESCRIPTORS = 64
_MIN_MEMORY = {resource.RLIMIT_AS: (1 << 30, "-v"), resource.RLIMIT_DATA: (256 << 20, "-d")}
"""Bytes, and the shell's option: polars reserves most addresses before it does anything; a thread
of it that gets no stack is waited for without end."""
_MIN_STACK = 1 << 20
"""Bytes with which no library ends."""
_MAX_SOCKET_PATH = 107
"""Bytes; unix(7) counts the zero at the end, too."""
_HEAD_BYTES = 256
"""Of a file, which say what it is."""


def _number(error: BaseException) -> int:
    """Return the error's number; libraries written in Rust have it only in their text."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    match = _RUST.search(str(error))
    return int(match[1] or match[2]) if match else 0


def explain(error: BaseException, what: str = "", *, action: str = "") -> RocelabError | None:
    """Say what a system error means to the user; None if it is none that is to be expected.

    `error` is an OSError, or what a library made of one.

    `what` says what failed, without the reason, which is added. `action` replaces the advice; if
    this machine lacks something, it follows it.
    """
    number = _number(error)
    meaning = _MEANINGS.get(number)
    if meaning is None:
        return None
    kind, cause, advice = meaning
    if number == errno.ENOENT and _starts_program(error):
        kind, cause = MissingError, "the program is not installed, or not in PATH"
        advice = "Install it; `rocelab doctor` names the package."
    file = getattr(error, "filename", None)
    name = "" if file is None else os.fsdecode(file)
    reason = getattr(error, "strerror", None) or os.strerror(number)
    failed = what or (f"cannot use {name}" if name else "reading or writing failed")
    if kind is MissingError and action:
        action = f"{advice} {action}"
    return kind(f"{failed}: {reason}", cause=cause, action=action or advice)


def lack(error: BaseException, what: str) -> RocelabError | None:
    """As `explain`, and None unless the error says that this machine lacks something."""
    known = explain(error, what)
    return known if isinstance(known, MissingError) else None


def system_error(error: Exception, what: str, *, action: str = "") -> RocelabError:
    """As `explain`, for a place where any system error is for the user to fix."""
    return explain(error, what, action=action) or UsageError(
        f"{what}: {str(getattr(error, 'strerror', None) or error)[:200]}",
        cause="the operating system refuses it",
        action=action or _ELSEWHERE,
    )


def check_descriptors() -> None:
    """Raise MissingError unless enough files can be open: some libraries abort without them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= _MIN_DESCRIPTORS:
        return
    if hard < _MIN_DESCRIPTORS:
        kind, cause, action = _DESCRIPTORS
        raise kind(f"only {hard} files can be open here", cause=cause, action=action)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_MIN_DESCRIPTORS, hard))


def check_memory() -> None:
    """Raise MissingError where a limit leaves too little: some libraries abort or hang then."""
    for kind, (least, option) in _MIN_MEMORY.items():
        soft, hard = resource.getrlimit(kind)
        if soft == resource.RLIM_INFINITY or soft >= least:
            continue
        if hard != resource.RLIM_INFINITY and hard < least:
            raise MissingError(
                f"only {hard >> 20} MiB of memory can be reserved here",
                cause=f"a limit is set, as by `ulimit {option}`",
                action=f"Raise it to {least >> 20} MiB or more; limit memory by a cgroup.",
            )
        resource.setrlimit(kind, (least, hard))


def check_polars_threads() -> None:
    """Raise UsageError for a number of threads with which polars panics, or never gets started."""
    asked = os.environ.get("POLARS_MAX_THREADS")
    if asked and not re.fullmatch(r"0*[1-9][0-9]{0,2}", asked, re.ASCII):
        raise UsageError(
            f"POLARS_MAX_THREADS is {asked!a:.40}",
            cause="it is set to no number of threads that polars can have",
            action="Unset it, or set it to a number from 1 to 999.",
        )


def is_memory_limited() -> bool:
    """Say whether a limit of memory is set for this process, as by `ulimit -v`, `-d` or `-s`."""
    limits = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return any(limit != resource.RLIM_INFINITY for limit in limits) or 0 <= stack < _MIN_STACK


def keep_bytecode_whole() -> None:
    """Write no bytecode where a limit could cut it: Python would take the part for the whole."""
    if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
        sys.dont_write_bytecode = True


def check_new_file(path: Path, what: str, *, action: str, begins: bytes) -> None:
    """Refuse a path to which a finished temporary file cannot be renamed. Raises UsageError.

    A file that is there is replaced only if it is empty, or has `begins` in its first bytes, as
    what was written before has: one forgotten word must not cost a capture.
    """
    if path.name in ("", ".."):
        raise UsageError(
            f"{path} cannot be {what}", cause="it is the name of a folder", action=action
        )
    if path.exists() and not path.is_file():
        raise UsageError(
            f"{path} is not a regular file",
            cause=f"{what} is written to a temporary file and then renamed",
            action=action,
        )
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:  # there is none, or who writes it says why it cannot be
        return
    if head and begins not in head:
        raise UsageError(
            f"{path} is there, and is not {what} of before",
            cause="it would be replaced, and something else may need it",
            action=action,
        )


def check_are_captures(names: Sequence[str], errors: Iterable[Mapping[str, Any]]) -> None:
    """Refuse files that are no captures; `errors` are the core's, with a `file` by its place."""
    for row in errors:
        if str(row["error"]).startswith("neither pcap nor pcapng"):
            raise UsageError(
                f"{names[row['file']]} cannot be used",
                cause=row["error"],
                action="Name captures, and after --trace what rxedump wrote.",
            )


def without_extra(error: ModuleNotFoundError) -> RocelabError | None:
    """What a package that is not installed means; None if it is of no extra of rocelab's."""
    package = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(package)
    if extra is None:
        return None
    return MissingError(
        f"this needs the Python package {package}",
        cause=f"rocelab was installed without its extra `{extra}`",
        action=f"Install it again with the extra: `pipx install --force 'WHEEL[{extra}]'`.",
    )


def sizes(paths: Iterable[Path]) -> list[int]:
    """Return the files' sizes, for `shrunk`; 0 for one that cannot be read."""
    return [path.stat().st_size if path.is_file() else 0 for path in paths]


def shrunk(paths: Sequence[Path], before: Iterable[int]) -> list[dict[str, Any]]:
    """Return an error for each file that lost bytes meanwhile, as the core tells of one."""
    return [
        {"file": str(path), "error": "it became shorter while it was read"}
        for path, size, now in zip(paths, before, sizes(paths), strict=True)
        if now < size
    ]


def home() -> Path:
    """Return the user's home folder. Raises UsageError for a user without one, as in containers."""
    from pathlib import Path

    try:
        return Path.home()
    except RuntimeError as error:
        raise UsageError(
            "your home folder is unknown",
            cause="HOME is not set, and this user has no entry in /etc/passwd",
            action="Set HOME to a folder of yours.",
        ) from error


def xdg_folder(variable: str) -> Path | None:
    """Return the folder that an XDG variable names; None for a relative path, as XDG demands."""
    from pathlib import Path

    named = os.environ.get(variable, "")
    return Path(named) if named.startswith("/") else None


def check_socket(path: Path, variable: str) -> None:
    """Raise UsageError if no socket can have a path, which begins with that of a variable."""
    length = len(os.fsencode(path))
    if length > _MAX_SOCKET_PATH:
        raise UsageError(
            f"{path} is too long for a socket: {length} bytes",
            cause=f"{variable} names a folder with a long path; Linux allows {_MAX_SOCKET_PATH}",
            action=f"Set {variable} to a folder with a shorter path.",
        )


def out_of_memory() -> RocelabError:
    """What a MemoryError means."""
    kind, cause, action = _MEANINGS[errno.ENOMEM]
    return kind("this machine has too little memory for that", cause=cause, action=action)


def without_threads() -> RocelabError:
    """What it means that Python cannot start a thread."""
    kind, cause, action = _MEANINGS[errno.EAGAIN]
    return kind("a thread cannot be started", cause=cause, action=action)


def _starts_program(error: BaseException) -> bool:
    """Whether a program, not a file, is missing: they differ only in who raised the error."""
    # help needs no traceback
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].name in ("_execute_child", "_execvpe", "execvp")
