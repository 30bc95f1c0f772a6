# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel log of a node since a mark: a test that triggers a warning has failed."""

from __future__ import annotations

import re

from rocelab.testbed.node import Node

# what lib/bug.c, lockdep, the watchdogs, kmemleak and the allocators print
_UPSET = re.compile(
    r"BUG[: ]|WARNING: |Oops|general protection|Call Trace|hung_task|blocked for more than|"
    r"soft lockup|hard LOCKUP|rcu_.*detected stalls|possible (circular|recursive) locking|"
    r"refcount_t|use-after-free|unable to handle|KASAN|UBSAN|kmemleak|list_(add|del) corruption|"
    r"memory leak|scheduling while atomic|sleeping function called|"
    r"trying to register non-static key|turning off the locking correctness validator"
)


def mark(node: Node, name: str) -> str:
    """Write a line into the kernel log; returns what to look for."""
    line = f"rocelab-test: {name}"
    node.run(["tee", "/dev/kmsg"], stdin=line + "\n")
    return line


def upset_since(node: Node, line: str) -> list[str]:
    """Lines after the last mark that a healthy kernel does not print."""
    log = node.run(["dmesg", "--notime"]).stdout.splitlines()
    marks = [number for number, text in enumerate(log) if line in text]
    start = marks[-1] + 1 if marks else 0
    # a program's own fault, such as perftest's after a killed server, is none of the kernel's
    kernels = (text for text in log[start:] if not text.startswith("traps: "))
    return [text for text in kernels if _UPSET.search(text)]
