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
    """Parse the output of `grep -r "" …/gids …/gid_attrs/types` (`path:value`), skip empty GIDs."""
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
    base = f"/sys/class/infiniband/{device}/ports/{port}"
    # entries without a GID cannot be read, so grep fails: hence -s and check=False
    listing = ("grep", "-rs", "", f"{base}/gids", f"{base}/gid_attrs/types")
    return parse(node.run(listing, check=False).stdout)


def choose(gids: Iterable[Gid], gid_type: str, ipv4: str, *, node: str) -> Gid:
    """Return the GID of a type for an IPv4 address. Raises CellError if there is none."""
    gids = tuple(gids)
    for gid in gids:
        if gid.type == gid_type and gid.address.ipv4_mapped == IPv4Address(ipv4):
            return gid
    raise _missing(gids, f"{gid_type} GID for {ipv4}", node)


def _missing(gids: tuple[Gid, ...], kind: str, node: str) -> CellError:
    listed = ", ".join(f"{gid.index}: {gid.address} ({gid.type!a:.20})" for gid in gids[:8])
    return CellError(
        f"{node} has no {kind}; its GIDs: {listed or 'none'}",
        cause="the interface lacks the address, or the driver does not offer this RoCE version",
        action=f"On {node}, look at `ip addr` and `rdma link`.",
    )
