# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel log of a node since a mark, and what in it a healthy kernel does not print."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocelab.testbed.node.interface import Node

_MARK = "rocelab-test: "
_TIME = re.compile(r"^\[ *[0-9.]+\] ")
# what lib/bug.c, lockdep, the watchdogs, kmemleak and the allocators print; sshd's "DEBUG: " is no
# bug, and reaches the console of a node without a syslog
BUG = re.compile(r"\bBUG[: ]")
_UPSET = re.compile(
    BUG.pattern + r"|WARNING: |Oops|general protection|Call Trace|hung_task|blocked for more than|"
    r"soft lockup|hard LOCKUP|rcu_.*detected stalls|possible (circular|recursive) locking|"
    r"refcount_t|use-after-free|unable to handle|KASAN|UBSAN|kmemleak|list_(add|del) corruption|"
    r"memory leak|scheduling while atomic|sleeping function called|"
    r"trying to register non-static key|turning off the locking correctness validator"
)
# a function that the unwinder is sure of, which has no "?"
_FRAME = re.compile(r"^ [^ ?]\S*\+0x")
_TRACE, _TRACE_ENDS = "Call Trace", ("</TASK>", "---[ end trace")


def mark(node: Node, name: str) -> str:
    """Write a line into the kernel log; returns what to look for."""
    line = f"{_MARK}{name}"
    node.run(["tee", "/dev/kmsg"], stdin=line + "\n")
    return line


def upset_since(node: Node, line: str) -> list[str]:
    """Lines after the last mark that a healthy kernel does not print.

    Behind each stands what was going on, if a program has marked that (pyverbs_each.py).
    """
    log = node.run(["dmesg", "--notime"]).stdout.splitlines()
    marks = [number for number, text in enumerate(log) if line in text]
    return complaints(log[marks[-1] + 1 if marks else 0 :])


def is_upset(line: str) -> bool:
    """Say whether a line of a log or console is one that a healthy kernel does not print."""
    # a program's own fault, such as perftest's after a killed server, is none of the kernel's
    return not line.startswith("traps: ") and _UPSET.search(line) is not None


def complaints(lines: Iterable[str]) -> list[str]:
    """Return the lines of a log or console that a healthy kernel does not print, as above.

    A call trace comes with its functions.
    """
    reported, during, in_trace = [], "", False
    for text in lines:
        message = _TIME.sub("", text)
        if _MARK in text:
            during = f" ({text.partition(_MARK)[2].strip()})"
        elif is_upset(text):
            in_trace = _TRACE in text
            reported.append(f"{message}{'' if in_trace else during}")
        elif in_trace and _FRAME.match(message):
            reported.append(message)
        in_trace = in_trace and not any(end in text for end in _TRACE_ENDS)
    return reported
