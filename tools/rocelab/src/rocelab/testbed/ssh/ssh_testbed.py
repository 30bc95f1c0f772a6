# SPDX-License-Identifier: GPL-2.0-or-later
"""Your own hosts as a testbed (rocelab.testbed.interface.Testbed)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import replace
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rocelab import accelerators
from rocelab.directory import temporary_folder
from rocelab.errors import TestbedError, UsageError
from rocelab.plans.catalog import Provider, Transport
from rocelab.testbed import control_network, lease, linktap, verbs_ports
from rocelab.testbed.capture_parts import merge
from rocelab.testbed.control_network import ControlEnd
from rocelab.testbed.hosts import loaded_driver
from rocelab.testbed.interface import WHOLE_FRAMES, Captured
from rocelab.testbed.node import Node, local
from rocelab.testbed.node.endpoint import Endpoint
from rocelab.testbed.node.parallel import all_of, at_once
from rocelab.testbed.node.prepare_node import (
    DEVICE,
    add_device,
    driver_version,
    has_roce_v1,
    remove_device,
    roce_v1_default,
)
from rocelab.testbed.node.user_connection import UserNode
from rocelab.testbed.ssh import data_interface, hardware_roce
from rocelab.testbed.ssh.connect import DRIVER_AND_PROBES, connect
from rocelab.testbed.ssh.inventory import Host, Uses, key_of

WITNESS = (
    "AF_PACKET (linktap) on the first host's data interface: not outside the host; outgoing "
    "frames are copied before they are sent"
)
EACH_WITNESS = (
    "AF_PACKET (linktap) on every host's data interface, incoming frames only: not outside the "
    "hosts; each host stamps with its own clock"
)
NO_WITNESS = "none: only the counters at both ends say what crossed the link"
# a measurement is only as real as the least real of its nodes
_BY_REALITY: tuple[accelerators.Name, ...] = ("tcg", "kvm", "native")


_SSH_PORT = 22
_ADD_AGAIN = 'rdma link delete "$1"; rdma link add "$1" type rxe netdev "$2"'


class SshTestbed:
    """Hosts that we are logged in to; `cleanup` undoes the setup and logs out.

    `networks` (CIDR): where the inventory wants MPI's daemons to talk. `others`: the nodes as a
    transport uses them, by its key in the inventory, where that differs from `nodes`.
    """

    provider = Provider.SSH

    def __init__(
        self,
        nodes: Sequence[Endpoint],
        cleanup: ExitStack,
        networks: Sequence[str] = (),
        others: Mapping[str, Sequence[Endpoint]] = MappingProxyType({}),
    ) -> None:
        self._nodes = nodes
        self._others = others
        self._networks = networks
        self._cleanup = cleanup
        cpuinfos = at_once(lambda node: node.run(["cat", "/proc/cpuinfo"]).stdout, nodes)
        accelerators = [local.accelerator(cpuinfo) for cpuinfo in cpuinfos]
        self._accelerator = min(accelerators, key=_BY_REALITY.index)
        self.missing = _no_capture(nodes)
        """Why nothing captures the data link; empty where a capture is possible."""

    @property
    def nodes(self) -> Sequence[Endpoint]:
        """The hosts, in the inventory's order."""
        return self._nodes

    @property
    def accelerator(self) -> accelerators.Name:
        """`native`, unless a host is a virtual machine."""
        return self._accelerator

    @cached_property
    def control(self) -> Sequence[ControlEnd] | None:
        """The interfaces over which MPI's daemons talk; see `control_network`. Raises CellError."""
        hosts = at_once(_addresses, self._nodes)
        return control_network.choose(self._nodes, hosts, self._networks)

    @cached_property
    def control_ports(self) -> frozenset[int]:
        """The ports of the hosts' SSH servers, which may share the data interface."""
        return frozenset(port for _, port in at_once(_ssh_connection, self._nodes))

    def over(self, transport: Transport) -> SshTestbed:
        """The same hosts, with the interfaces and devices that a transport uses."""
        nodes = self._others.get(key_of(transport))
        if nodes is None:
            return self
        same = copy(self)
        same._nodes = nodes
        same.__dict__.pop("control", None)  # it keeps off the data link, which is another
        return same

    @contextmanager
    def capture(self, path: Path, *, snaplen: int = WHOLE_FRAMES) -> Iterator[Captured]:
        """Capture on the data interface of the first of two hosts, or on each of more.

        With more than two, the first host does not see the traffic between the others. Each host
        then captures only what it receives, so that no frame is captured twice. Without root on
        all hosts nothing is captured.
        """
        if self.missing:
            yield Captured(missing=self.missing)
            return
        if len(self._nodes) == 2:
            first = self._nodes[0]
            with linktap.capture(first, [first.link.netdev], path, snaplen) as captured:
                yield captured
            return
        together = Captured()
        with temporary_folder(dir=path.parent, prefix=".hosts-") as folder:
            parts = [Path(folder) / f"{node.name}.pcap" for node in self._nodes]
            captures = [
                linktap.capture(node, [node.link.netdev], part, snaplen, arriving=True)
                for node, part in zip(self._nodes, parts, strict=True)
            ]
            with all_of(captures) as each:
                yield together
            together.lost = sum(captured.lost for captured in each)
            together.beyond = [counted for captured in each for counted in captured.beyond]
            merge(parts, path)

    @property
    def _witness(self) -> str:
        if self.missing:
            return f"{NO_WITNESS}, since {self.missing}"
        return WITNESS if len(self._nodes) == 2 else EACH_WITNESS

    def alive(self) -> None:
        """Raise TestbedError when a host no longer answers."""
        for node in self._nodes:
            node.run(["true"], timeout=30)

    def environment(self) -> dict[str, Any]:
        """Describe the testbed for run.json."""
        return {
            "provider": self.provider,
            "accelerator": self._accelerator,
            "data_link": "the hosts' own network",
            "witness": self._witness,
            "one_clock": False,
            "mtu": min(node.link.mtu for node in self._nodes),
            "transports": {key: _node_facts(nodes) for key, nodes in self._others.items()},
        }

    def down(self) -> None:
        """Remove the rxe devices that were added for this run, and log out."""
        self._cleanup.close()


