# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernels that Debian's pools hold today, and the rxe driver of each.

Asked with apt, which checks signatures, in a folder of our own: the package lists of this machine
stay as they are.
"""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from source import fail

MIRROR, SECURITY = "http://deb.debian.org/debian", "http://deb.debian.org/debian-security"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
STABLE = ("bookworm", "trixie")
SUITES = (
    *((MIRROR, f"{name}{part}") for name in STABLE for part in ("", "-updates", "-backports")),
    *((SECURITY, f"{name}-security") for name in STABLE),
    *((MIRROR, name) for name in ("forky", "sid", "experimental")),
)
RXE = "drivers/infiniband/sw/rxe"
# not those of the flavours cloud and rt
_HEADERS = re.compile(r"linux-headers-(\d(?:(?!-cloud-|-rt-).)*)-amd64")
_SOURCE = re.compile(r"linux-source-\d+\.\d+")
_CONFIG = """\
Dir::State "{folder}";
Dir::State::status "/dev/null";
Dir::Cache "{folder}/cache";
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "-";
APT::Architecture "amd64";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "5";
"""


@dataclass(frozen=True)
class Kernel:
    """A source package of a kernel, and the releases of the kernels that were built from it."""

    package: str
    version: str
    releases: tuple[str, ...] = ()


def stanzas(text: str) -> Iterator[dict[str, str]]:
    """Return what `apt-cache show` says of each package, without continued lines."""
    for stanza in text.split("\n\n"):
        if fields := dict(re.findall(r"^(\S+): (.*)$", stanza, re.MULTILINE)):
            yield fields


def kernels(packages: Iterable[dict[str, str]]) -> list[Kernel]:
    """Match headers with the source of their version; the oldest source of a series first.

    A metapackage of headers depends on no -common.
    """
    sources: dict[str, str] = {}
    releases: dict[str, set[str]] = {}
    for package in packages:
        name, version = package["Package"], package["Version"]
        if _SOURCE.fullmatch(name):
            sources[version] = name
        elif _HEADERS.fullmatch(name) and "-common" in package.get("Depends", ""):
            releases.setdefault(version, set()).add(name.removeprefix("linux-headers-"))
    every = [
        Kernel(name, version, tuple(sorted(releases.get(version, ()))))
        for version, name in sources.items()
    ]
    return sorted(every, key=lambda kernel: in_order(kernel.version))


def in_order(version: str) -> list[int]:
    """Return a sort key of versions: a pre-release (~rc7, ~deb12u1) before what follows it."""
    words = re.findall(r"~|\d+", version)
    return [-1 if word == "~" else int(word) for word in words] + [0]


def changes(changelog: str, since: str) -> list[str]:
    """Return what a kernel's Debian changelog says of rxe after version `since`."""
    newer = []
    for section in re.split(r"(?m)^(?=linux \()", changelog):
        version = re.match(r"linux \(([^)]+)\)", section)
        if version and in_order(version[1]) <= in_order(since):
            break
        newer.append(section)
    entries = re.findall(r"(?m)^ +[-*] (.*(?:\n {4,}(?![-*] )\S.*)*)", "".join(newer))
    joined = (re.sub(r"\s+", " ", entry) for entry in entries)
    return [entry for entry in joined if re.search(r"\brxe\b", entry)]


class Pools:
    """Debian's package lists in a folder."""

    def __init__(self, folder: Path) -> None:
        """Fetch the lists."""
        if not KEYRING.exists():
            fail(f"{KEYRING} is missing", "this is no Debian", "install debian-archive-keyring")
        self._config = folder / "apt.conf"
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True)
        lines = [f"deb [signed-by={KEYRING}] {url} {suite} main\n" for url, suite in SUITES]
        (folder / "sources.list").write_text("".join(lines))
        self._config.write_text(_CONFIG.format(folder=folder))
        self._apt("get", "-qq", "-o", "APT::Update::Error-Mode=any", "update")

    def _apt(self, program: str, *words: str, folder: Path | None = None) -> str:
        done = subprocess.run(
            [f"apt-{program}", *words], cwd=folder, capture_output=True, text=True, check=False,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "APT_CONFIG": str(self._config)},
        )  # fmt: skip
        if done.returncode:
            fail(
                f"apt-{program} {words[-1]}: {done.stderr.strip()[-500:]}",
                "a mirror cannot be reached, or changes at this moment",
                "try again",
            )
        return done.stdout

    def kernels(self) -> list[Kernel]:
        """Return all kernels for amd64."""
        names = self._apt("cache", "pkgnames", "linux-").split()
        chosen = [name for name in names if _SOURCE.fullmatch(name) or _HEADERS.fullmatch(name)]
        return kernels(stanzas(self._apt("cache", "show", *chosen)))

    def suite(self, package: str, version: str) -> str:
        """Return a suite that has a version of a package."""
        lines = self._apt("cache", "madison", package).splitlines()
        rows = ([column.strip() for column in line.split("|")] for line in lines)
        return next(row[2].split()[1].partition("/")[0] for row in rows if row[1] == version)

    def image(self, release: str) -> str:
        """Return the package of a boot image.

        One without a signature comes with the headers, the signed one days later; 7.x has no such
        two.
        """
        name = f"linux-image-{release}"
        names = self._apt("cache", "pkgnames", name).split()
        return max((each for each in names if each in (name, f"{name}-unsigned")), key=len)

    def fetch(self, kernel: Kernel, out: Path) -> None:
        """Put the driver and the changelog of a kernel into the folder `out`."""
        with tempfile.TemporaryDirectory(dir=out.parent) as name:
            work = Path(name)
            self._apt("get", "-qq", "download", f"{kernel.package}={kernel.version}", folder=work)
            (package,) = work.glob("*.deb")
            docs, archive = f"usr/share/doc/{kernel.package}", f"usr/src/{kernel.package}.tar.xz"
            _unpack(["dpkg-deb", "--fsys-tarfile", str(package)], work, (docs, archive))
            package.unlink()
            tree = work / "tree"
            _unpack_driver(work / archive, kernel.package, tree)
            with gzip.open(work / docs / "changelog.Debian.gz", "rt", errors="replace") as file:
                (tree / "changelog").write_text(file.read())
            (tree / "rocelab-version").write_text(f"{kernel.version}\n")
            shutil.rmtree(out, ignore_errors=True)
            tree.rename(out)


def _unpack(command: list[str], out: Path, members: Sequence[str]) -> None:
    """Unpack members of the tar archive that a command writes."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        names = [f"./{member}" for member in members]
        subprocess.run(["tar", "-xf", "-", "-C", out, *names], stdin=process.stdout, check=True)
    if process.returncode:
        fail(f"{command[0]} ended with {process.returncode}", "the disk is full", "try again")


def _unpack_driver(archive: Path, top: str, tree: Path) -> None:
    """Unpack the driver alone: its files follow each other, and no more is read than up to them."""
    with tarfile.open(archive, "r|xz") as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            if path.is_relative_to(f"{top}/{RXE}"):
                if content := tar.extractfile(member):
                    out = tree / path.relative_to(top)
                    out.parent.mkdir(parents=True, exist_ok=True)
                    out.write_bytes(content.read())
            elif tree.exists():
                break
