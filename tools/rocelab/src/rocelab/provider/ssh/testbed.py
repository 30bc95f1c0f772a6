# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts of your own as a testbed (rocelab.provider.base.Testbed)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rocelab.errors import TestbedError, UsageError
from rocelab.node import local
from rocelab.node.endpoint import Endpoint
from rocelab.node.parallel import at_once
from rocelab.node.prepare import DEVICE, add_device, driver_version, remove_device
from rocelab.node.ssh import SshNode
from rocelab.provider import tap
from rocelab.provider.base import WHOLE_FRAMES, Accelerator
from rocelab.provider.parts import merge
from rocelab.provider.ssh import link
from rocelab.provider.ssh.connect import connected
from rocelab.provider.ssh.inventory import Host
from rocelab.run import verbs

WITNESS = (
    "AF_PACKET (linktap) on the first host's data interface: it is not outside the host, and "
    "copies what leaves before it is sent"
)
EACH_WITNESS = (
    "AF_PACKET (linktap) on every host's data interface, where frames arrive: not outside the "
    "hosts, and in the order of as many clocks"
)
# what measures least stands for both: a number is as real as the less real of its two ends
_LEAST_REAL: tuple[Accelerator, ...] = ("tcg", "kvm", "native")


class SshTestbed:
    """Hosts that are logged in to."""

    def __init__(self, nodes: Sequence[Endpoint], held: ExitStack) -> None:
        self._nodes = nodes
        self._held = held
        found = at_once(lambda node: node.run(["cat", "/proc/cpuinfo"]).stdout, nodes)
        executed = [local.executes(cpuinfo) for cpuinfo in found]
        self._accelerator = min(executed, key=_LEAST_REAL.index)

    @property
    def nodes(self) -> Sequence[Endpoint]:
        """The hosts, in the inventory's order."""
        return self._nodes

    @property
    def accelerator(self) -> Accelerator:
        """`native`, unless a host is a virtual machine."""
        return self._accelerator

    @property
    def control(self) -> str:
        """The network by which SSH reaches the first host. Raises TestbedError."""
        first = self._nodes[0]
        came = first.run(["printenv", "SSH_CONNECTION"]).stdout
        return link.network(first.run(link.EVERY).stdout, came, host=first.name)

    @contextmanager
    def capture(self, path: Path, *, snaplen: int = WHOLE_FRAMES) -> Iterator[None]:
        """Capture the first host's data interface, there; of more than two, each one's arrivals.

        For what the second says to the third, the first never sees.
        """
        if len(self._nodes) == 2:
            first = self._nodes[0]
            with tap.capture(first, [first.link.netdev], path, snaplen):
                yield
            return
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".hosts-") as folder:
            parts = [Path(folder) / f"{node.name}.pcap" for node in self._nodes]
            with ExitStack() as stack:
                for node, part in zip(self._nodes, parts, strict=True):
                    netdevs = [node.link.netdev]
                    stack.enter_context(tap.capture(node, netdevs, part, snaplen, arriving=True))
                yield
            merge(parts, path)

    def alive(self) -> None:
        """Raise TestbedError when a host does not answer any more."""
        for node in self._nodes:
            node.run(["true"], timeout=30)

    def environment(self) -> dict[str, Any]:
        """Facts for run.json."""
        return {
            "provider": "ssh",
            "accelerator": self._accelerator,
            "data_link": "the hosts' own network",
            "witness": WITNESS if len(self._nodes) == 2 else EACH_WITNESS,
            "one_clock": False,
            "mtu": min(node.link.mtu for node in self._nodes),
        }

    def down(self) -> None:
        """Take away the rxe devices that were made for this run, and log out."""
        self._held.close()


def up(hosts: Sequence[Host], *, needs_driver: bool, nodes: int = 2) -> SshTestbed:
    """Log in to the first `nodes` hosts; with `needs_driver`, an rxe device where none is.

    Raises UsageError when there are fewer, TestbedError when one cannot be used, or is not
    prepared (`rocelab hosts prepare`).
    """
    if len(hosts) < nodes:
        raise UsageError(
            f"the inventory names {len(hosts)} of the {nodes} hosts that the plan takes",
            action="add another [[host]]",
        )
    with ExitStack() as stack:
        hosts = hosts[:nodes]
        found = stack.enter_context(connected(hosts))
        ends = [_endpoint(node, host) for node, host in zip(found, hosts, strict=True)]
        if needs_driver:
            for end in ends:
                _ready(end, stack)
        for end in ends[:1] if nodes == 2 else ends:
            _check_tap(end)
        return SshTestbed(ends, stack.pop_all())


def _check_tap(node: Endpoint) -> None:
    """The capture takes a program of ours, whatever is measured."""
    there = ("sh", "-c", 'command -v "$1"', "sh", tap.TAP)
    if node.root.run(there, check=False).returncode:
        raise TestbedError(
            f"{node.name} has no {tap.TAP}, which captures its data interface",
            cause="it is not prepared",
            action="rocelab hosts prepare",
        )


def _endpoint(node: SshNode, host: Host) -> Endpoint:
    """The host with its rxe device, there or to be, and the adapter that the inventory names."""
    soft = verbs.find(node).soft
    device = soft.device if soft else DEVICE
    return Endpoint(node.name, node.link, device, node, adapter=host.verbs or "")


def _ready(node: Endpoint, stack: ExitStack) -> None:
    if not driver_version(node):
        raise TestbedError(
            f"{node.name} does not run the instrumented rdma_rxe",
            cause="it is not prepared, or its stock driver was loaded again",
            action="rocelab hosts prepare",
        )
    if verbs.find(node).soft is None:
        add_device(node)
        stack.callback(remove_device, node)
