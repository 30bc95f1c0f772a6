# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a machine's processors worked, from the kernel's own account of their idle time.

Nothing has to watch for it, so it is the same with probes and without. `/proc/timer_list` has the
idle time in ns, which tick_nohz_idle_enter() and tick_nohz_irq_exit() keep (Linux,
kernel/time/tick-sched.c); /proc/stat has the same in ticks. What the idle loop does before and
after it halts the processor counts as work, as do interrupts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rocelab.testbed.node import Node
from rocelab.testbed.node.endpoint import machine_name, machines
from rocelab.testbed.node.parallel import at_once

_NOW = re.compile(r"^now at (\d{1,20}) nsecs", re.MULTILINE)
_IDLE = re.compile(r"\.(idle|iowait)_sleeptime *: *(\d{1,20}) nsecs")


@dataclass(frozen=True)
class _Reading:
    now: int
    idle: int
    """Of all processors together, ns."""
    processors: int


@contextmanager
def counted(nodes: Sequence[Node], work: dict[str, int]) -> Iterator[None]:
    """Put into `work`, on exit, the ns that the processors of each machine worked meanwhile.

    A machine is named by its nodes, as in `rxecpu_document.found`. One whose timers only root may
    read, and that gives us no root, is missing.
    """
    each = machines(nodes)
    before = at_once(_read, each)
    yield
    for machine, first, last in zip(each, before, at_once(_read, each), strict=True):
        if first and last and first.processors == last.processors:
            passed = (last.now - first.now) * first.processors
            work[machine_name(machine, nodes)] = passed - (last.idle - first.idle)


def _read(machine: Node) -> _Reading | None:
    if not machine.has_root:
        return None
    done = machine.root.run(
        ("grep", "-E", "^now at |idle_sleeptime|iowait_sleeptime", "/proc/timer_list"), check=False
    )
    return parse(done.stdout)


def parse(text: str) -> _Reading | None:
    """Parse what grep(1) finds; None where the kernel keeps no such account."""
    now = _NOW.search(text)
    found = _IDLE.findall(text)
    processors = sum(name == "idle" for name, _ in found)
    if now is None or not processors:
        return None
    return _Reading(int(now[1]), sum(int(ns) for _, ns in found), processors)
