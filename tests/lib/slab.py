# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects that a node's slab allocator has allocated."""

from __future__ import annotations

from rocelab.testbed.node import Node

# gives back what waits per processor, or in KASAN's quarantine: the counts are exact only then
_SHRINK = 'for cache in /sys/kernel/slab/skbuff_*; do echo 1 > "$cache/shrink"; done'


def skbs(node: Node) -> int:
    """Socket buffers in use."""
    node.run(["sh", "-c", _SHRINK])
    text = node.run(["cat", "/proc/slabinfo"]).stdout
    return sum(int(row.split()[1]) for row in text.splitlines() if row.startswith("skbuff_"))
