# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the data interface of each node, where no inventory names it."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence

from rocelab.errors import TestbedError, UsageError
from rocelab.testbed.control_network import LISTING, Interface, addresses
from rocelab.testbed.node import Node
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.slurm import commands

_ADDRESS = re.compile(r"\bNodeAddr=(\S+)")

Interfaces = tuple[tuple[str, Interface], ...]


def find(nodes: Sequence[Node]) -> list[str]:
    """Return the interface of each node, whose names are Slurm's, on the one data network.

    That is the IPv4 network which all nodes share and over which Slurm does not talk, or the only
    one that they share. Raises UsageError if that leaves none or several, TestbedError.
    """
    listed = at_once(_interfaces, nodes)
    networks = networks_of_all(listed)
    apart = [network for network in networks if not _carries_slurm(nodes, networks[network])]
    chosen = apart or list(networks)
    if len(chosen) != 1:
        names = "; ".join(f"{network} ({', '.join(networks[network])})" for network in networks)
        raise UsageError(
            f"cannot tell which network of the nodes is the data link: {names or 'none is shared'}",
            cause="it must be the only IPv4 network that all nodes share, apart from Slurm's",
            action="Name the interface: `rocelab hosts slurm --netdev NAME >hosts.toml`, then add "
            "`--inventory hosts.toml`.",
        )
    return networks[chosen[0]]


def networks_of_all(listed: Sequence[Interfaces]) -> Mapping[str, list[str]]:
    """Return the IPv4 networks in which every node has an address of its own, with the interfaces.

    `listed`: for each node, what rocelab.testbed.control_network.addresses returns.
    """
    netdevs_by_network: dict[str, list[str]] = {}
    for _, own in listed[0]:
        ends = [
            next(((dev, one.ip) for dev, one in each if one.network == own.network), None)
            for each in listed
        ]
        there = [end for end in ends if end is not None]
        if own.version == 4 and len(there) == len({ip for _, ip in there}) == len(listed):
            netdevs_by_network[str(own.network)] = [netdev for netdev, _ in there]
    return netdevs_by_network


def _interfaces(node: Node) -> Interfaces:
    try:
        return addresses(node.run(LISTING).stdout)
    except ValueError as error:
        raise TestbedError(
            f"{node.name} does not list its addresses",
            cause=str(error),
            action=f"Run `{' '.join(LISTING)}` there.",
        ) from error


def _carries_slurm(nodes: Sequence[Node], netdevs: Sequence[str]) -> bool:
    """Whether Slurm reaches the first node over this interface."""
    listing = commands.ask(("scontrol", "show", "node", nodes[0].name)).stdout
    name = match[1] if (match := _ADDRESS.search(listing)) else nodes[0].name
    try:
        address = socket.gethostbyname(name)
    except OSError:
        return False
    return any(dev == netdevs[0] and str(own.ip) == address for dev, own in _interfaces(nodes[0]))
