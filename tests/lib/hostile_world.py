# SPDX-License-Identifier: GPL-2.0-or-later
"""Things that a path may lead to when it should lead to something else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

NESTING = 100_000
DEEP = "[" * NESTING

# `mount` needs a mount namespace of one's own; the permissions need a process without capabilities
_MOUNTS = """
set -e
mount -t tmpfs -o size=64k,mode=755 hostile "$1/full"
mkdir "$1/full/folder"
dd if=/dev/zero of="$1/full/file" bs=4k 2>/dev/null || true
mount -t tmpfs -o size=64k,mode=755 hostile "$1/read-only"
mkdir "$1/read-only/folder"
echo text >"$1/read-only/file"
mount -o remount,ro "$1/read-only"
shift
exec setpriv --bounding-set=-all --inh-caps=-all -- "$@"
"""


def make(root: Path) -> dict[str, Path]:
    """Make them below `root`; return them by what they are. The mounts are not there yet."""
    (root / "folder").mkdir()
    (root / "file").write_text("a text that is no capture, plan or inventory\n")
    (root / "empty").touch()
    os.mkfifo(root / "fifo")
    (root / "loop").symlink_to("loop")
    (root / "deep.json").write_text(DEEP)
    (root / "deep.toml").write_text(f"a = {DEEP}")
    (root / "no-access").mkdir()
    (root / "no-access" / "inside").touch()
    (root / "no-writing").mkdir()
    (root / "no-reading").write_text("secret")
    deep_run = root / "deep-run"
    (deep_run / "cells" / "c").mkdir(parents=True)
    (deep_run / "run.json").write_text('{"schema": ' + DEEP)
    for folder in ("full", "read-only"):
        (root / folder).mkdir()
    (root / "no-access").chmod(0)
    (root / "no-writing").chmod(0o555)
    (root / "no-reading").chmod(0)
    return {
        "missing": root / "missing",
        "missing below a missing folder": root / "missing/below",
        "below a file": root / "file/below",
        "a folder": root / "folder",
        "a text": root / "file",
        "an empty file": root / "empty",
        "a FIFO": root / "fifo",
        "a device": Path("/dev/full"),
        "a circle of links": root / "loop",
        "a long name": root / ("x" * 300),
        "control characters": root / "a\x1b[2J\nb",
        "nested JSON": root / "deep.json",
        "nested TOML": root / "deep.toml",
        "a run with nested JSON": deep_run,
        "a folder without access": root / "no-access",
        "inside a folder without access": root / "no-access/inside",
        "inside a folder without writing": root / "no-writing/new",
        "a folder without writing": root / "no-writing",
        "a file without reading": root / "no-reading",
        "on a full disk": root / "full/new",
        "a folder on a full disk": root / "full/folder",
        "on a read-only disk": root / "read-only/new",
        "a folder on a read-only disk": root / "read-only/folder",
        "nothing": Path(),
    }


def inside(root: Path, *argv: str) -> list[str]:
    """Return the command that runs `argv` with the mounts, and without any capability.

    Even root then keeps to the permissions of files.
    """
    namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    return [*namespace, "sh", "-c", _MOUNTS, "sh", str(root), *argv]


def works(root: Path) -> bool:
    """Whether this machine lets us make such a world."""
    return subprocess.run(inside(root, "true"), capture_output=True, check=False).returncode == 0
