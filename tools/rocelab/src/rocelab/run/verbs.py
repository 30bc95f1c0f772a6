# SPDX-License-Identifier: GPL-2.0-or-later
"""Find a node's verbs device and the GID that a transport needs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from rocelab.bench import gid
from rocelab.bench.catalog import Maker, Transport
from rocelab.bench.mpi.recipe import Place
from rocelab.bench.tool import End
from rocelab.errors import CellError
from rocelab.node import Node
from rocelab.node.endpoint import Endpoint

_DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,63}")


@dataclass(frozen=True)
class VerbsPort:
    """A port of a verbs device."""

    device: str
    port: int


def ports(listing: str, netdev: str, device: str = "") -> tuple[VerbsPort, ...]:
    """Ports on that interface, or of that device, from `rdma -j link show`.

    A device that is asked for by its name comes first: InfiniBand's are on no interface. Raises
    ValueError when it is not JSON.
    """
    links = json.loads(listing)
    if not isinstance(links, list):
        raise ValueError("not a list")
    named, there = [], []
    for link in links:
        if not isinstance(link, dict):
            continue
        name, port = link.get("ifname"), link.get("port")
        # what a node says becomes part of paths and command lines: only what can be a device name
        if not isinstance(name, str) or not _DEVICE.fullmatch(name) or not isinstance(port, int):
            continue
        if name == device:
            named.append(VerbsPort(name, port))
        elif link.get("netdev") == netdev:
            there.append(VerbsPort(name, port))
    return (*named, *there)


@dataclass(frozen=True)
class Ports:
    """A node's verbs ports for the data link."""

    soft: VerbsPort | None = None
    """Of its rxe device."""
    adapter: VerbsPort | None = None
    """Of another device; where there is none, of the rxe device, whose driver may be stock."""

    def of(self, by: Maker) -> VerbsPort | None:
        """The one that sends a transport's packets, or that stays still meanwhile."""
        return self.adapter if by == "adapter" else self.soft


def find(node: Node) -> Ports:
    """The ports on a node's data interface, and of the device that its inventory names."""
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
    # rxe alone has the attribute
    parent = f"/sys/class/infiniband/{port.device}/parent"
    return node.run(("test", "-e", parent), check=False).returncode == 0


def end(node: Node, ports: Ports, transport: Transport) -> End:
    """The node's end of a benchmark over `transport`; `ports` as `find` found them.

    Raises CellError when the node lacks the device or a GID of the transport's type.
    """
    if transport.family == "tcp":
        return End(node.link.ipv4)
    port = _there(node, ports, transport)
    if transport.gid_type is None:
        return End(node.link.ipv4, port.device, port.port)
    gids = _gids(node, port)
    chosen = gid.choose(gids, transport.gid_type, node.link.ipv4, node=node.name)
    return End(node.link.ipv4, port.device, port.port, chosen.index)


def place(node: Node, ports: Ports, transport: Transport) -> Place:
    """What the ranks of a node need to know of its end of the link. Raises CellError, as `end`."""
    if transport.family == "tcp":
        return Place(node.name, node.link.netdev)
    port = _there(node, ports, transport)
    if transport.gid_type is None:
        return Place(node.name, node.link.netdev, port.device, port.port)
    gids = _gids(node, port)
    chosen = (
        gid.choose_link_local(gids, transport.gid_type, node=node.name)
        if transport.is_rxe
        else gid.choose(gids, transport.gid_type, node.link.ipv4, node=node.name)
    )
    return Place(node.name, node.link.netdev, port.device, port.port, chosen.index)


def _there(node: Node, ports: Ports, transport: Transport) -> VerbsPort:
    """The port, if there is one, and if it is such a one as the transport is about."""
    port = ports.of(transport.by)
    if port is None:
        raise CellError(
            f"{node.name} has no {'rxe' if transport.is_rxe else 'verbs'} device "
            f"on {node.link.netdev}",
            cause="the rxe link was not made, or its module is not loaded"
            if transport.is_rxe
            else "its driver is not loaded, or the inventory names no `verbs` device",
            action=f"On {node.name}: `rdma link show`.",
        )
    # the version is our build's
    if transport.by == "adapter" and port == ports.soft:
        version = node.run(("cat", "/sys/module/rdma_rxe/version"), check=False).stdout.strip()
        if version:
            raise CellError(
                f"{port.device} of {node.name} is Soft RoCE by the instrumented driver",
                cause=f"{transport.name} is for devices whose driver cannot be looked into",
                action="Take rxe-v1 or rxe-v2, or name the adapter in the inventory (`verbs`).",
            )
    return port


def _gids(node: Node, port: VerbsPort) -> tuple[gid.Gid, ...]:
    base = f"/sys/class/infiniband/{port.device}/ports/{port.port}"
    # entries without a GID cannot be read: -s, and no check of the exit status
    listing = node.run(
        ("grep", "-rs", "", f"{base}/gids", f"{base}/gid_attrs/types"), check=False
    ).stdout
    return gid.parse(listing)
