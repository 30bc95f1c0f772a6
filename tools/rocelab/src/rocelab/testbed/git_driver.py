# SPDX-License-Identifier: GPL-2.0-or-later
"""Take the driver's source out of a git repository without running anything of it.

`git archive` and `git checkout` run the filters that a repository's own settings name, so the files
are read as git stores them. A partial clone fetches nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from rocelab.errors import MissingError, RocelabError, UsageError

FOLDER = "drivers/infiniband/sw/rxe"
_SECONDS = 300
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_MAX_BYTES = 1 << 22
_MAX_FILES = 200
_MAKEFILE = re.compile(
    r"VERSION = (\d{1,5})\nPATCHLEVEL = (\d{1,5})\nSUBLEVEL = (\d{1,5})\n"
    r"EXTRAVERSION =[ \t]*([A-Za-z0-9.+_-]{0,40})$",
    re.MULTILINE,
)


def resolve(repository: Path, commit: str) -> str:
    """Return git's name of the driver's folder at that commit. Raises UsageError."""
    named = f"{commit}:{FOLDER}"
    done = _git(repository, "rev-parse", "--verify", "-q", "--end-of-options", named)
    if done.returncode:
        raise UsageError(
            f"{repository} has no {FOLDER} at {commit!a}",
            cause=_text(done.stderr) or "no such commit, or another kind of tree",
            action="Name a repository of the kernel and one of its commits.",
        )
    return _text(done.stdout)


def version(repository: Path, commit: str, tree: str) -> str:
    """Return what to call the driver in `tree` of that commit, such as `7.3.0-rc7, git tree 1a2b`.

    The kernel's version is in its Makefile; a repository without one has only git's name.
    """
    name = f"git tree {tree[:12]}"
    makefile = f"{commit}:Makefile"
    size = _git(repository, "cat-file", "-s", makefile)
    if size.returncode or int(size.stdout) > _MAX_BYTES:
        return name
    text = _text(_good(repository, tree, "cat-file", "blob", makefile))
    match = _MAKEFILE.search(text)
    return f"{'.'.join(match.groups()[:3])}{match[4]}, {name}" if match else name


def write(repository: Path, tree: str, folder: Path) -> None:
    """Write the files of a tree that `resolve` found into a folder. Raises UsageError."""
    listing = _good(repository, tree, "ls-tree", "-z", "--end-of-options", tree)
    entries = [entry for entry in listing.decode(errors="replace").split("\0") if entry]
    if len(entries) > _MAX_FILES:
        raise _odd(repository, f"it has {len(entries)} entries")
    folder.mkdir(parents=True)
    for entry in entries:
        facts, _, name = entry.partition("\t")
        mode, kind, blob = facts.split()
        if mode not in ("100644", "100755") or kind != "blob" or not _NAME.fullmatch(name):
            raise _odd(repository, f"{name!a} is no plain file with a plain name")
        if int(_good(repository, tree, "cat-file", "-s", blob)) > _MAX_BYTES:
            raise _odd(repository, f"{name!a} is larger than {_MAX_BYTES} bytes")
        (folder / name).write_bytes(_good(repository, tree, "cat-file", "blob", blob))


def _odd(repository: Path, cause: str) -> UsageError:
    return UsageError(
        f"{repository} holds no driver in {FOLDER}",
        cause=cause,
        action="Name a repository of the kernel.",
    )


def _good(repository: Path, tree: str, *words: str) -> bytes:
    done = _git(repository, *words)
    if done.returncode:
        raise UsageError(
            f"git cannot take the driver from {repository}",
            cause=_text(done.stderr) or f"an object of {tree} is missing",
            action="Name a repository that has all of its objects.",
        )
    return done.stdout


def _git(repository: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    command: Sequence[str] = ["git", "--no-replace-objects", "-C", str(repository), *words]
    # no setting of the repository may make git fetch, and with that run what the setting names
    env = {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=_SECONDS, env=env)
    except FileNotFoundError as error:
        raise MissingError(
            "the program git is missing",
            cause="it is not installed",
            action="Run `apt-get install git`.",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise RocelabError(
            f"git did not answer within {_SECONDS} seconds",
            cause="the machine is too busy, or the repository is on a file system that hangs",
            action="Try again when it is idle.",
        ) from error


def _text(data: bytes) -> str:
    return data.decode(errors="replace").strip()
