# SPDX-License-Identifier: GPL-2.0-or-later
"""Ends on one machine, over veth: names, addresses, commands. Pure functions.

    n1  rxe0 on rocelab1 10.45.0.1 ═══ veth ═══ 10.45.0.2 rocelab2 on rxe1  n2

With switches, or more than two ends, each end's veth leads into a network namespace of bridges:

    n1  rocelab1 ═ veth ═ port1 [hop1 … ] port2 ═ veth ═ rocelab2  n2
                                          port3 ═ veth ═ rocelab3  n3

All addresses are this machine's own, and the kernel sends what goes to an own address over lo: it
looks into the table `local` first, for every packet. So that table comes last here, and before
it, for packets that this machine sends (`iif lo`), a table for each end with the ways to the others
by its own interface. It is chosen by the sender's address or, where a socket has none yet, by the
receiver's: then the first end sends, or the second to the first. Received packets find the table
`local` as ever.

rxe binds its lookup to the interface and would do without; TCP, and the TCP by which benchmarks
find each other, would not.
"""

from __future__ import annotations

from dataclasses import dataclass

from rocelab.node import DataLink
from rocelab.provider import bridges
from rocelab.provider.bridges import Port

Argv = tuple[str, ...]

_TABLE = 4791
"""Number of the first end's routing table; the UDP port of RoCE v2, easily recognised."""
_FROM_FIRST, _TO_SECOND, _LOCAL_LAST = "100", "101", "200"
# Linux 6.18 takes the same rule twice where the kernel itself made the first one
_LOCAL_FIRST = "ip rule show pref 0 | grep -q local || ip rule add pref 0 lookup local"
_PREFIX = 24
NETWORK = f"10.45.0.0/{_PREFIX}"
SWITCH = "rocelab-switch"
"""The network namespace of the bridges."""
MOST_ENDS = 8


@dataclass(frozen=True)
class End:
    """One end; `index` counts from 1."""

    index: int

    @property
    def name(self) -> str:
        """Name of the node."""
        return f"n{self.index}"

    @property
    def device(self) -> str:
        """Name of the rxe device."""
        return f"rxe{self.index - 1}"

    @property
    def table(self) -> str:
        """Its routing table."""
        return str(_TABLE + self.index - 1)

    def link(self, mtu: int) -> DataLink:
        """The interface."""
        address, mac = f"10.45.0.{self.index}", f"52:54:00:45:00:{self.index:02x}"
        return DataLink(f"rocelab{self.index}", address, mac, mtu)


