# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel of a node does without CMPXCHG16B where the instruction spoils the flags."""

from __future__ import annotations

from pathlib import Path

from node_program import compile_program
from rocelab.testbed.node import Node

SOURCE = Path(__file__).parent / "flags_after_cmpxchg16b.c"


def test_the_kernel_uses_cmpxchg16b_only_where_it_is_sound(n1: Node) -> None:
    spoilt = int(n1.run([compile_program(n1, SOURCE)]).stdout, 16)
    (flags,) = {
        line for line in n1.run(["cat", "/proc/cpuinfo"]).stdout.splitlines() if "flags" in line
    }
    assert ("cx16" in flags.split()) == (spoilt == 0), f"{spoilt:#x}"
