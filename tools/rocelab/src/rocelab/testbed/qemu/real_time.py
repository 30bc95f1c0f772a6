# SPDX-License-Identifier: GPL-2.0-or-later
"""Emulated machines whose clock is real time (accelerator `tcg`) on a busy host.

The host may leave one without a processor for seconds. That must neither spoil its clock nor make
its peer forget it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rocelab.testbed.node import Node, clock_rate
from rocelab.testbed.node.parallel import at_once

BOOTS = 4
"""One of four machines took a wrong clock in each of two boots, one of eight in two of three."""


def prepare(nodes: Sequence[Node]) -> bool:
    """Prepare machines that have booted for a busy host; return whether all clocks run true."""
    if not all(at_once(clock_rate.runs_true, nodes)):
        return False
    at_once(_keep_neighbours, nodes)
    return True


def _keep_neighbours(node: Node) -> None:
    """Let a neighbour take a minute to answer ARP, not three seconds.

    Otherwise the entry of a peer that did not run for longer becomes invalid, and the next packet
    waits behind the driver until ARP has an answer: its record has no `xmit`.
    """
    files = "/proc/sys/net/ipv[46]/neigh/*/ucast_solicit"
    node.run(["sh", "-c", f"echo 60 | tee {files}"])
