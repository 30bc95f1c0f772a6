# SPDX-License-Identifier: GPL-2.0-or-later
"""Set the RoCE version of rdma_cm's connections, for programs that cannot choose one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rocelab.plans.benchmarks.tool import End
from rocelab.plans.catalog import Transport
from rocelab.testbed import lease
from rocelab.testbed.node import Node
from rocelab.testbed.node.endpoint import machine_of
from rocelab.testbed.node.parallel import all_of

_V1 = 1
_MODES = "/sys/kernel/config/rdma_cm"
_WRITE = 'printf %s "$2" > "$1"'
_RESTORE = '[ ! -e "$1" ] || printf %s "$2" > "$1"'
# its settings are there once it is loaded
_LOAD = f"[ -d {_MODES} ] || modprobe rdma_cm"
_REMOVE = '[ ! -d "$1" ] || rmdir "$1"'


@contextmanager
def set_to(node: Node, end: End, gid_type: str) -> Iterator[None]:
    """Let rdma_cm use GIDs of this type on the end's port; restore the setting on exit.

    If the run dies, the machine's lease restores it.
    """
    machine_of(node).root.run(("sh", "-c", _LOAD))
    device = f"{_MODES}/{end.device}"
    mode = f"{device}/ports/{end.port}/default_roce_mode"
    existed = not node.run(("test", "-d", device), check=False).returncode
    if not existed:
        lease.at_end(node, ("sh", "-c", _REMOVE, "sh", device))
    node.root.run(("mkdir", "-p", device))
    try:
        before = node.run(("cat", mode)).stdout.strip()
        lease.at_end(node, ("sh", "-c", _RESTORE, "sh", mode, before))
        node.root.run(("sh", "-c", _WRITE, "sh", mode, gid_type))
        try:
            yield
        finally:
            node.root.run(("sh", "-c", _WRITE, "sh", mode, before), check=False)
    finally:
        if not existed:
            node.root.run(("rmdir", device), check=False)


@contextmanager
def for_v1(nodes: Sequence[Node], ends: Sequence[End], transport: Transport) -> Iterator[None]:
    """Let rdma_cm, which chooses a GID itself, choose one of RoCE v1 if that is the transport."""
    if transport.roce != _V1:
        yield
        return
    gid_type = transport.gid_type
    assert gid_type is not None
    with all_of([set_to(node, end, gid_type) for node, end in zip(nodes, ends, strict=True)]):
        yield
