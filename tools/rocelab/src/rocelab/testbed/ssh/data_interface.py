# SPDX-License-Identifier: GPL-2.0-or-later
"""Parse a host's data interface from the output of `ip -j addr show dev NAME`."""

from __future__ import annotations

import re
from ipaddress import IPv4Address

from rocelab import json_text
from rocelab.errors import TestbedError
from rocelab.testbed.node import DataLink

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}|[0-9a-f]{2}(:[0-9a-f]{2}){19}")
"""6 bytes for Ethernet, 20 for IPoIB."""


def command(netdev: str) -> tuple[str, ...]:
    """The command whose output `parse` reads."""
    return ("ip", "-j", "addr", "show", "dev", netdev)


def parse(listing: str, netdev: str, *, host: str) -> DataLink:
    """Return the interface. Raises TestbedError when it is missing, down or without IPv4 address.

    The host's output becomes part of command lines, so only well-formed addresses are accepted.
    """
    try:
        (link,) = (item for item in json_text.parse_any(listing) if item.get("ifname") == netdev)
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
            f"cannot find the interface {netdev} on {host}",
            cause=f"`ip -j addr` printed {listing!a:.80}",
            action=f"Compare `ip addr` on {host} with netdev in the inventory.",
        ) from error
    if not up or not addresses:
        raise TestbedError(
            f"{netdev} on {host} {'has no IPv4 address' if up else 'is down'}",
            cause="it is not configured, or the inventory names the wrong interface",
            action="Set it up and give it an address, or correct netdev in the inventory.",
        )
    return DataLink(netdev, str(addresses[0]), mac, mtu)
