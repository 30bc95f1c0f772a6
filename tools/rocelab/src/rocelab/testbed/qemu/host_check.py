# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether this machine can run a testbed's machines."""

from __future__ import annotations

import shutil
from pathlib import Path

from rocelab.errors import MissingError

_HOST_RESERVE_MB = 512
_QEMU_OVERHEAD_MB = 256
_DISK_MB = 512
_PROGRAMS = (
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("ssh", "openssh-client"),
    ("ssh-keygen", "openssh-client"),
    ("setpriv", "util-linux"),
    ("zstd", "zstd"),
)
"""What must be there, and Debian's package that has it."""


def _memory_available_mb() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    raise MissingError(
        "cannot find out how much memory is available",
        cause="/proc/meminfo has no MemAvailable",
        action="Make /proc/meminfo readable, as on any Linux since 3.14.",
    )


def check_host(nodes: int, memory_mb: int, folder: Path, *, more_mb: int = 0) -> None:
    """Raise MissingError when this machine lacks a program, memory or disk space."""
    for tool, package in _PROGRAMS:
        if not shutil.which(tool):
            raise MissingError(
                f"{tool} is not installed",
                cause="`make setup` has not run on this machine",
                action=f"Run `make setup`, or install Debian's package {package}.",
            )
    free = shutil.disk_usage(folder).free // 2**20
    if free < _DISK_MB:
        raise MissingError(
            f"{folder} has {free} MiB free, captures and consoles need {_DISK_MB} MiB",
            cause="the disk is nearly full",
            action="Free some space on that disk.",
        )
    need = nodes * (memory_mb + _QEMU_OVERHEAD_MB) + _HOST_RESERVE_MB
    need += more_mb + _QEMU_OVERHEAD_MB if more_mb else 0
    have = _memory_available_mb()
    if have < need:
        raise MissingError(
            f"{nodes} nodes of {memory_mb} MiB need {need} MiB of memory, {have} MiB are available",
            cause="other programs use the memory",
            action="Close some, or give the nodes less with `rocelab up --memory MIB`.",
        )
