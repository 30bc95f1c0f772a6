# SPDX-License-Identifier: GPL-2.0-or-later
"""BPF programs that interrupts find at work.

A program takes less than a microsecond; that an interrupt meets it is left to chance. With a
breakpoint on its first instruction, interrupts wait for the breakpoint's end, and then meet it.
"""

from __future__ import annotations

from collections.abc import Callable

from bpftrace_maps import bpftrace
from rocelab.testbed.node import Node

# the debug registers of x86
MAX_BREAKPOINTS = 4


def slow(node: Node, program: str, workload: Callable[[], object]) -> None:
    """Do something while all BPF programs of a name have a breakpoint."""
    symbols = node.run(["grep", "-w", rf"bpf_prog_\w*_{program}", "/proc/kallsyms"]).stdout
    addresses = [line.split()[0] for line in symbols.splitlines()]
    assert 0 < len(addresses) <= MAX_BREAKPOINTS, symbols
    places = ", ".join(f"watchpoint:0x{address}:8:x" for address in addresses)
    assert bpftrace(node, f"{places} {{ @hits = count(); }}", workload)["@hits"] > 0
