# SPDX-License-Identifier: GPL-2.0-or-later
"""Build the driver with DKMS for a release of Debian's kernel, in a root of that Debian."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from debian_pools import SUITES

TOP = Path(__file__).resolve().parents[2]
NEEDS = ("dkms", "dwarves", "gcc", "make", "patch", "xz-utils")
BOOT_NEEDS = ("busybox-static",)
# The headers of this line lack the kernel's types, which its boot image has.
WITHOUT_TYPES = "6.1"
_NO_INITRAMFS = {"INITRD": "No"}


@dataclass(frozen=True)
class Target:
    """A kernel to build for."""

    release: str
    line: str
    package: str
    """linux-source-X.Y"""
    version: str
    suite: str
    image: str
    """The package of its boot image."""
    tree: Path
    """Holds the driver of its source."""


class NoPackagesError(Exception):
    """A root with a kernel's packages cannot be made: nothing is known of the driver."""


@contextmanager
def dkms_root(target: Target, *, boot: bool) -> Iterator[Path | None]:
    """Yield a root in which DKMS has installed the driver, None if it has not.

    With `boot`, it has the kernel, too. What the commands print goes to stderr.
    Raises NoPackagesError.
    """
    with tempfile.TemporaryDirectory(dir=target.tree.parent) as name:
        root, tar = Path(name) / "root", Path(name) / "root.tar"
        root.mkdir()
        packages = (
            _make_root(target, tar, boot=boot),
            # not in one step: a user cannot write to files that mmdebstrap leaves in a folder
            ["tar", "-xf", str(tar), "-C", str(root), "--no-same-owner", "--exclude=./dev/*"],
        )
        if not all(map(runs, packages)):
            raise NoPackagesError
        yield root if runs(_make_driver(target, root)) else None


def runs(command: Sequence[str], settings: Mapping[str, str] = _NO_INITRAMFS) -> bool:
    """Whether a command ends with 0; what it prints goes to stderr."""
    environment = {**os.environ, **settings}
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False, env=environment
    )
    return done.returncode == 0


def mirrors(suite: str) -> tuple[str, list[str]]:
    """Return the Debian release of a suite, and where apt finds the packages of both."""
    own = "sid" if suite == "experimental" else suite.partition("-")[0]
    lines = [
        f"deb {url} {name} main"
        for url, name in SUITES
        if name in (own, suite) or name.startswith(f"{own}-")
    ]
    return own, lines


def _make_root(target: Target, tar: Path, *, boot: bool) -> list[str]:
    packages = [*NEEDS, f"linux-headers-{target.release}={target.version}"]
    if boot or target.line == WITHOUT_TYPES:
        packages.append(f"{target.image}={target.version}")
    packages += BOOT_NEEDS if boot else ()
    own, lines = mirrors(target.suite)
    command = ["mmdebstrap", "--variant=minbase", "--format=tar"]
    command.append(f"--setup-hook=cat >$1/etc/apt/preferences.d/kernel <<E\n{_pins(target.suite)}E")
    command += ['--aptopt=Acquire::Languages "none"', '--aptopt=Acquire::Retries "5"']
    command += ["--dpkgopt=path-exclude=/usr/share/doc/*", f"--include={','.join(packages)}"]
    return [*command, own, str(tar), *lines]


def _pins(suite: str) -> str:
    """Return preferences for what a kernel of this suite needs of it, such as linux-base."""
    return "\n".join(
        f"Package: linux-*\nPin: release {key}={suite}\nPin-Priority: 990\n" for key in "na"
    )


def in_root(root: Path, binds: Sequence[str], *argv: str) -> list[str]:
    """Return the command that runs a program in a root, which it may change, without network."""
    command = [f"{TOP}/tools/setup/bwrap-anywhere", "--bind", str(root), "/", *binds]
    command += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]  # noqa: S108
    command += ["--unshare-net", "--die-with-parent", "--clearenv"]
    if os.geteuid():
        command += ["--unshare-user", "--uid", "0", "--gid", "0"]
    return [*command, "--setenv", "PATH", "/usr/sbin:/usr/bin", *argv]


def _make_driver(target: Target, root: Path) -> list[str]:
    source = f"/usr/src/{target.package}"
    binds = ["--ro-bind", f"{TOP}/kernel", "/mnt", "--ro-bind", str(target.tree), source]
    return in_root(root, binds, "make", "-C", "/mnt", "dkms-install", f"KVER={target.release}")
