# SPDX-License-Identifier: GPL-2.0-or-later
"""Build the driver for a release of Debian's kernel, in a root with its headers."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from debian_pools import SUITES

TOP = Path(__file__).resolve().parents[2]
NEEDS = ("dwarves", "gcc", "make", "patch", "xz-utils")
# The headers of this line lack the kernel's types, which its boot image has. The one without a
# signature comes with the headers, the signed one days later.
WITHOUT_TYPES = "6.1"


def builds(release: str, line: str, version: str, suite: str, tree: Path) -> bool:
    """Whether a source's driver with the line's series builds; what is said goes to stderr."""
    packages = [f"linux-headers-{release}={version}", *NEEDS]
    if line == WITHOUT_TYPES:
        packages.append(f"linux-image-{release}-unsigned={version}")
    with tempfile.TemporaryDirectory(dir=tree.parent) as name:
        root, out = Path(name) / "root", Path(name) / "out"
        out.mkdir()
        return not any(
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                check=False,
                # no initramfs for the boot image
                env={**os.environ, "INITRD": "No"},
            ).returncode
            for command in (
                _make_root(packages, suite, root),
                _make_driver(release, line, root, tree, out),
            )
        )


def mirrors(suite: str) -> tuple[str, list[str]]:
    """Return the Debian release of a suite, and where apt finds the packages of both."""
    own = "sid" if suite == "experimental" else suite.partition("-")[0]
    lines = [
        f"deb {url} {name} main"
        for url, name in SUITES
        if name in (own, suite) or name.startswith(f"{own}-")
    ]
    return own, lines


def _make_root(packages: list[str], suite: str, root: Path) -> list[str]:
    own, lines = mirrors(suite)
    command = ["mmdebstrap", "--variant=minbase", '--aptopt=Acquire::Languages "none"']
    command += ["--dpkgopt=path-exclude=/usr/share/doc/*", f"--include={','.join(packages)}"]
    return [*command, own, str(root), *lines]


def _make_driver(release: str, line: str, root: Path, tree: Path, out: Path) -> list[str]:
    command = [f"{TOP}/tools/setup/bwrap-anywhere", "--ro-bind", str(root), "/"]
    command += ["--ro-bind", f"{TOP}/kernel", "/mnt", "--ro-bind", str(tree), "/srv"]
    command += ["--bind", str(out), "/opt", "--dev", "/dev", "--proc", "/proc"]
    command += ["--tmpfs", "/tmp", "--unshare-net", "--die-with-parent", "--clearenv"]  # noqa: S108
    command += ["--setenv", "PATH", "/usr/sbin:/usr/bin", "make", "-C", "/mnt", "O=/opt"]
    return [*command, "RXE_SRC=/srv", f"LINE={line}", f"KVER={release}"]
