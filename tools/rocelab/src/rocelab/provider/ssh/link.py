# SPDX-License-Identifier: GPL-2.0-or-later
"""What a host says of its data interface, from `ip -j addr show dev NAME`."""

from __future__ import annotations

import json
import re
from ipaddress import IPv4Address, ip_address, ip_network

from rocelab.errors import TestbedError
from rocelab.node import DataLink

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}|[0-9a-f]{2}(:[0-9a-f]{2}){19}")
"""Of Ethernet, or of IPoIB."""


EVERY = ("ip", "-j", "addr", "show")
"""The command whose output `network` reads."""


def network(listing: str, ssh_connection: str, *, host: str) -> str:
    """The network (CIDR) of the address that SSH came to: `$SSH_CONNECTION`'s third word.

    Raises TestbedError when the host does not tell it.
    """
    try:
        came_to = ip_address(ssh_connection.split()[2])
        (prefix,) = (
            info["prefixlen"]
            for item in json.loads(listing)
            for info in item.get("addr_info", [])
            if ip_address(info["local"]) == came_to
        )
        return str(ip_network((came_to, int(prefix)), strict=False))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise TestbedError(
            f"{host} does not tell by which network SSH reaches it",
            cause=f"$SSH_CONNECTION is {ssh_connection!a:.80}",
        ) from error


def command(netdev: str) -> tuple[str, ...]:
    """The command whose output `parse` reads."""
    return ("ip", "-j", "addr", "show", "dev", netdev)


def parse(listing: str, netdev: str, *, host: str) -> DataLink:
    """The interface. Raises TestbedError when it is down, has no IPv4 address, or is not told.

    What a host says becomes part of command lines: an address is what reads as one.
    """
    try:
        (link,) = (item for item in json.loads(listing) if item.get("ifname") == netdev)
        up, mac, mtu = "UP" in link["flags"], str(link["address"]), int(link["mtu"])
        addresses = [
            IPv4Address(info["local"])
            for info in link["addr_info"]
            if info["family"] == "inet" and info.get("scope") == "global"
        ]
        if not _MAC.fullmatch(mac):
            raise ValueError(mac)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise TestbedError(
            f"{host} does not tell of its interface {netdev}",
            cause=f"`ip -j addr` printed {listing!a:.80}",
            action="see `ip addr` there, and the inventory's netdev",
        ) from error
    if not up or not addresses:
        raise TestbedError(
            f"{netdev} of {host} {'has no IPv4 address' if up else 'is down'}",
            cause="it is not configured, or it is another interface",
            action="give it an address, or mend the inventory's netdev",
        )
    return DataLink(netdev, str(addresses[0]), mac, mtu)
