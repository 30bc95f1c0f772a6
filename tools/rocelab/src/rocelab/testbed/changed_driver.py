# SPDX-License-Identifier: GPL-2.0-or-later
"""Build the driver with patches on top of the series, or from another source tree."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rocelab.errors import MissingError, RocelabError, UsageError
from rocelab.testbed import artifacts, git_driver
from rocelab.testbed.artifacts import Driver

_BUILD_SECONDS = 1800


def build(
    line: str,
    variant: str,
    *,
    patches: Sequence[Path] = (),
    tree: Path | None = None,
    commit: str = "",
) -> Driver:
    """Return the driver of a line with `patches` on top, from `tree` at `commit` if given.

    Builds it where the nodes' kernel and compiler are (`make changed-module`). The same input is
    built once. Raises UsageError if the patches do not apply or the result does not compile.
    """
    chosen = files(patches)
    found = git_driver.resolve(tree, commit) if tree else ""
    digest = hashlib.sha256(f"{line} {variant} {found}\n".encode())
    for file in chosen:
        digest.update(f"{file.name} {hashlib.sha256(_read(file)).hexdigest()}\n".encode())
    out = artifacts.build_dir() / "ab" / line / digest.hexdigest()[:16]
    _fill(out, chosen, tree, found)
    _make(line, variant, out)
    return artifacts.driver_in(out / "module", f"changed-module LINE={line}")


def files(paths: Sequence[Path]) -> list[Path]:
    """Return the patches of folders and single files, in the order of application.

    Raises UsageError if one has none.
    """
    return [file for path in paths for file in _files(path)]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(path.glob("*.patch"))
    if not found:
        raise UsageError(
            f"{path} holds no patch",
            cause="it is no folder, or has no file NAME.patch",
            action="Give a folder of patches as `git format-patch` writes them.",
        )
    return found


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}",
            cause="it is missing, or its permissions deny access",
            action="Name another patch.",
        ) from error


def _fill(out: Path, patches: Sequence[Path], tree: Path | None, found: str) -> None:
    """Put patches and source into the folder to build in, whole or not at all."""
    if out.exists():
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=".part-", dir=out.parent))
    try:
        if patches:
            (part / "patches").mkdir()
        for number, file in enumerate(patches, start=1):
            (part / "patches" / f"{number:04}-{file.name}").write_bytes(_read(file))
        if tree:
            git_driver.write(tree, found, part / "source")
        part.chmod(0o755)
        part.rename(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _make(line: str, variant: str, out: Path) -> None:
    source = artifacts.source_dir()
    settings = (f"LINE={line}", f"VARIANT={variant}", f"BUILD={artifacts.build_dir()}")
    done = _run(
        ["make", "-C", str(source), "SKIP_APT=1", *settings, f"OUT={out}", "changed-module"]
    )
    if done.returncode:
        said = [text for text in done.stderr.splitlines() if not text.startswith("make")]
        raise UsageError(
            f"the driver of line {line} cannot be built with this change",
            cause="\n".join(said[-12:]) or "make said nothing",
            action=f"Correct the patch or the tree; the whole log is {out}/module/build.log.",
        )


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_BUILD_SECONDS
        )
    except FileNotFoundError as error:
        raise MissingError(
            f"the program {command[0]} is missing",
            cause="it is not installed",
            action=f"Run `apt-get install {command[0]}`.",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise RocelabError(
            f"`{command[0]}` did not end within {_BUILD_SECONDS} seconds",
            cause="the machine is too busy",
            action="Try again when it is idle.",
        ) from error