def up(
    hosts: Sequence[Host],
    *,
    transports: Collection[Transport],
    nodes: int = 2,
    root_for: str = DRIVER_AND_PROBES,
) -> SshTestbed:
    """Log in to the first `nodes` hosts, and find what `transports` use there.

    `root_for` says what needs root; if it is empty, hosts may refuse it, and nothing is captured
    then. For rxe, add a device where none exists. Raises UsageError when the inventory has fewer
    hosts, TestbedError when a host cannot be used or is not prepared (`rocelab hosts prepare`).
    """
    hosts = first(hosts, nodes)
    with ExitStack() as stack:
        logged_in = stack.enter_context(connect(hosts, root_for=root_for))
        ends, others = set_up(logged_in, hosts, transports, stack)
        return SshTestbed(ends, stack.pop_all(), hosts[0].control, others)


def first(hosts: Sequence[Host], nodes: int) -> Sequence[Host]:
    """Return the hosts that a plan of so many nodes uses. Raises UsageError if there are fewer."""
    if len(hosts) < nodes:
        raise UsageError(
            f"the plan needs {nodes} hosts, and the inventory has {len(hosts)}",
            cause="each node of the plan runs on its own host",
            action="Add a [[host]] to the inventory for each missing one.",
        )
    return hosts[:nodes]


def on(
    nodes: Sequence[UserNode],
    hosts: Sequence[Host],
    transports: Collection[Transport],
    stack: ExitStack,
) -> SshTestbed:
    """Return a testbed of hosts that the caller is logged in to; `stack` undoes its setup.

    Raises TestbedError like `up`.
    """
    stack.enter_context(lease.hold(nodes))
    return under_lease(nodes, hosts, transports)


def under_lease(
    nodes: Sequence[UserNode], hosts: Sequence[Host], transports: Collection[Transport]
) -> SshTestbed:
    """Return a testbed of hosts whose lease the caller holds; the lease undoes its setup.

    Raises TestbedError like `up`.
    """
    ends, others = _ends(nodes, hosts, transports)
    return SshTestbed(ends, ExitStack(), hosts[0].control, others)


def set_up(
    nodes: Sequence[UserNode],
    hosts: Sequence[Host],
    transports: Collection[Transport],
    stack: ExitStack,
) -> tuple[list[Endpoint], dict[str, list[Endpoint]]]:
    """Return the hosts' ends of the data link, and those of transports with another.

    `stack` undoes the setup. Raises TestbedError like `up`.
    """
    stack.enter_context(lease.hold(nodes))
    return _ends(nodes, hosts, transports)


def _ends(
    nodes: Sequence[UserNode], hosts: Sequence[Host], transports: Collection[Transport]
) -> tuple[list[Endpoint], dict[str, list[Endpoint]]]:
    pairs = list(zip(nodes, hosts, strict=True))

    def endpoints(key: str) -> list[Endpoint]:
        return at_once(lambda pair: _endpoint(*pair, key), pairs)

    ends = endpoints("")
    others: dict[str, list[Endpoint]] = {}
    for key in dict.fromkeys(key_of(transport) for transport in transports):
        if any(key in host.transports for host in hosts):
            others[key] = endpoints(key)
    if any(transport.is_rxe for transport in transports):
        roce_v1 = any(transport.is_rxe and transport.roce == 1 for transport in transports)

        def ready(end: Endpoint) -> None:
            hardware_roce.refuse(end)
            _offer_device(end, roce_v1=roce_v1)

        at_once(ready, others.get("rxe", ends))
    if not _no_capture(nodes):
        at_once(_check_tap, ends[:1] if len(nodes) == 2 else ends)
    return ends, others


