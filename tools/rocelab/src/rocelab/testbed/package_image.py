# SPDX-License-Identifier: GPL-2.0-or-later
"""Images of nodes with more packages: a line's image, and what apt-get installs in a copy of it.

Each is a folder in a cache of bounded size, named by the hash of its recipe: the line's image, the
packages, and how they are installed. It has what `bring_up` boots from. Packages come from the
mirrors of the line's image. Needs no root where user namespaces are allowed (mmdebstrap).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import IO, Self

from rocelab.errors import MissingError, RocelabError, UsageError
from rocelab.plans import packages as rules
from rocelab.strict import quote
from rocelab.testbed import artifacts, lock
from rocelab.testbed.cache_folder import cache_dir

MAX_BYTES = 4 << 30
"""Of all images; one has some 650 MB."""
_MAX_DISK_SHARE = 0.5
"""No more than this share of what is free."""
_MAX_FILE_BYTES = 1 << 30
_FORMAT = 1
"""Of the folder."""
_EPOCH = "1767225600"
"""The clock of files in images (tools/node/build.py)."""
_SECONDS = 3600
_FACTS, _ROOT = "image.json", "root.sqfs"
_WANTED, _LIST = "wanted", "packages.tsv"
_PROGRAMS = ("mmdebstrap", "sqfs2tar", "tar2sqfs")
_MMDEBSTRAP = ("mmdebstrap", "--variant=custom", "--format=tar", "--skip=update")
_SAYS = re.compile(r"^rocelab: (unknown|no mirror|refused) ?(.*)$", re.MULTILINE)

Say = Callable[[str], None]


@dataclass(frozen=True)
class Packages:
    """What nodes get in addition: names of the archive, and .deb files of this machine."""

    names: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        """Read values of --package: names, .deb files and folders of them. Raises UsageError."""
        names: dict[str, None] = {}
        files: dict[Path, None] = {}
        for word in words:
            if "/" in word or word.endswith(".deb"):
                files |= dict.fromkeys(_files(Path(word)))
            elif re.fullmatch(rules.NAME, word):
                names[word] = None
            else:
                raise UsageError(
                    f"{quote(word)} is not {rules.WORDS}",
                    cause="it has at least two characters of a-z, 0-9, plus, dash and dot",
                    action="Name a package, or a .deb file or a folder of them with a slash.",
                )
        if len(names) + len(files) > rules.MAX_PACKAGES:
            raise UsageError(
                f"--package names more than {rules.MAX_PACKAGES} packages",
                cause="a folder may have that many",
                action="Name fewer: what a package depends on comes along.",
            )
        return cls(tuple(sorted(names)), tuple(sorted(files)))

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.names or self.files)

    @property
    def labels(self) -> tuple[str, ...]:
        """What they are called: a file by its name and the hash of its content."""
        return (*self.names, *(f"{path.name} {_digest(path)[:12]}" for path in self.files))


NONE = Packages()


@dataclass(frozen=True)
class Image:
    """An image in the cache."""

    path: Path
    what: str
    """For people."""
    size: int
    """Bytes on the disk."""
    used: float
    """When it was last asked for, as time.time()."""


def folder() -> Path:
    """Return where the images are; it may not exist."""
    return cache_dir() / "packages"


def of_line(line: str, packages: Packages, say: Say) -> Path:
    """Return the folder of a line's image with packages, made if necessary.

    Raises UsageError for packages that cannot be had, MissingError if this machine cannot make it.
    """
    base = artifacts.image(line)
    if not packages:
        return base
    labels = packages.labels
    path = folder() / f"{line}-{_recipe(base, labels)}"
    folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    waiting = "waiting for another rocelab, which installs these packages"
    with lock.hold(path.with_name(f".{path.name}.lock"), "", lambda: say(waiting)):
        if not (path / _FACTS).exists():
            say(f"installing {', '.join(labels)} in a copy of the image, once")
            _make(base, packages, labels, path)
            _make_room(path)
    with suppress(OSError):
        os.utime(path)
    return path


def entries() -> list[Image]:
    """Return all images, the one that was used last first."""
    images = []
    for path in folder().glob("*/"):
        with suppress(OSError, RocelabError):
            facts = artifacts.facts(path / _FACTS)
            label = f"kernel line {facts.get('line')} with {', '.join(facts.get('packages', ()))}"
            images.append(Image(path, label, _size(path), path.stat().st_mtime))
    return sorted(images, key=lambda each: each.used, reverse=True)


def clear() -> tuple[int, int]:
    """Remove all images, and what killed processes left; return how many, and their bytes.

    Machines that are up keep theirs open.
    """
    known = entries()
    shutil.rmtree(folder(), ignore_errors=True)
    return len(known), sum(each.size for each in known)


def _files(path: Path) -> list[Path]:
    """Return a .deb file, or those of a folder. Raises UsageError."""
    files = sorted(path.glob("*.deb")) if path.is_dir() else [path]
    if not files or not all(each.is_file() and each.suffix == ".deb" for each in files):
        raise UsageError(
            f"--package {quote(str(path))} has no package",
            cause="it is neither a file NAME.deb nor a folder with such files",
            action="Give one of them, or the name of a package without a slash.",
        )
    for each in files:
        if each.stat().st_size > _MAX_FILE_BYTES:
            raise UsageError(
                f"{quote(str(each))} is too large for a package",
                cause=f"it has more than {_MAX_FILE_BYTES >> 20} MiB",
                action="Name another file.",
            )
    return [each.resolve() for each in files]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _script() -> str:
    return (resources.files("rocelab.testbed") / "install_packages.sh").read_text("utf-8")


def _recipe(base: Path, labels: Sequence[str]) -> str:
    decisive = [_FORMAT, (base / _FACTS).read_text(), list(labels), _script()]
    return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()[:16]


def _size(path: Path) -> int:
    return sum(each.lstat().st_size for each in path.iterdir())


def _make(base: Path, packages: Packages, labels: Sequence[str], path: Path) -> None:
    """Make an image aside, then rename it whole."""
    for program in _PROGRAMS:
        if not shutil.which(program):
            raise MissingError(
                f"{program} is not installed",
                cause="packages are installed in a copy of the nodes' image",
                action="Run `make setup`.",
            )
    with _aside(path) as work:
        for name in ("vmlinuz", "initramfs.cpio"):
            shutil.copy(base / name, work / name)
        _write_packages(work / _WANTED, packages)
        _install(base, work)
        shutil.rmtree(work / _WANTED)
        facts = artifacts.facts(base / _FACTS) | {
            "recipe": path.name,
            "packages": list(labels),
            "packages_sha256": _digest(work / _LIST),
        }
        (work / _FACTS).write_text(json.dumps(facts, indent=1) + "\n")


@contextmanager
def _aside(path: Path) -> Iterator[Path]:
    """Yield a folder that becomes `path` at the end, or goes."""
    work = path.with_name(f".{path.name}.new")
    # of one that was killed: we hold the lock
    for old in (work, path):
        shutil.rmtree(old, ignore_errors=True)
    work.mkdir()
    try:
        yield work
        work.rename(path)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _write_packages(into: Path, packages: Packages) -> None:
    into.mkdir()
    (into / "names").write_text("".join(f"{name}\n" for name in packages.names))
    for number, file in enumerate(packages.files):
        shutil.copy(file, into / f"{number}.deb")


def _install(base: Path, work: Path) -> None:
    """Unpack the base, install in it, and pack the result. Raises UsageError, MissingError."""
    suite = str(artifacts.facts(base / _FACTS).get("suite"))
    environment = os.environ | {
        "SOURCE_DATE_EPOCH": _EPOCH,
        "LC_ALL": "C.UTF-8",
        "INITRD": "No",
    }
    with (work / "root.log").open("wb") as log, ExitStack() as running:

        def start(
            argv: Sequence[str | Path],
            stdin: IO[bytes] | None,
            stdout: IO[bytes] | int | None,
            inherits: Sequence[int] = (),
        ) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                argv,
                stdin=stdin or subprocess.DEVNULL,
                stdout=stdout,
                stderr=log,
                env=environment,
                pass_fds=inherits,
            )
            running.callback(process.wait)
            running.callback(process.terminate)
            return process

        # names that begin with ./, as mmdebstrap has them
        unpack = start(["sqfs2tar", "--root-becomes", ".", base / _ROOT], None, subprocess.PIPE)
        assert unpack.stdout is not None
        with unpack.stdout as root:
            hooks = _hooks(root.fileno(), work)
            make = start([*_MMDEBSTRAP, *hooks, suite, "-"], None, subprocess.PIPE, [root.fileno()])
        assert make.stdout is not None
        with make.stdout as made:
            pack = start(["tar2sqfs", "-q", "-c", "lz4", "-f", work / _ROOT], made, None)
        try:
            failed = make.wait(_SECONDS) or pack.wait(_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise RocelabError(
                f"packages were not installed within {_SECONDS} s",
                cause="a mirror or this machine is too slow",
                action="Try again.",
            ) from error
    if failed:
        raise _failure(suite, (work / "root.log").read_text(errors="replace"))


def _hooks(root: int, work: Path) -> Iterator[str]:
    """Yield mmdebstrap's hooks; `root` is the descriptor of the base as a tar.

    What runs in a user namespace may not enter its user's home, so mmdebstrap's parent copies; and
    it cannot make devices, which mmdebstrap has made.
    """
    how = "--numeric-owner --xattrs --xattrs-include=* --exclude=./dev/*"
    unpack = f'exec tar -C "$1" {how} -x <&{root}'
    yield f'--setup-hook=bash -f -c {shlex.quote(unpack)} bash "$1"'
    yield f"--customize-hook=copy-in {shlex.quote(str(work / _WANTED))} /usr/src"
    yield f"--customize-hook={_script()}"
    yield f"--customize-hook=download /usr/src/{_LIST} {shlex.quote(str(work / _LIST))}"


def _failure(suite: str, log: str) -> RocelabError:
    """Return the error for what was said."""
    match = _SAYS.search(log)
    if match and match[1] == "unknown":
        return UsageError(
            f"there is no package {match[2]} in Debian {suite}",
            cause="a typing error, or it is only in another release or archive",
            action="Look for it on packages.debian.org, or give its .deb file.",
        )
    # apt's and dpkg's own words come before mmdebstrap's
    lines = [line for line in log[: match.start() if match else None].splitlines() if line.strip()]
    tail = "\n".join(lines[-8:])[-1500:]
    if match and match[1] == "refused":
        return UsageError(
            "the packages cannot be installed",
            cause=tail,
            action="Name packages that go together, with a file for each that no mirror has.",
        )
    return MissingError(
        "no package could be installed",
        cause=tail or "mmdebstrap said nothing",
        action="Check that this machine reaches Debian's mirrors, and has 3 GiB free in /tmp.",
    )


def _make_room(newest: Path) -> None:
    """Remove what killed processes left, and the longest unused images until the rest fits."""
    for part in folder().glob(".*.new"):
        with suppress(OSError):
            if time.time() - part.stat().st_mtime > _SECONDS:
                shutil.rmtree(part, ignore_errors=True)
    images = entries()
    used = sum(each.size for each in images)
    limit = min(MAX_BYTES, int(_MAX_DISK_SHARE * (shutil.disk_usage(folder()).free + used)))
    for oldest in reversed(images):
        if used <= limit:
            break
        if oldest.path != newest:
            used -= oldest.size
            shutil.rmtree(oldest.path, ignore_errors=True)
