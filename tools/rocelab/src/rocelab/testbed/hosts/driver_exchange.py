# SPDX-License-Identifier: GPL-2.0-or-later
"""Replace the rdma_rxe that a host has loaded, and keep its devices."""

from __future__ import annotations

from collections.abc import Iterable

from rocelab.errors import TestbedError
from rocelab.testbed.hosts.host_state import HostState, read
from rocelab.testbed.node import Node


def unload(node: Node) -> tuple[tuple[str, str], ...]:
    """Delete the rxe devices and unload the module; return the devices for `load` to recreate.

    Raises TestbedError while the module is in use; its devices are then there again.
    """
    now = read(node)
    for device, _ in now.devices:
        node.root.run(["rdma", "link", "delete", device])
    if now.version is None:
        return now.devices
    done = node.root.run(["rmmod", "rdma_rxe"], check=False)
    if done.returncode:
        load(node, now.devices)
        raise TestbedError(
            f"rdma_rxe on {node.name} cannot be unloaded",
            cause=done.stderr.strip()[-200:],
            action="Stop the programs that use its devices or its events, and try again.",
        )
    return now.devices


def load(node: Node, devices: Iterable[tuple[str, str]]) -> None:
    """Load the module that depmod prefers, and add the devices."""
    node.root.run(["modprobe", "rdma_rxe"])
    for device, netdev in devices:
        node.root.run(["rdma", "link", "add", device, "type", "rxe", "netdev", netdev])


def depmod(node: Node, before: HostState) -> None:
    """Update modprobe's index after module files have changed."""
    node.root.run(["depmod", before.release], timeout=300)
