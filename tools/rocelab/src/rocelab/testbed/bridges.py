# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that make the switches between data interfaces: a chain of bridges. Pure functions.

    first ── port1 [hop1] up1 ═ veth ═ down2 [hop2] ── port2 … others

The first node is attached to the first bridge, all others to the last. The bridges get static
forwarding entries, so that they never flood frames to addresses they have not learnt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Argv = tuple[str, ...]


def describe(hops: int) -> str:
    """Describe a chain of switches."""
    return "a bridge" if hops == 1 else f"{hops} bridges in a row"


@dataclass(frozen=True)
class Port:
    """A switch's port, and the MAC address of the node attached to it."""

    netdev: str
    mac: str


def make(
    ports: Sequence[Port], hops: int, mtu: int, *, namespace: str | None = None, name: str = "hop"
) -> list[Argv]:
    """Return the commands that make `hops` bridges and attach the existing `ports`.

    `namespace` is the network namespace of the ports, if not the default one. The bridges' names
    begin with `name`.
    """
    within = () if namespace is None else ("-n", namespace)
    ip, bridge = ("ip", *within), ("bridge", *within)
    inside = () if namespace is None else ("ip", "netns", "exec", namespace)
    bridges = [f"{name}{hop}" for hop in range(1, hops + 1)]
    commands: list[Argv] = [
        # frames sent by the switch itself would appear in every capture
        (*inside, "sysctl", "-qw", *(f"net.ipv6.conf.{key}.disable_ipv6=1" for key in _ALL))
    ]
    for bridge_name in bridges:
        quiet = ("stp_state", "0", "mcast_snooping", "0")
        commands += [
            (*ip, "link", "add", "name", bridge_name, "type", "bridge", *quiet),
            (*ip, "link", "set", bridge_name, "mtu", str(mtu), "up"),
        ]
    links = list(_between(name, hops))
    for up, down in links:
        size = ("mtu", str(mtu))
        peer = ("peer", "name", down, *size)
        commands.append((*ip, "link", "add", "name", up, *size, "type", "veth", *peer))
    first, *others = ports
    attached = [
        (first.netdev, bridges[0]),
        *((port.netdev, bridges[-1]) for port in others),
        *((up, bridges[hop]) for hop, (up, _) in enumerate(links)),
        *((down, bridges[hop + 1]) for hop, (_, down) in enumerate(links)),
    ]
    commands += [
        (*ip, "link", "set", netdev, "mtu", str(mtu), "master", master, "up")
        for netdev, master in attached
    ]
    for hop in range(hops):
        for number, port in enumerate(ports):
            out = _out_port(number, port, hop, links)
            commands.append((*bridge, "fdb", "replace", port.mac, "dev", out, "master", "static"))
    return commands


_ALL = ("all", "default")


def _between(name: str, hops: int) -> Iterator[tuple[str, str]]:
    for hop in range(1, hops):
        yield f"{name}-up{hop}", f"{name}-down{hop + 1}"


def _out_port(number: int, port: Port, hop: int, links: Sequence[tuple[str, str]]) -> str:
    """Return the interface through which bridge `hop` reaches node `number`; both count from 0."""
    if number == 0:
        return port.netdev if hop == 0 else links[hop - 1][1]
    return port.netdev if hop == len(links) else links[hop][0]