@dataclass(frozen=True)
class Layout:
    """How many ends, over how many switches."""

    mtu: int
    count: int = 2
    switches: int = 0

    @property
    def ends(self) -> tuple[End, ...]:
        """The ends, in order."""
        return tuple(map(End, range(1, self.count + 1)))

    @property
    def netdevs(self) -> tuple[str, ...]:
        """Their interfaces."""
        return tuple(end.link(self.mtu).netdev for end in self.ends)

    @property
    def words(self) -> str:
        """The data link, for run.json."""
        one = "in one network namespace: all ends share machine and clock"
        if not self.switches:
            return f"veth pair {one}"
        return f"veth of each end {one}; {bridges.words(self.switches)} in a namespace between them"

    def make(self) -> list[Argv]:
        """Commands that make it, in order. Nothing outside it changes, but for the rules."""
        commands = self._switched() if self.switches else self._pair()
        for end in self.ends:
            commands += self._end(end)
        # the table `local` is never out of reach: first there twice, then once
        commands += [("ip", "rule", "add", "pref", _LOCAL_LAST, "lookup", "local")]
        commands += [_rule("add", *rule) for rule in _rules(self.count)]
        return [*commands, ("ip", "rule", "del", "pref", "0", "lookup", "local")]

    def routes_to_ask(self) -> list[tuple[Argv, str]]:
        """Questions to `ip route get`, and the interface that must be in the answer.

        Each end's way to each other, as a socket asks that knows nothing, and as rxe asks.
        """
        links = [end.link(self.mtu) for end in self.ends]
        ways = [(by, to) for by in links for to in links if by != to]
        bound = [
            (("ip", "route", "get", to.ipv4, "from", by.ipv4, *rest), by.netdev)
            for by, to in ways
            for rest in ((), ("oif", by.netdev))
        ]
        unbound = [
            (("ip", "route", "get", to.ipv4), links[0 if to != links[0] else 1].netdev)
            for to in links
        ]
        return [*unbound, *bound]

    def _pair(self) -> list[Argv]:
        one, two = (end.link(self.mtu) for end in self.ends)
        size = ("mtu", str(self.mtu))
        return [
            (
                *("ip", "link", "add", one.netdev, "address", one.mac, *size, "type", "veth"),
                *("peer", "name", two.netdev, "address", two.mac, *size),
            )
        ]

    def _switched(self) -> list[Argv]:
        ports = [Port(_port(end), end.link(self.mtu).mac) for end in self.ends]
        commands: list[Argv] = [("ip", "netns", "add", SWITCH)]
        size = ("mtu", str(self.mtu))
        for end, port in zip(self.ends, ports, strict=True):
            link = end.link(self.mtu)
            commands.append(
                (
                    *("ip", "link", "add", link.netdev, "address", link.mac, *size, "type", "veth"),
                    *("peer", "name", port.netdev, *size, "netns", SWITCH),
                )
            )
        return commands + bridges.make(ports, self.switches, self.mtu, namespace=SWITCH)

    def _end(self, end: End) -> list[Argv]:
        link = end.link(self.mtu)
        settings = {
            "net.ipv4.conf": {"rp_filter": 0, "accept_local": 1},
            # frames of the kernel's own would be in every capture
            "net.ipv6.conf": {"accept_dad": 0, "router_solicitations": 0},
        }
        peers = [other.link(self.mtu) for other in self.ends if other != end]
        return [
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
            *(
                (
                    *("ip", "neigh", "replace", peer.ipv4, "lladdr", peer.mac),
                    *("dev", link.netdev, "nud", "permanent"),
                )
                for peer in peers
            ),
            *(
                (
                    *("ip", "route", "add", peer.ipv4, "dev", link.netdev, "src", link.ipv4),
                    *("table", end.table),
                )
                for peer in peers
            ),
        ]


def remove() -> list[Argv]:
    """Commands that undo `make` of any layout, in order, however far it came.

    Those that fail had nothing to do. The rxe devices, the addresses, routes, neighbours and
    settings go with the interfaces.
    """
    every = Layout(0, MOST_ENDS).ends
    return [
        ("sh", "-c", _LOCAL_FIRST),
        *(_rule("del", *rule) for rule in _rules(MOST_ENDS)),
        ("ip", "rule", "del", "pref", _LOCAL_LAST, "lookup", "local"),
        *(("ip", "route", "flush", "table", end.table) for end in every),
        # by their other ends, which are ours: an interface of that name may be somebody's
        *(("ip", "-n", SWITCH, "link", "delete", _port(end)) for end in every),
        ("ip", "link", "delete", every[0].link(0).netdev),
        ("ip", "netns", "delete", SWITCH),
    ]


def _port(end: End) -> str:
    """The switch's side of an end's veth."""
    return f"port{end.index}"


def _rules(count: int) -> list[Argv]:
    """The selector and the table of each rule."""
    ends = Layout(0, count).ends
    by_sender = [("pref", _FROM_FIRST, "from", end.link(0).ipv4, end.table) for end in ends]
    senders = {end: ends[1] if end is ends[0] else ends[0] for end in ends}
    by_receiver = [
        ("pref", _TO_SECOND, "to", end.link(0).ipv4, sender.table)
        for end, sender in senders.items()
    ]
    return [*by_sender, *by_receiver]


def _rule(verb: str, *selector: str) -> Argv:
    *words, table = selector
    return ("ip", "rule", verb, *words, "iif", "lo", "lookup", table)


WITNESS = (
    "AF_PACKET (linktap) where frames arrive, at all ends, on the machine itself: it "
    "is not outside the node, and its work is part of the latency, but of no stage"
)
"""How the link is captured, for run.json."""