def _node_facts(nodes: Sequence[Endpoint]) -> dict[str, dict[str, Any]]:
    return {
        node.name: {
            "netdev": node.link.netdev,
            "ipv4": node.link.ipv4,
            "mtu": node.link.mtu,
            "device": node.adapter or None,
            "port": node.adapter_port or None,
        }
        for node in nodes
    }


def _addresses(node: Endpoint) -> control_network.HostAddresses:
    listing = node.run(control_network.LISTING).stdout
    try:
        interfaces = control_network.addresses(listing)
    except ValueError as error:
        raise TestbedError(
            f"{node.name} does not list its addresses",
            cause=str(error),
            action=f"Run `{' '.join(control_network.LISTING)}` on {node.name}.",
        ) from error
    return control_network.HostAddresses(
        node.name, node.link.netdev, _ssh_connection(node)[0], interfaces
    )


def _ssh_connection(node: Node) -> tuple[str, int]:
    """Address and port of the host that SSH connected to, from `$SSH_CONNECTION` (ssh(1))."""
    words = node.run(["printenv", "SSH_CONNECTION"], check=False).stdout.split()
    try:
        return str(ip_address(words[2])), int(words[3])
    except (IndexError, ValueError):
        return "", _SSH_PORT


def _no_capture(nodes: Sequence[Node]) -> str:
    """Say why nothing may capture the data link; empty where a capture is possible."""
    plain = [node.name for node in nodes if not node.has_root]
    return f"a capture needs root on {', '.join(plain)}" if plain else ""


def _check_tap(node: Endpoint) -> None:
    """Check that our capture program is installed; every measurement needs it."""
    installed = ("sh", "-c", 'command -v "$1"', "sh", linktap.TAP)
    if node.root.run(installed, check=False).returncode:
        raise TestbedError(
            f"{node.name} has no {linktap.TAP}, which captures its data interface",
            cause="the host is not prepared",
            action="Run `rocelab hosts prepare`.",
        )


def _endpoint(node: UserNode, host: Host, key: str) -> Endpoint:
    """Return the host with its rxe device's name and its adapter, as the transport `key` uses them.

    If the host has no rxe device there, the name is that of the one to be added.
    """
    uses = host.transports.get(key, Uses())
    link = node.link
    if uses.netdev is not None and uses.netdev != link.netdev:
        listing = node.run(data_interface.command(uses.netdev), check=False).stdout
        link = data_interface.parse(listing, uses.netdev, host=host.name)
    adapter = "" if key == "rxe" else uses.device or host.verbs or ""
    end = Endpoint(host.name, link, DEVICE, node, adapter, uses.port or 0)
    soft = verbs_ports.find(end).soft
    device = soft.device if soft else uses.device if key == "rxe" else None
    return replace(end, device=device or DEVICE)


def _offer_device(node: Endpoint, *, roce_v1: bool) -> None:
    """Add an rxe device unless the host has one; the host's lease undoes that.

    One that lacks RoCE v1 GIDs is recreated if they are needed, and nobody uses it.
    """
    if not driver_version(node):
        raise TestbedError(
            f"{node.name} does not run the instrumented rdma_rxe",
            cause="the host is not prepared, or its stock driver was loaded again",
            action="Run `rocelab hosts prepare`.",
        )
    has_device = verbs_ports.find(node).soft is not None
    if has_device and (not roce_v1 or has_roce_v1(node)):
        return
    # the last one is carried out first
    undo: list[Sequence[str]] = [
        ("sh", "-c", _ADD_AGAIN, "sh", node.device, node.link.netdev)
        if has_device
        else ("rdma", "link", "delete", node.device)
    ]
    if roce_v1:
        undo.append(roce_v1_default(node))
    if has_device:
        _refuse_users(node)
    for command in undo:
        lease.at_end(node, command)
    if has_device:
        remove_device(node)
    add_device(node, roce_v1=roce_v1)


def _refuse_users(node: Endpoint) -> None:
    if users := loaded_driver.users(node, {node.device}):
        raise TestbedError(
            f"{node.device} on {node.name} is in use",
            cause=f"by {users}; rxe-v1 needs a device with RoCE v1 GIDs, so it would be removed "
            "and added again",
            action="Stop them, or remove rxe-v1 from the plan.",
        )
