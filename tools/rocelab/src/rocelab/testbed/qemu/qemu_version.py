# SPDX-License-Identifier: GPL-2.0-or-later
"""Which QEMU this machine has, and what its faults demand of the kernel of an emulated node."""

from __future__ import annotations

import re
import subprocess

from rocelab import accelerators

_FLAGS_FIXED = 8
"""The first major version that leaves the flags alone (QEMU commit 5f0dd8cd33cb)."""
WITHOUT_CMPXCHG16B = "clearcpuid=cx16"


def qemu_version() -> str:
    """Return the first line of `qemu-system-x86_64 --version`."""
    return subprocess.run(
        ["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=True
    ).stdout.splitlines()[0]


def kernel_workarounds(accelerator: accelerators.Name, version: str) -> str:
    """Return the kernel parameters that avoid the faults of this version of QEMU.

    Before version 8, CMPXCHG16B as TCG translates it can leave an operand's bits in the flags. An
    interrupt that comes next saves them and its end loads them: the direction of string
    instructions, nested task, single steps. The kernel's allocator uses CMPXCHG16B for most
    allocations, so a node under load could panic. Without the feature it compares
    and stores with interrupts off. Programs still see the instruction: Open MPI uses it unasked.
    """
    major = re.search(r"version (\d+)\.", version)
    affected = major is None or int(major[1]) < _FLAGS_FIXED
    return WITHOUT_CMPXCHG16B if accelerators.is_emulated(accelerator) and affected else ""
