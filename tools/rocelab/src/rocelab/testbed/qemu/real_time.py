# SPDX-License-Identifier: GPL-2.0-or-later
"""Emulated machines whose clock is real time (accelerator `tcg`) on a busy host.

The host may leave one without a processor for seconds. That must neither spoil its clock nor make
its peer forget it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from rocelab.testbed.node import Node
from rocelab.testbed.node.parallel import at_once

BOOTS = 4
"""One of four machines took a wrong clock in each of two boots, one of eight in two of three."""
BOOT_ALONE = "maxcpus=1"
"""A kernel parameter: the first processor boots alone. Where several boot in threads that run in
parallel, QEMU 7.2 may run code that the kernel has just replaced, and machine or QEMU die."""
_TOLERANCE = 0.1
_ENOUGH = 1 / _TOLERANCE
"""After so many times what a question takes, it matters little when in it the node answered."""


def prepare(nodes: Sequence[Node]) -> bool:
    """Prepare machines that have booted for a busy host; return whether all clocks run true."""
    if not all(at_once(runs_true, nodes)):
        return False
    at_once(_prepare, nodes)
    return True


def _prepare(node: Node) -> None:
    """Start the other processors; let a neighbour take a minute to answer ARP, not three seconds.

    Otherwise the entry of a peer that did not run for longer becomes invalid, and the next packet
    waits behind the driver until ARP has an answer: its record has no `xmit`.
    """
    waits = "/proc/sys/net/ipv[46]/neigh/*/ucast_solicit"
    processors = "/sys/devices/system/cpu/cpu[1-9]*/online"
    start = f"for one in {processors}; do ! [ -e $one ] || echo 1 >$one; done"
    node.run(["sh", "-c", f"echo 60 | tee {waits}; {start}"])


class _Sample(NamedTuple):
    before: float
    uptime: float
    after: float

    @property
    def took(self) -> float:
        """Seconds in which the node was asked."""
        return self.after - self.before


def _sample(node: Node) -> _Sample:
    before = time.monotonic()
    uptime = float(node.run(["cat", "/proc/uptime"]).stdout.split()[0])
    return _Sample(before, uptime, time.monotonic())


def runs_true(node: Node) -> bool:
    """Whether a second of the node is a second here; asks until the answers leave no doubt.

    A guest under plain TCG measures the host's TSC while it boots. If the host starves it
    meanwhile, the result may be wrong for good; a delay of 20 ms in a guest was over after 11 ms
    here.
    """
    # the first command of a machine takes ten times as long as the next
    first = min(_sample(node), _sample(node), key=lambda each: each.took)
    while True:
        time.sleep(_ENOUGH * first.took)
        last = _sample(node)
        gone = last.uptime - first.uptime
        least, most = last.before - first.after, last.after - first.before
        if gone > (1 + _TOLERANCE) * most or gone < (1 - _TOLERANCE) * least:
            return False
        if (1 - _TOLERANCE) * most < gone < (1 + _TOLERANCE) * least:
            return True
