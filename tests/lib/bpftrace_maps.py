# SPDX-License-Identifier: GPL-2.0-or-later
"""bpftrace programs on a node, and what they leave in their maps."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from rocelab.testbed.node import Node


def bpftrace(node: Node, program: str, workload: Callable[[], object]) -> dict[str, Any]:
    """Run a bpftrace program while the context lasts; return its maps by name."""
    process = node.start(["bpftrace", "-f", "json", "-e", 'BEGIN { printf("go\\n"); } ' + program])
    try:
        process.wait_for_line("go", timeout=600)
        workload()
        process.interrupt()
        output = process.wait(timeout=600).stdout
    finally:
        process.kill()
    maps: dict[str, Any] = {}
    for line in output.splitlines():
        if line.startswith('{"type": "map"'):
            maps.update(json.loads(line)["data"])
    return maps
