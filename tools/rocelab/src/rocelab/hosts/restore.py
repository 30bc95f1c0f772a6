# SPDX-License-Identifier: GPL-2.0-or-later
"""Put back what a host had before it was prepared."""

from __future__ import annotations

from dataclasses import replace

from rocelab.errors import TestbedError
from rocelab.hosts import before, driver
from rocelab.node import Node


def restore(node: Node) -> bool:
    """Whether there was anything to put back. Raises TestbedError when it is not as it was."""
    was = before.kept(node)
    if was is None:
        return False
    driver.unload(node)
    before.put_back(node, was)
    driver.depmod(node, was)
    if was.version is not None:
        driver.load(node, was.devices)
    found = before.take(node)
    if found.release != was.release:
        # it was booted with another kernel since: nothing was loaded there
        was = replace(was, release=found.release)
    if found != was:
        raise TestbedError(
            f"{node.name} is not quite as it was",
            cause=f"it was {was}, and is {found}",
            action=f"see `modinfo rdma_rxe` there; the copies are in {before.FOLDER}",
        )
    before.forget(node)
    return True
