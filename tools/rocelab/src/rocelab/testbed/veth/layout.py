# SPDX-License-Identifier: GPL-2.0-or-later
"""Ends on one machine, connected by veth: names, addresses, commands. Pure functions.

    n1  rxe0 on rocelab1 10.45.0.1 ═══ veth ═══ 10.45.0.2 rocelab2 on rxe1  n2

With switches, or more than two ends, each end's veth leads into a network namespace with bridges:

    n1  rocelab1 ═ veth ═ port1 [hop1 … ] port2 ═ veth ═ rocelab2  n2
                                          port3 ═ veth ═ rocelab3  n3

All addresses belong to this machine, and the kernel sends packets to its own addresses over lo,
because it looks them up in the routing table `local` first. We therefore move `local` to the end.
Each end gets its own table, with routes to the other ends through its own interface; rules for
packets that this machine sends (`iif lo`) look there before `local`. They choose the table by the
source address or, for a socket that has none yet, by the destination: the first end then is the
source, or the second if the first is the destination. Received packets still find `local`.

rxe binds its route lookup to the interface and would not need this. TCP needs it, and so do the
benchmarks, which set up their connections over TCP.
"""

from __future__ import annotations

from dataclasses import dataclass

from rocelab.testbed import bridges
from rocelab.testbed.bridges import Port
from rocelab.testbed.node import DataLink
from rocelab.testbed.node.prepare_node import permanent_neighbour

Argv = tuple[str, ...]

_TABLE = 4791
"""Number of the first end's routing table: the UDP port of RoCE v2."""
_FROM_FIRST, _TO_SECOND, _LOCAL_LAST = "100", "101", "200"
# Linux 6.18 accepts a duplicate of the rule that the kernel itself made, so look for it first
_LOCAL_FIRST = "ip rule show pref 0 | grep -q local || ip rule add pref 0 lookup local"
_PREFIX = 24
SWITCH = "rocelab-switch"
"""The network namespace that holds the bridges."""
MAX_ENDS = 8


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
    """How many ends there are, and how many switches connect them."""

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
    def description(self) -> str:
        """Describe the data link for run.json."""
        shared = "in one network namespace: all ends share machine and clock"
        if not self.switches:
            return f"veth pair {shared}"
        between = f"{bridges.describe(self.switches)} in a namespace between them"
        return f"veth of each end {shared}; {between}"

    def make(self) -> list[Argv]:
        """Return the commands that make the layout. Of the machine, they change only the rules."""
        commands = self._switch_commands() if self.switches else self._pair()
        for end in self.ends:
            commands += self._end(end)
        # add the new rule for `local` before deleting the old: without one nothing is received
        commands += [("ip", "rule", "add", "pref", _LOCAL_LAST, "lookup", "local")]
        commands += [_rule("add", *rule) for rule in _rules(self.count)]
        return [*commands, ("ip", "rule", "del", "pref", "0", "lookup", "local")]

    def expected_routes(self) -> list[tuple[Argv, str]]:
        """Return `ip route get` commands and the interface that each must print.

        They cover the route from each end to each other: for a socket without a source address,
        for one with it, and as rxe looks it up.
        """
        links = [end.link(self.mtu) for end in self.ends]
        pairs = [(source, to) for source in links for to in links if source != to]
        bound = [
            (("ip", "route", "get", to.ipv4, "from", source.ipv4, *rest), source.netdev)
            for source, to in pairs
            for rest in ((), ("oif", source.netdev))
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

    def _switch_commands(self) -> list[Argv]:
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
            # frames that the kernel sends on its own would appear in every capture
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
            *(permanent_neighbour(link, peer) for peer in peers),
            *(
                (
                    *("ip", "route", "add", peer.ipv4, "dev", link.netdev, "src", link.ipv4),
                    *("table", end.table),
                )
                for peer in peers
            ),
        ]


def remove() -> list[Argv]:
    """Return the commands that undo `make` of any layout, even if it was interrupted.

    Commands that fail had nothing to undo. Deleting the interfaces also removes their rxe devices,
    addresses, routes, neighbours and settings.
    """
    ends = Layout(0, MAX_ENDS).ends
    return [
        ("sh", "-c", _LOCAL_FIRST),
        *(_rule("del", *rule) for rule in _rules(MAX_ENDS)),
        ("ip", "rule", "del", "pref", _LOCAL_LAST, "lookup", "local"),
        *(("ip", "route", "flush", "table", end.table) for end in ends),
        # delete through the peers, in our namespace: the user may have an interface named alike
        *(("ip", "-n", SWITCH, "link", "delete", _port(end)) for end in ends),
        ("ip", "link", "delete", ends[0].link(0).netdev),
        ("ip", "netns", "delete", SWITCH),
    ]


def _port(end: End) -> str:
    """Return the interface at the switch's end of a veth."""
    return f"port{end.index}"


def _rules(count: int) -> list[Argv]:
    """Return the selector and the table of each rule."""
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
    "AF_PACKET (linktap) where frames arrive, at all ends, on the machine itself: not outside "
    "the node; its work adds to the latency, but to no stage"
)
"""Describes how the link is captured, for run.json."""
