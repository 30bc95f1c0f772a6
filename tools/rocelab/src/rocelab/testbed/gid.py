# SPDX-License-Identifier: GPL-2.0-or-later
"""Choose a verbs device's GID by type and address, never by index: RoCE v1 renumbers GIDs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from rocelab.errors import CellError
from rocelab.testbed.node import Node

_LINE = re.compile(
    r"^(?P<dir>.*)/(?P<table>gids|gid_attrs/types)/(?P<index>\d{1,5}):(?P<value>.*)$"
)


@dataclass(frozen=True)
class Gid:
    """One entry of a port's GID table."""

    index: int
    address: IPv6Address
    type: str
    """As in sysfs: `RoCE v2`, `IB/RoCE v1`."""


def parse(listing: str) -> tuple[Gid, ...]:
    """Parse lines `…/gids/INDEX:value` and `…/gid_attrs/types/INDEX:value`, skip empty GIDs."""
    addresses: dict[int, IPv6Address] = {}
    types: dict[int, str] = {}
    for line in listing.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        index = int(match["index"])
        if match["table"] == "gids":
            try:
                addresses[index] = IPv6Address(match["value"].strip())
            except AddressValueError:
                continue
        else:
            types[index] = match["value"].strip()
    return tuple(
        Gid(index, address, types[index])
        for index, address in sorted(addresses.items())
        if int(address) != 0 and index in types
    )


def gids_of(node: Node, device: str, port: int) -> tuple[Gid, ...]:
    """Return the GIDs of a port of a device."""
    return _listed(node, device, port, "*")


def find(node: Node, device: str, port: int, gid_type: str) -> Gid:
    """Return the GID of a type for the node's address. Raises CellError if there is none.

    The kernel fills the first free entry (Linux, drivers/infiniband/core/cache.c), so the first ten
    are read first: reading rxe's 1,024 takes 32 million instructions.
    """
    for indices in ("[0-9]", "*"):
        gids = _listed(node, device, port, indices)
        if chosen := choose(gids, gid_type, node.link.ipv4):
            return chosen
    raise _missing(gids, f"{gid_type} GID for {node.link.ipv4}", node.name)


def _listed(node: Node, device: str, port: int, indices: str) -> tuple[Gid, ...]:
    base = f"/sys/class/infiniband/{device}/ports/{port}"
    # entries without a GID cannot be read, so grep fails: hence -s and check=False
    script = f'grep -Hs \'\' "$1"/gids/{indices} "$1"/gid_attrs/types/{indices}'
    return parse(node.run(("sh", "-c", script, "sh", base), check=False).stdout)


def choose(gids: Iterable[Gid], gid_type: str, ipv4: str) -> Gid | None:
    """Return the GID of a type for an IPv4 address; None if there is none."""
    address = IPv4Address(ipv4)
    fit = (gid for gid in gids if gid.type == gid_type and gid.address.ipv4_mapped == address)
    return next(fit, None)


def _missing(gids: tuple[Gid, ...], kind: str, node: str) -> CellError:
    listed = ", ".join(f"{gid.index}: {gid.address} ({gid.type!a:.20})" for gid in gids[:8])
    return CellError(
        f"{node} has no {kind}; its GIDs: {listed or 'none'}",
        cause="the interface lacks the address, or the driver does not offer this RoCE version",
        action=f"On {node}, look at `ip addr` and `rdma link`.",
    )
