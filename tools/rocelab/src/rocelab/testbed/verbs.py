# SPDX-License-Identifier: GPL-2.0-or-later
"""Find a node's verbs device and the GID that a transport needs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from rocelab.errors import CellError
from rocelab.plans.benchmarks.mpi.recipe import Place
from rocelab.plans.benchmarks.tool import End
from rocelab.plans.catalog import Maker, Transport
from rocelab.testbed import gid
from rocelab.testbed.node import Node
from rocelab.testbed.node.endpoint import Endpoint

_DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,63}")


@dataclass(frozen=True)
class VerbsPort:
    """A port of a verbs device."""

    device: str
    port: int


def ports(listing: str, netdev: str, device: str = "") -> tuple[VerbsPort, ...]:
    """Return the ports on an interface or of a device, from the output of `rdma -j link show`.

    The device's ports come first; InfiniBand devices can only be found by name, because they
    belong to no interface. Raises ValueError when the output is not a JSON list.
    """
    links = json.loads(listing)
    if not isinstance(links, list):
        raise ValueError("not a list")
    by_name, by_netdev = [], []
    for link in links:
        if not isinstance(link, dict):
            continue
        name, port = link.get("ifname"), link.get("port")
        # goes into paths and command lines: accept only valid device names
        if not isinstance(name, str) or not _DEVICE.fullmatch(name) or not isinstance(port, int):
            continue
        if name == device:
            by_name.append(VerbsPort(name, port))
        elif link.get("netdev") == netdev:
            by_netdev.append(VerbsPort(name, port))
    return (*by_name, *by_netdev)


@dataclass(frozen=True)
class Ports:
    """A node's verbs ports for the data link."""

    soft: VerbsPort | None = None
    """The port of its rxe device."""
    adapter: VerbsPort | None = None
    """The port of another device; if there is none, of the rxe device, which may run the stock
    driver."""

    def of(self, by: Maker) -> VerbsPort | None:
        """Return the port that makes a transport's packets; None if the node has no such port."""
        return self.adapter if by == "adapter" else self.soft


def find(node: Node) -> Ports:
    """Find the ports on a node's data interface and of the device that the inventory names."""
    done = node.run(("rdma", "-j", "link", "show"), check=False)
    try:
        named = node.adapter if isinstance(node, Endpoint) else ""
        found = ports(done.stdout, node.link.netdev, named)
    except ValueError:
        return Ports()
    soft = [port for port in found if _is_soft(node, port)]
    others = [port for port in found if port not in soft]
    return Ports(next(iter(soft), None), next(iter(others or soft), None))


def _is_soft(node: Node, port: VerbsPort) -> bool:
    # only rxe devices have this attribute
    parent = f"/sys/class/infiniband/{port.device}/parent"
    return node.run(("test", "-e", parent), check=False).returncode == 0


def end(node: Node, ports: Ports, transport: Transport) -> End:
    """Return the node's end of a benchmark over `transport`; `ports` come from `find`.

    Raises CellError when the node lacks the device or a GID of the transport's type.
    """
    if transport.family == "tcp":
        return End(node.link.ipv4)
    port = _port(node, ports, transport)
    if transport.gid_type is None:
        return End(node.link.ipv4, port.device, port.port)
    gids = _gids(node, port)
    chosen = gid.choose(gids, transport.gid_type, node.link.ipv4, node=node.name)
    return End(node.link.ipv4, port.device, port.port, chosen.index)


def place(node: Node, ports: Ports, transport: Transport) -> Place:
    """Return what the ranks on a node need to know of its end of the link.

    Raises CellError like `end`.
    """
    if transport.family == "tcp":
        return Place(node.name, node.link.netdev)
    port = _port(node, ports, transport)
    if transport.gid_type is None:
        return Place(node.name, node.link.netdev, port.device, port.port)
    gids = _gids(node, port)
    chosen = (
        gid.choose_link_local(gids, transport.gid_type, node=node.name)
        if transport.is_rxe
        else gid.choose(gids, transport.gid_type, node.link.ipv4, node=node.name)
    )
    return Place(node.name, node.link.netdev, port.device, port.port, chosen.index)


def _port(node: Node, ports: Ports, transport: Transport) -> VerbsPort:
    """Return the transport's port. Raises CellError if it is missing or of the wrong kind."""
    port = ports.of(transport.by)
    if port is None:
        raise CellError(
            f"{node.name} has no {'rxe' if transport.is_rxe else 'verbs'} device "
            f"on {node.link.netdev}",
            cause="the rxe link does not exist, or its module is not loaded"
            if transport.is_rxe
            else "its driver is not loaded, or the inventory names no `verbs` device",
            action=f"On {node.name}: look at `rdma link show`.",
        )
    # only our build of rdma_rxe has a version
    if transport.by == "adapter" and port == ports.soft:
        version = node.run(("cat", "/sys/module/rdma_rxe/version"), check=False).stdout.strip()
        if version:
            raise CellError(
                f"{port.device} on {node.name} is a Soft RoCE device of the instrumented driver",
                cause=f"{transport.name} is for devices whose driver is not instrumented",
                action="Use rxe-v1 or rxe-v2, or name the adapter in the inventory (`verbs`).",
            )
    return port


def _gids(node: Node, port: VerbsPort) -> tuple[gid.Gid, ...]:
    base = f"/sys/class/infiniband/{port.device}/ports/{port.port}"
    # entries without a GID cannot be read, so grep fails: hence -s and check=False
    listing = node.run(
        ("grep", "-rs", "", f"{base}/gids", f"{base}/gid_attrs/types"), check=False
    ).stdout
    return gid.parse(listing)
