# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a node's clock runs at the right rate.

A guest under plain TCG measures the host's TSC while it boots. If the host starves it meanwhile,
the result may be wrong for good; a delay of 20 ms in a guest was over after 11 ms here.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from rocelab.testbed.node import Node

TOLERANCE = 0.1


class _Sample(NamedTuple):
    before: float
    uptime: float
    after: float


def _sample(node: Node) -> _Sample:
    before = time.monotonic()
    uptime = float(node.run(["cat", "/proc/uptime"]).stdout.split()[0])
    return _Sample(before, uptime, time.monotonic())


def runs_true(node: Node) -> bool:
    """Whether a second of the node is a second here; asks until the answers leave no doubt."""
    first = _sample(node)
    while True:
        last = _sample(node)
        gone = last.uptime - first.uptime
        least, most = last.before - first.after, last.after - first.before
        if gone > (1 + TOLERANCE) * most or gone < (1 - TOLERANCE) * least:
            return False
        if (1 - TOLERANCE) * most < gone < (1 + TOLERANCE) * least:
            return True
