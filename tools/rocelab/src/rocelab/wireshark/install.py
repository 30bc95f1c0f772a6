# SPDX-License-Identifier: GPL-2.0-or-later
"""Install the plugin, the profile and the extcap into Wireshark's folders, and uninstall them.

A record in the configuration folder lists the installed files with their digests. A file that is
not ours, or that the user has changed since, is not overwritten without `force` and never removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import sys
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from rocelab import json_text
from rocelab.conditions import system_error
from rocelab.directory import Directory, read_named
from rocelab.errors import UsageError
from rocelab.wireshark.folders import Folders

PLUGIN = "rocelab.lua"
EXTCAP = "rocelab"
PROFILE = ("preferences", "colorfilters", "heuristic_protos")
_KERNEL_SHEBANG = 127
"""Longest first line of a script, in bytes (BINPRM_BUF_SIZE was 128 before Linux 5.1)."""
_RECORD = "rocelab-installed.json"
_SCHEMA = "rocelab.wireshark-installed/1"
_MAX_RECORD = 1 << 20


@dataclass
class Outcome:
    """The files that an installation or removal touched or left."""

    done: list[Path] = field(default_factory=list)
    """Files written or removed."""
    replaced: list[Path] = field(default_factory=list)
    """Files written over the user's own (only with `force`)."""
    kept: list[Path] = field(default_factory=list)
    """Files left alone: not ours, or changed since."""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _with_python(script: bytes) -> bytes:
    """The extcap script, made to run with this installation's Python."""
    _, _, rest = script.partition(b"\n")
    python = os.fsencode(sys.executable)
    if len(python) + 2 <= _KERNEL_SHEBANG and not any(byte in python for byte in b" \t\n'"):
        return b"#!" + python + b"\n" + rest
    # sh runs the second line; Python reads it as a string
    quoted = shlex.quote(os.fsdecode(python)).encode(errors="surrogateescape")
    return b"#!/bin/sh\n'''exec' " + quoted + b' "$0" "$@"\n' + b"'''\n" + rest


def _targets(where: Folders) -> dict[Path, bytes]:
    files = resources.files("rocelab.wireshark") / "files"
    profile = where.config / "profiles" / "rocelab"
    return {
        where.lua / PLUGIN: (files / PLUGIN).read_bytes(),
        where.extcap / EXTCAP: _with_python((files / "extcap-rocelab").read_bytes()),
        **{profile / name: (files / name).read_bytes() for name in PROFILE},
    }


@dataclass
class _Record:
    """The files that we installed, their digests, and the folders that we made."""

    path: Path
    files: dict[str, str] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, where: Folders) -> _Record:
        path = where.config / _RECORD
        if not path.exists():
            return cls(path)
        try:
            document = json_text.parse(read_named(path, limit=_MAX_RECORD))
            if document["schema"] != _SCHEMA:
                raise ValueError(document["schema"])
            files = {str(name): str(digest) for name, digest in document["files"].items()}
            return cls(path, files, [str(name) for name in document["folders"]])
        except OSError as error:
            raise system_error(
                error,
                f"cannot read {path}",
                action=f"Correct that, or remove {path} and install again with --force.",
            ) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{path} cannot be used",
                cause="this record of installed files is damaged or from another version",
                action=f"Remove {path}, then install again with --force.",
            ) from error

    def write(self) -> None:
        if not self.files:
            self.path.unlink(missing_ok=True)
            return
        document = {"schema": _SCHEMA, "files": self.files, "folders": self.folders}
        self.make(self.path.parent)
        _write(self.path, json.dumps(document, indent=1).encode() + b"\n")

    def make(self, folder: Path) -> None:
        """Make a folder and its parents, and record each new one."""
        if not folder.is_dir():
            self.make(folder.parent)
            folder.mkdir()
            self.folders.append(str(folder))

    def tidy(self) -> None:
        """Remove the folders that we made, innermost first, if they are empty."""
        for name in sorted(self.folders, key=len, reverse=True):
            try:
                Path(name).rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                continue
            self.folders.remove(name)


def _write(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write the file completely or not at all: Wireshark may start meanwhile."""
    with (
        Directory.open(path.parent) as folder,
        folder.replacing(path.name) as made,
        os.fdopen(made, "wb", closefd=False) as file,
    ):
        os.fchmod(made, mode)
        file.write(content)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def install(where: Folders, *, force: bool = False) -> Outcome:
    """Write every file. Without `force`, raises UsageError, writing none, if one is the user's."""
    record = _Record.read(where)
    outcome = Outcome()
    targets = _targets(where)
    for path, content in targets.items():
        there = _content(path)
        if there not in {None, content} and record.files.get(str(path)) != _digest(there or b""):
            outcome.replaced.append(path)
    if outcome.replaced and not force:
        raise UsageError(
            "rocelab did not write these files, or they were changed since:\n"
            + "\n".join(f"  {path}" for path in outcome.replaced),
            cause="they are your own, or Wireshark saved changed columns and colours in them",
            action="Move them away, or overwrite them with --force.",
        )
    try:
        _install_files(record, targets, where, outcome)
    except OSError:
        if not record.files:
            record.tidy()
        raise
    return outcome


def _install_files(
    record: _Record, targets: dict[Path, bytes], where: Folders, outcome: Outcome
) -> None:
    for path, content in targets.items():
        record.make(path.parent)
        name, mode = str(path), 0o755 if path.parent == where.extcap else 0o644
        is_new = name not in record.files
        try:
            if is_new:
                # a file without a record would never be removed; a record without a file is
                record.files[name] = _digest(content)
                record.write()
            _write(path, content, mode)
        except OSError:
            if is_new:
                del record.files[name]
                with contextlib.suppress(OSError):
                    record.write()
            raise
        if not is_new:
            record.files[name] = _digest(content)
            record.write()
        outcome.done.append(path)


def uninstall(where: Folders) -> Outcome:
    """Remove the files that `install` wrote, unless changed, and the folders it made."""
    record = _Record.read(where)
    outcome = Outcome()
    for name, digest in list(record.files.items()):
        path = Path(name)
        there = _content(path)
        if there is not None and _digest(there) == digest:
            path.unlink()
            outcome.done.append(path)
        elif there is not None:
            outcome.kept.append(path)
        del record.files[name]
        if record.files:
            record.write()
    record.path.unlink(missing_ok=True)
    record.tidy()
    return outcome
