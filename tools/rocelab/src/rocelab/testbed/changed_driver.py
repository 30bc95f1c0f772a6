# SPDX-License-Identifier: GPL-2.0-or-later
"""Build the driver with patches on top of the series, or from another source tree."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rocelab.conditions import system_error
from rocelab.errors import MissingError, RocelabError, UsageError
from rocelab.testbed import artifacts, git_driver, lock
from rocelab.testbed.artifacts import Driver

_BUILD_SECONDS = 1800
_SAID = 12
"""Lines of the build that an error quotes."""
# how fail.sh of kernel/scripts speaks
_FAILURE = re.compile(r"kernel: (.*)\n {2}likely cause: (.*)\n {2}what to do: ")


@dataclass(frozen=True)
class Source:
    """The driver in a git repository, instead of the kernel's own."""

    repository: Path
    commit: str
    tree: str
    """Git's name of the driver's folder."""
    version: str
    """What to call it, the kernel's version included where it is known."""

    @classmethod
    def of(cls, repository: Path, commit: str) -> Source:
        """Look it up. Raises UsageError if there is none."""
        tree = git_driver.resolve(repository, commit)
        return cls(repository, commit, tree, git_driver.version(repository, commit, tree))


def build(
    line: str,
    variant: str,
    *,
    patches: Sequence[Path] = (),
    tree: Path | None = None,
    commit: str = "",
    say: Callable[[str], None],
) -> Driver:
    """Return the driver of a line with `patches` on top, from `tree` at `commit` if given.

    Builds it where the nodes' kernel and compiler are (`make changed-module`). The same input is
    built once, by one process at a time; `say` tells that another does. Raises UsageError if the
    patches do not apply or the result does not compile.
    """
    chosen = files(patches)
    source = Source.of(tree, commit) if tree else None
    digest = hashlib.sha256(f"{line} {variant} {source.version if source else ''}\n".encode())
    for file in chosen:
        digest.update(f"{file.name} {hashlib.sha256(_read(file)).hexdigest()}\n".encode())
    out = artifacts.build_dir() / "ab" / line / digest.hexdigest()[:16]
    out.parent.mkdir(parents=True, exist_ok=True)
    waiting = "waiting for another rocelab, which builds the same driver"
    with lock.hold(out.with_name(f".{out.name}.lock"), "", lambda: say(waiting)):
        _fill(out, chosen, source)
        done = _make(line, variant, out)
    if done.returncode:
        raise refusal(done.stderr, line=line, patches=chosen, source=source, log=_log(out))
    return artifacts.driver_in(out / "module", f"changed-module LINE={line}")


def files(paths: Sequence[Path]) -> list[Path]:
    """Return the patches of folders and single files, in the order of application.

    Raises UsageError if one has none.
    """
    return [file for path in paths for file in _files(path)]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    patches = sorted(path.glob("*.patch"))
    if not patches:
        raise UsageError(
            f"{path} holds no patch",
            cause="it is no folder, or has no file NAME.patch",
            action="Give a folder of patches as `git format-patch` writes them.",
        )
    return patches


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise system_error(error, f"cannot read {file}", action="Name another patch.") from error


def _name(number: int, patch: Path) -> str:
    """Return what a patch is called where the driver is built."""
    return f"{number:04}-{patch.name}"


def _fill(out: Path, patches: Sequence[Path], source: Source | None) -> None:
    """Put patches and source into the folder to build in, whole or not at all."""
    if out.exists():
        return
    part = Path(tempfile.mkdtemp(prefix=".part-", dir=out.parent))
    try:
        if patches:
            (part / "patches").mkdir()
        for number, file in enumerate(patches, start=1):
            (part / "patches" / _name(number, file)).write_bytes(_read(file))
        if source:
            write_source(source, part / "source")
        part.chmod(0o755)
        part.rename(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def write_source(source: Source, folder: Path) -> None:
    """Write it into a folder as the build takes it (RXE_SRC of kernel/Makefile)."""
    git_driver.write(source.repository, source.tree, folder / git_driver.FOLDER)
    (folder / "rocelab-version").write_text(f"{source.version}\n")


def _make(line: str, variant: str, out: Path) -> subprocess.CompletedProcess[str]:
    source = artifacts.source_dir()
    settings = (f"LINE={line}", f"VARIANT={variant}", f"BUILD={artifacts.build_dir()}")
    return _run(
        ["make", "-C", str(source), "SKIP_APT=1", *settings, f"OUT={out}", "changed-module"]
    )


def _log(out: Path) -> Path | None:
    """Return the compiler's log, None if it did not come to that."""
    log = out / "module" / "build.log"
    return log if log.exists() else None


def refusal(
    stderr: str,
    *,
    line: str,
    patches: Sequence[Path] = (),
    source: Source | None = None,
    log: Path | None = None,
) -> UsageError:
    """Return the error for what `make changed-module` said when it failed."""
    text = "\n".join(row for row in stderr.splitlines() if not row.startswith("make"))
    failure = _FAILURE.search(text)
    output = text[: failure.start()] if failure else text
    cause = output.splitlines()[-_SAID:] or ["" if failure else "make said nothing"]
    if failure:
        cause.append(f"{failure[1].removesuffix(' (file and hunk above)')}: {failure[2]}")
    where = f"; the whole log is {log}" if log else ""
    theirs = any(_name(number, file) in text for number, file in enumerate(patches, start=1))
    if source and not theirs:
        first = "Correct the patch, or name" if patches else "Name"
        return UsageError(
            f"the driver of {source.repository}@{source.commit} does not fit kernel line {line}",
            cause="\n".join(filter(None, cause)),
            action=f"{first} a commit whose driver is closer to that of the line's kernel, or "
            f"another line (line:LINE+tree:…), or adapt the series (kernel/README.md){where}.",
        )
    return UsageError(
        f"the driver of line {line} cannot be built with this change",
        cause="\n".join(filter(None, cause)),
        action=f"Correct the patch{where}.",
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
