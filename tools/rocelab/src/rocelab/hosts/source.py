# SPDX-License-Identifier: GPL-2.0-or-later
"""What a host needs to build driver and probes for its own kernel, as one archive."""

from __future__ import annotations

import tarfile
from pathlib import Path

from rocelab import artifacts

_FOLDERS = ("kernel", "ebpf", "tools/mpibench")
# where the build takes the version from
_FILES = ("tools/rocelab/pyproject.toml",)


def pack(archive: Path) -> None:
    """Write the archive, owned by nobody in particular. Raises MissingError without a checkout."""
    checkout = artifacts.build_dir().parent
    with tarfile.open(archive, "w:gz", compresslevel=6) as tar:
        for name in (*_FOLDERS, *_FILES):
            tar.add(checkout / name, arcname=name, filter=_anonymous)


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if not (info.isfile() or info.isdir()):
        return None
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info
