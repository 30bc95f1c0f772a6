# SPDX-License-Identifier: GPL-2.0-or-later
"""Choose the interfaces over which mpirun and its daemons on the other nodes talk.

The network by which SSH reaches a node need not reach the other nodes. A network that all nodes
share comes first, then the addresses that SSH reached, across routers; the first choice in which
every node really reaches the first one is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface, ip_address, ip_interface, ip_network

from rocelab import json_text
from rocelab.errors import CellError
from rocelab.testbed import reachability
from rocelab.testbed.node import Node

LISTING = ("ip", "-j", "addr", "show", "up")
"""The command whose output `addresses` reads."""
Interface = IPv4Interface | IPv6Interface


@dataclass(frozen=True)
class ControlEnd:
    """A node's interface on the control network, and its address there."""

    netdev: str
    address: str


@dataclass(frozen=True)
class HostAddresses:
    """What one node has to choose from."""

    name: str
    data: str
    """The data interface."""
    ssh: str
    """The address that SSH reached; empty if unknown."""
    interfaces: tuple[tuple[str, Interface], ...]
    """(interface, address) of global scope, without loopback and link-local addresses."""

    def within(self, network: str) -> ControlEnd | None:
        """The node's address in a network, None if it has none there."""
        target = ip_network(network)
        for netdev, own in self.interfaces:
            if own.version == target.version and own.ip in target:
                return ControlEnd(netdev, str(own.ip))
        return None


def addresses(listing: str) -> tuple[tuple[str, Interface], ...]:
    """Parse the output of `LISTING`. Raises ValueError for anything else."""
    try:
        return tuple(
            (str(link["ifname"]), ip_interface(f"{info['local']}/{int(info['prefixlen'])}"))
            for link in json_text.parse_any(listing)
            # with `up`, ip(8) prints {} for an interface that is down
            if link and "LOOPBACK" not in link["flags"]
            for info in link.get("addr_info", [])
            if info.get("scope") == "global"
        )
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not what `{' '.join(LISTING)}` prints: {error!a:.80}") from error


def candidates(hosts: Sequence[HostAddresses]) -> Iterator[tuple[ControlEnd, ...]]:
    """Choices of one end for each node, the best first.

    Common networks apart from the data link, the one that SSH reached at the first node before
    others; then the addresses that SSH reached; then the data link itself.
    """
    first = hosts[0]

    def rank(own: tuple[str, Interface]) -> tuple[bool, bool]:
        netdev, interface = own
        return netdev == first.data, str(interface.ip) != first.ssh

    common: list[tuple[ControlEnd, ...]] = []
    for _, interface in sorted(first.interfaces, key=rank):
        ends = [host.within(str(interface.network)) for host in hosts]
        chosen = tuple(end for end in ends if end is not None)
        if len(chosen) == len(hosts) and len({end.address for end in chosen}) == len(hosts):
            common.append(chosen)
    apart = [ends for ends in common if ends[0].netdev != first.data]
    yield from apart
    reached = tuple(end for host in hosts if (end := _by_ssh(host)) is not None)
    if len(reached) == len(hosts) and len({end.address for end in reached}) == len(hosts):
        yield reached
    yield from (ends for ends in common if ends not in apart)


def _by_ssh(host: HostAddresses) -> ControlEnd | None:
    if not host.ssh:
        return None
    return next(
        (
            ControlEnd(netdev, str(own.ip))
            for netdev, own in host.interfaces
            if own.ip == ip_address(host.ssh)
        ),
        None,
    )


def ends_on(hosts: Sequence[HostAddresses], networks: Sequence[str]) -> tuple[ControlEnd, ...]:
    """The ends on the networks that the inventory names. Raises CellError for a node without."""
    ends = []
    for host in hosts:
        end = next((end for network in networks if (end := host.within(network))), None)
        if end is None:
            raise CellError(
                f"{host.name} has no address on the control network {' or '.join(networks)}",
                cause="the inventory's `control` names other networks than this host has",
                action=f"See `ip addr` on {host.name}, and change `control` in the inventory.",
            )
        ends.append(end)
    return tuple(ends)


Reaches = Callable[[Sequence[Node], Node, str], list[str]]
"""See `reachability.reaches`."""


def choose(
    nodes: Sequence[Node],
    hosts: Sequence[HostAddresses],
    networks: Sequence[str] = (),
    *,
    reaches: Reaches = reachability.reaches,
) -> tuple[ControlEnd, ...]:
    """The control ends of `nodes`, all of which reach the first one.

    `networks`: those that the inventory names, none for the choice described above. Raises
    CellError that says which node does not reach which address.
    """
    refused = ""
    for ends in [ends_on(hosts, networks)] if networks else candidates(hosts):
        answers = reaches(nodes[1:], nodes[0], ends[0].address)
        failed = [(node, error) for node, error in zip(nodes[1:], answers, strict=True) if error]
        if not failed:
            return ends
        node, error = failed[0]
        refused += f"{node.name} to {nodes[0].name} at {ends[0].address}: {error}\n"
    listed = "; ".join(
        f"{host.name}: {', '.join(str(own) for _, own in host.interfaces) or 'none'}"
        for host in hosts
    )
    raise CellError(
        f"no network by which {' and '.join(node.name for node in nodes[1:])} "
        f"reach{'es' if len(nodes) == 2 else ''} {nodes[0].name} for MPI",
        cause=f"{refused}addresses: {listed}",
        action=f"Make {nodes[0].name} answer `ping` from each other host (route, firewall), then "
        'name that network in the inventory: control = "192.0.2.0/24".',
    )
