# SPDX-License-Identifier: GPL-2.0-or-later
"""Pack the sources that a host needs to build driver and probes for its own kernel."""

from __future__ import annotations

import tarfile
from pathlib import Path

from rocelab.testbed import artifacts
from rocelab.testbed.hosts.own_benchmarks import OWN_BENCHMARKS

_FOLDERS = ("kernel", "ebpf", "tables", *(each.folder for each in OWN_BENCHMARKS))
# what their Makefiles share, and where the build reads the version
_FILES = ("tools/own_benchmark.mk", "tools/rocelab/pyproject.toml")


def pack(archive: Path) -> None:
    """Write the archive, without the user's IDs. Raises MissingError without the sources."""
    source = artifacts.source_dir()
    with tarfile.open(archive, "w:gz", compresslevel=6) as tar:
        for name in (*_FOLDERS, *_FILES):
            tar.add(source / name, arcname=name, filter=_anonymous)


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if not (info.isfile() or info.isdir()):
        return None
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info
