# SPDX-License-Identifier: GPL-2.0-or-later
"""Which QEMU this machine has, and the kernel parameters that emulation asks for."""

from __future__ import annotations

import re
import subprocess

from rocelab import accelerators

_FLAGS_FIXED = 8
"""The first major version that leaves the flags alone (QEMU commit 5f0dd8cd33cb)."""
WITHOUT_CMPXCHG16B = "clearcpuid=cx16"
SAME_ADDRESSES = "norandmaps"
"""TCG translates code for the address at which it runs. With randomized addresses it would
translate a program and its libraries again for each process, 2,600 blocks for /bin/true alone."""


def qemu_version() -> str:
    """Return the first line of `qemu-system-x86_64 --version`."""
    return subprocess.run(
        ["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=True
    ).stdout.splitlines()[0]


def kernel_parameters(accelerator: accelerators.Name, version: str) -> str:
    """Return what makes an emulated node's kernel fast, and avoids this QEMU's faults.

    Before version 8, CMPXCHG16B as TCG translates it can leave an operand's bits in the flags. An
    interrupt that comes next saves them and its end loads them: the direction of string
    instructions, nested task, single steps. The kernel's allocator uses CMPXCHG16B for most
    allocations, so a node under load could panic. Without the feature it compares
    and stores with interrupts off. Programs still see the instruction: Open MPI uses it unasked.
    """
    if not accelerators.is_emulated(accelerator):
        return ""
    major = re.search(r"version (\d+)\.", version)
    affected = major is None or int(major[1]) < _FLAGS_FIXED
    return f"{SAME_ADDRESSES} {WITHOUT_CMPXCHG16B}" if affected else SAME_ADDRESSES
