# SPDX-License-Identifier: GPL-2.0-or-later
"""The libraries of a program that was built here, as far as its node lacks them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from rocelab.testbed.node import Node

_LINE = re.compile(
    r"^\s*(?P<name>[^\s/]{1,200}) => (?P<path>/.{1,1000}) \(0x[0-9a-f]+\)$", re.MULTILINE
)
_LISTED = re.compile(r"^\s+(\S+) \(", re.MULTILINE)
_ELF = b"\x7fELF"
_SECONDS = 30
_EVERYWHERE = re.compile(
    r"(libc|libm|libdl|librt|libpthread|libresolv|ld-linux.*|libibverbs|librdmacm|libnl-.*)\.so\.\d+"
)
"""Libraries of glibc, which fit only their own, and of verbs: every node has them."""


def is_program(path: Path) -> bool:
    """Whether a file here is an executable ELF file."""
    try:
        if not path.is_file() or not os.access(path, os.X_OK):
            return False
        with path.open("rb") as file:
            return file.read(len(_ELF)) == _ELF
    except OSError:
        return False


def of(program: Path) -> dict[str, Path]:
    """Return the libraries that a program here is linked with, by the names that it asks for.

    Those that every node has are left out. Empty for a program that this machine cannot run.
    """
    try:
        done = subprocess.run(
            ["ldd", str(program.resolve())],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    text = os.fsdecode(done.stdout)
    paths = {line["name"]: Path(line["path"]) for line in _LINE.finditer(text)}
    return {name: path for name, path in paths.items() if not _EVERYWHERE.fullmatch(name)}


def lacking(node: Node, names: Iterable[str]) -> list[str]:
    """Return those of the names that the node's loader does not know. Raises TestbedError."""
    needed = list(names)
    if not needed:
        return []
    # a plain user's PATH may lack /sbin
    listing = node.run(("sh", "-c", "PATH=$PATH:/sbin:/usr/sbin ldconfig -p"), check=False).stdout
    known = set(_LISTED.findall(listing))
    # without a list, nothing is known to be missing
    return [name for name in needed if name not in known] if known else []
