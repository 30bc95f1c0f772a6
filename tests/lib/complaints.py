# SPDX-License-Identifier: GPL-2.0-or-later
"""The debug kernel (tools/kernel-source) on a node: its preparation, and its checks at the end.

Does nothing on other kernels.
"""

from __future__ import annotations

from pathlib import Path

from rocelab.errors import TestbedError
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import remove_device, unload

_LEAKS = "/sys/kernel/debug/kmemleak"
_LOCKDEP = "/proc/lockdep_stats"
# an object is reported when two scans have found no pointer to it, and it has not changed between
_SCAN = f"echo scan > {_LEAKS} && echo scan > {_LEAKS} && cat {_LEAKS}"


def list_modules(node: Node, image: Path) -> None:
    """Give modprobe the list of built-in modules; the image's list is of another kernel."""
    listings = sorted((image / "modules").glob("*"))
    if listings:
        folder = f"/lib/modules/{node.run(['uname', '-r']).stdout.strip()}"
        node.run(["mkdir", "-p", folder])
        for path in listings:
            node.put(path, f"{folder}/{path.name}")


def check(node: Node) -> None:
    """Unload the driver; fail if memory leaked or lockdep has turned itself off."""
    try:
        debug = node.run(["test", "-e", _LEAKS], check=False).returncode == 0
    except TestbedError:
        return  # a test has ended this node
    if not debug:
        return
    remove_device(node)
    unload(node)
    leaks = node.run(["sh", "-c", _SCAN], timeout=300).stdout
    assert not leaks, f"the kernel complained: {node.name} leaks\n{leaks}"
    stats = node.run(["cat", _LOCKDEP]).stdout
    on = ["debug_locks:", "1"] in [row.split() for row in stats.splitlines()]
    assert on, f"the kernel complained: {node.name}'s lockdep is off\n{stats}"
