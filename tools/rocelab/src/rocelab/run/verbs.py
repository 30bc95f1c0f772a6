# SPDX-License-Identifier: GPL-2.0-or-later
"""Find a node's verbs device and the GID that a transport needs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from rocelab.bench import gid
from rocelab.bench.catalog import Transport
from rocelab.bench.mpi.recipe import Place
from rocelab.bench.tool import End
from rocelab.errors import CellError
from rocelab.node import Node

_DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,63}")


@dataclass(frozen=True)
class VerbsPort:
    """A port of a verbs device."""

    device: str
    port: int


def ports(listing: str, netdev: str) -> tuple[VerbsPort, ...]:
    """Ports on that interface, from `rdma -j link show`. Raises ValueError when it is not JSON."""
    links = json.loads(listing)
    if not isinstance(links, list):
        raise ValueError("not a list")
    found = []
    for link in links:
        if not isinstance(link, dict) or link.get("netdev") != netdev:
            continue
        device, port = link.get("ifname"), link.get("port")
        # what a node says becomes part of paths and command lines: only what can be a device name
        if isinstance(device, str) and _DEVICE.fullmatch(device) and isinstance(port, int):
            found.append(VerbsPort(device, port))
    return tuple(found)


def find(node: Node) -> VerbsPort | None:
    """The verbs port on a node's data interface, or None."""
    done = node.run(("rdma", "-j", "link", "show"), check=False)
    try:
        found = ports(done.stdout, node.link.netdev)
    except ValueError:
        return None
    return found[0] if found else None


def end(node: Node, port: VerbsPort | None, transport: Transport) -> End:
    """The node's end of a benchmark over `transport`; `port` as `find` found it.

    Raises CellError when the node lacks the device or a GID of the transport's type.
    """
    if transport.gid_type is None:
        return End(node.link.ipv4)
    port, gids = _gids(node, port)
    chosen = gid.choose(gids, transport.gid_type, node.link.ipv4, node=node.name)
    return End(node.link.ipv4, port.device, port.port, chosen.index)


def place(node: Node, port: VerbsPort | None, transport: Transport) -> Place:
    """What the ranks of a node need to know of its end of the link. Raises CellError, as `end`."""
    if transport.gid_type is None:
        return Place(node.name, node.link.netdev)
    port, gids = _gids(node, port)
    chosen = gid.choose_link_local(gids, transport.gid_type, node=node.name)
    return Place(node.name, node.link.netdev, port.device, port.port, chosen.index)


def _gids(node: Node, port: VerbsPort | None) -> tuple[VerbsPort, tuple[gid.Gid, ...]]:
    if port is None:
        raise CellError(
            f"{node.name} has no verbs device on {node.link.netdev}",
            cause="the rxe link was not made, or its module is not loaded",
            action=f"On {node.name}: `rdma link show`.",
        )
    base = f"/sys/class/infiniband/{port.device}/ports/{port.port}"
    # entries without a GID cannot be read: -s, and no check of the exit status
    listing = node.run(
        ("grep", "-rs", "", f"{base}/gids", f"{base}/gid_attrs/types"), check=False
    ).stdout
    return port, gid.parse(listing)
