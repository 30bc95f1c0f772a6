# SPDX-License-Identifier: GPL-2.0-or-later
"""The probes know the driver's addresses from the module's file, or else from /proc/kallsyms."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from rocelab.testbed.node import Node

# only the first mount namespace has the file, or only the second the kernel's list
WITHOUT_KALLSYMS = "mount --bind /dev/null /proc/kallsyms"
WITHOUT_FILE = "mount -t tmpfs none /lib/modules/$(uname -r)/updates"
PROGRAMS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "rxestat": ("rxestat_.rodata", ("rxe_destructor",)),
    "rxecpu": ("rxecpu_b.rodata", ("module_begin", "module_end")),
}


def constants(node: Node, program: str, first: str) -> dict[str, int]:
    """Return what a probe told its BPF programs of the driver, having run `first`."""
    name, wanted = PROGRAMS[program]
    process = node.start(("unshare", "-m", "sh", "-c", f"{first} && exec {program} --json"))
    try:
        process.wait_for_line(f"{program}: ready", timeout=60)
        listed = json.loads(node.run(("bpftool", "-j", "map", "dump", "name", name)).stdout)
    finally:
        process.interrupt()
        process.wait(timeout=60)
    (entry,) = listed if "formatted" not in listed[0] else [listed[0]["formatted"]]
    fields = {key: value for part in entry["value"][".rodata"] for key, value in part.items()}
    return {key: int(fields[key]) for key in wanted}


@pytest.mark.parametrize("program", PROGRAMS)
def test_file_and_kernel_agree(n1: Node, program: str) -> None:
    from_file = constants(n1, program, WITHOUT_KALLSYMS)
    assert all(from_file.values())
    assert from_file == constants(n1, program, WITHOUT_FILE)
    assert from_file == constants(n1, program, "true")
