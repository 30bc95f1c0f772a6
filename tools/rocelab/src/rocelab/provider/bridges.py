# SPDX-License-Identifier: GPL-2.0-or-later
"""Switches between data interfaces: bridges in a row, as commands. Pure functions.

    first ── port1 [hop1] up1 ═ veth ═ down2 [hop2] ── port2 … others

The first node's port is at the first bridge, all others are at the last. Who is behind which port
is written into the bridges' tables, so that none floods what it has not learnt yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Argv = tuple[str, ...]


def words(hops: int) -> str:
    """Some switches, in words."""
    return "a bridge" if hops == 1 else f"{hops} bridges in a row"


@dataclass(frozen=True)
class Port:
    """A port, and who is behind it."""

    netdev: str
    mac: str


def make(
    ports: Sequence[Port], hops: int, mtu: int, *, namespace: str | None = None, name: str = "hop"
) -> list[Argv]:
    """Commands that make `hops` bridges of `ports` that are there, in order.

    `namespace`: where the ports are, if it is not the machine's own; `name` begins the bridges'.
    """
    within = () if namespace is None else ("-n", namespace)
    ip, bridge = ("ip", *within), ("bridge", *within)
    inside = () if namespace is None else ("ip", "netns", "exec", namespace)
    bridges = [f"{name}{hop}" for hop in range(1, hops + 1)]
    commands: list[Argv] = [
        # a switch that speaks for itself would be in every capture
        (*inside, "sysctl", "-qw", *(f"net.ipv6.conf.{of}.disable_ipv6=1" for of in _EVERY))
    ]
    for each in bridges:
        quiet = ("stp_state", "0", "mcast_snooping", "0")
        commands += [
            (*ip, "link", "add", "name", each, "type", "bridge", *quiet),
            (*ip, "link", "set", each, "mtu", str(mtu), "up"),
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
        (*ip, "link", "set", netdev, "mtu", str(mtu), "master", of, "up") for netdev, of in attached
    ]
    for hop in range(hops):
        for number, port in enumerate(ports):
            way = _way(number, port, hop, links)
            commands.append((*bridge, "fdb", "replace", port.mac, "dev", way, "master", "static"))
    return commands


_EVERY = ("all", "default")


def _between(name: str, hops: int) -> Iterator[tuple[str, str]]:
    for hop in range(1, hops):
        yield f"{name}-up{hop}", f"{name}-down{hop + 1}"


def _way(number: int, port: Port, hop: int, links: Sequence[tuple[str, str]]) -> str:
    """By which of its interfaces the bridge `hop` (from 0) reaches the node `number` (from 0)."""
    if number == 0:
        return port.netdev if hop == 0 else links[hop - 1][1]
    return port.netdev if hop == len(links) else links[hop][0]
