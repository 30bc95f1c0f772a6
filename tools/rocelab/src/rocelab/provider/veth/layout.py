# SPDX-License-Identifier: GPL-2.0-or-later
"""Both ends of a veth pair in one network namespace: names, addresses, commands. Pure functions.

    n1  rxe0 on rocelab1 10.45.0.1 ═══ veth ═══ 10.45.0.2 rocelab2 on rxe1  n2

Both addresses are this machine's own, and the kernel sends what goes to an own address over lo: it
looks into the table `local` first, for every packet. So that table comes second here, and before
it, for packets that this machine sends (`iif lo`), a table that leads each address to the interface
of the other end. Received packets find the table `local` as ever.

rxe binds its lookup to the interface and would do without; TCP, and the TCP by which benchmarks
find each other, would not.
"""

from __future__ import annotations

from dataclasses import dataclass

from rocelab.node import DataLink

Argv = tuple[str, ...]

TABLE = "4791"
"""Number of the routing table; the UDP port of RoCE v2, easily recognised."""
_OURS_FIRST, _LOCAL_SECOND = "100", "200"
_PREFIX = 24
NETWORK = f"10.45.0.0/{_PREFIX}"


@dataclass(frozen=True)
class End:
    """One end of the pair; `index` is 1 or 2."""

    index: int

    @property
    def name(self) -> str:
        """Name of the node."""
        return f"n{self.index}"

    @property
    def device(self) -> str:
        """Name of the rxe device."""
        return f"rxe{self.index - 1}"

    def link(self, mtu: int) -> DataLink:
        """The interface."""
        address, mac = f"10.45.0.{self.index}", f"52:54:00:45:00:{self.index:02x}"
        return DataLink(f"rocelab{self.index}", address, mac, mtu)


ENDS = (End(1), End(2))
NETDEVS = tuple(end.link(0).netdev for end in ENDS)
WITNESS = (
    "AF_PACKET (linktap) where frames arrive, at both ends of the pair, on the machine itself: it "
    "is not outside the node, and its work is part of the latency, but of no stage"
)
"""How the pair is captured, for run.json."""


def make(mtu: int) -> list[Argv]:
    """Commands that make the pair, in order. Nothing outside it changes, but for the rules."""
    one, two = (end.link(mtu) for end in ENDS)
    size = ("mtu", str(mtu))
    commands: list[Argv] = [
        (
            *("ip", "link", "add", one.netdev, "address", one.mac, *size, "type", "veth"),
            *("peer", "name", two.netdev, "address", two.mac, *size),
        )
    ]
    for link, peer in ((one, two), (two, one)):
        settings = {
            "net.ipv4.conf": {"rp_filter": 0, "accept_local": 1},
            # frames of the kernel's own would be in every capture
            "net.ipv6.conf": {"accept_dad": 0, "router_solicitations": 0},
        }
        commands += [
            (
                *("sysctl", "-qw"),
                *(
                    f"{family}.{link.netdev}.{key}={value}"
                    for family, keys in settings.items()
                    for key, value in keys.items()
                ),
            ),
            ("ip", "addr", "add", f"{link.ipv4}/{_PREFIX}", "dev", link.netdev),
            ("ip", "link", "set", link.netdev, "up"),
            (
                *("ip", "neigh", "replace", peer.ipv4, "lladdr", peer.mac, "dev", link.netdev),
                *("nud", "permanent"),
            ),
            (
                *("ip", "route", "add", peer.ipv4, "dev", link.netdev, "src", link.ipv4),
                *("table", TABLE),
            ),
        ]
    # the table `local` is never out of reach: first there twice, then once
    commands += [("ip", "rule", "add", "pref", _LOCAL_SECOND, "lookup", "local")]
    commands += [_rule("add", end) for end in ENDS]
    return [*commands, ("ip", "rule", "del", "pref", "0", "lookup", "local")]


def remove() -> list[Argv]:
    """Commands that undo `make`, in order, however far it came; those that fail had nothing to do.

    The rxe devices, the addresses, routes, neighbours and settings go with the interfaces.
    """
    return [
        ("ip", "rule", "add", "pref", "0", "lookup", "local"),
        *(_rule("del", end) for end in ENDS),
        ("ip", "rule", "del", "pref", _LOCAL_SECOND, "lookup", "local"),
        ("ip", "route", "flush", "table", TABLE),
        ("ip", "link", "delete", ENDS[0].link(0).netdev),
    ]


def _rule(verb: str, end: End) -> Argv:
    address = end.link(0).ipv4
    return ("ip", "rule", verb, "pref", _OURS_FIRST, "iif", "lo", "to", address, "lookup", TABLE)


def routes_to_ask(mtu: int) -> list[tuple[Argv, str]]:
    """Questions to `ip route get`, and the interface that must be in the answer.

    Each end's way to the other, as a socket asks that knows nothing, and as rxe asks.
    """
    one, two = (end.link(mtu) for end in ENDS)
    return [
        (("ip", "route", "get", to.ipv4, *rest), by.netdev)
        for by, to in ((one, two), (two, one))
        for rest in ((), ("from", by.ipv4), ("from", by.ipv4, "oif", by.netdev))
    ]
