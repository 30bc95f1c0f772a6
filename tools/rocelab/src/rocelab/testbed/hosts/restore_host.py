# SPDX-License-Identifier: GPL-2.0-or-later
"""Restore the state that a host had before it was prepared."""

from __future__ import annotations

from dataclasses import replace

from rocelab.errors import TestbedError
from rocelab.testbed.hosts import driver_exchange, host_state
from rocelab.testbed.node import Node


def restore(node: Node) -> bool:
    """Restore a host; return False if it was not prepared.

    Raises TestbedError when the state after restoring differs from the saved one.
    """
    before = host_state.read_saved(node)
    if before is None:
        return False
    driver_exchange.unload(node)
    host_state.restore_files(node, before)
    driver_exchange.depmod(node, before)
    if before.version is not None:
        driver_exchange.load(node, before.devices)
    now = host_state.read(node)
    if now.release != before.release:
        # the host has since booted another kernel, for which we loaded nothing
        before = replace(before, release=now.release)
    if now != before:
        raise TestbedError(
            f"{node.name} is not fully restored",
            cause=f"it was {before}, and is {now}",
            action=f"On {node.name}: look at `modinfo rdma_rxe`; the saved files are in "
            f"{host_state.FOLDER}.",
        )
    host_state.forget(node)
    return True
