# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a machine's processors worked, from the kernel's own account of their idle time.

Nothing has to watch for it, so it is the same with probes and without. `/proc/timer_list` has the
idle time in ns, which tick_nohz_idle_enter() and tick_nohz_irq_exit() keep (Linux,
kernel/time/tick-sched.c). Linux 7.x no longer prints it; there `/proc/stat` has the same in ticks,
which tells only long work. A processor adds to it when it leaves
the idle loop, so one that is idle meanwhile has in addition what passed since it entered. What the
idle loop does before and after it halts the processor counts as work, as do interrupts. So does
what other programs do, which a look at the machine before the benchmark tells.
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
_FIELD = re.compile(
    r"^ +\.(tick_stopped|idle_entrytime|idle_sleeptime|iowait_sleeptime) *: *(\d{1,20})\b",
    re.MULTILINE,
)
_FIELDS = "^now at |tick_stopped|idle_entrytime|idle_sleeptime|iowait_sleeptime"
_TICKS = re.compile(r"^cpu(\d*) +\d+ +\d+ +\d+ +(\d{1,18}) +(\d{1,18})\b", re.MULTILINE)
"""Of all processors together, and of each: what is idle, and waits for a disk."""
_TICK_NS = 10_000_000
"""USER_HZ is 100 on every architecture that has the driver's probes."""
_LOOK = "0.2"
"""Seconds for which a machine is looked at before the benchmark."""


@dataclass(frozen=True)
class _Reading:
    now: int
    idle: int
    """Of all processors together, ns."""
    processors: int
    step_ns: int = 0
    """By how much `idle` may be too low."""


@dataclass(frozen=True)
class Work:
    """What a machine's processors worked."""

    ns: int
    step_ns: int = 0
    """By how much that may be wrong."""


@contextmanager
def count_work(
    nodes: Sequence[Node], work: dict[str, Work], others: dict[str, float] | None = None
) -> Iterator[None]:
    """Put into `work`, on exit, what the processors of each machine worked meanwhile.

    A machine is named by its nodes, as in `rxecpu_document.splits`. One whose timers only root may
    read, and that gives us no root, is missing. Into `others` goes how many processors were busy
    before, by whatever else the machine does; None: nothing else runs there.
    """
    each = machines(nodes)
    names = [machine_name(machine, nodes) for machine in each]
    if others is not None:
        earlier = at_once(_read, each)
        at_once(lambda machine: machine.run(("sleep", _LOOK)), each)
        for name, first, last in zip(names, earlier, at_once(_read, each), strict=True):
            if (busy := _work_between(first, last)) is not None and first and last:
                others[name] = busy.ns / (last.now - first.now)
    before = at_once(_read, each)
    yield
    for name, first, last in zip(names, before, at_once(_read, each), strict=True):
        if (busy := _work_between(first, last)) is not None:
            work[name] = busy


def _work_between(first: _Reading | None, last: _Reading | None) -> Work | None:
    """What processors worked between two readings; None if that is not known."""
    if not first or not last or first.processors != last.processors or last.now <= first.now:
        return None
    ns = (last.now - first.now) * first.processors - (last.idle - first.idle)
    return Work(ns, max(first.step_ns, last.step_ns))


def _read(machine: Node) -> _Reading | None:
    if not machine.has_root:
        return None
    done = machine.root.run(("grep", "-E", _FIELDS, "/proc/timer_list"), check=False)
    if reading := parse(done.stdout):
        return reading
    files = ("/proc/timer_list", "/proc/stat")
    return parse(
        machine.root.run(("grep", "-h", "-E", "^now at |^cpu", *files), check=False).stdout
    )


def parse(text: str) -> _Reading | None:
    """Parse what grep(1) finds; None where the kernel keeps no such account."""
    now = _NOW.search(text)
    ticks = {name: int(idle) + int(disk) for name, idle, disk in _TICKS.findall(text)}
    if now is not None and len(ticks) > 1:
        return _Reading(int(now[1]), ticks[""] * _TICK_NS, len(ticks) - 1, 2 * _TICK_NS)
    numbers: dict[str, list[int]] = {}
    for name, number in _FIELD.findall(text):
        numbers.setdefault(name, []).append(int(number))
    idle = numbers.get("idle_sleeptime", [])
    if now is None or not idle:
        return None
    since = zip(numbers.get("tick_stopped", []), numbers.get("idle_entrytime", []), strict=False)
    open_ns = sum(max(0, int(now[1]) - entry) for stopped, entry in since if stopped)
    return _Reading(
        int(now[1]), sum(idle) + sum(numbers.get("iowait_sleeptime", [])) + open_ns, len(idle)
    )
