# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults by tc(8) at the server's data interface: on hosts and veth pairs, where no proxy can be.

    client's card ── capture ── capture at the server ── ingress: count, fault ── server's driver

A capture sees a request before tc does. So it shows every request as the client sent it, and the
n-th that tc counted is the n-th in the capture.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from rocelab.errors import CellError, TestbedError
from rocelab.plans.fault import OF_PROCESS, TO_SERVER, Action, FaultPlan
from rocelab.record.faults_document import UNALTERED, Altered, Event
from rocelab.testbed import tc_listing
from rocelab.testbed.node import Node

BLOCK = "4791"
"""Marks our filters' block, and so our queueing discipline; the UDP port of RoCE v2."""
_CHAIN = "4791"
_ALL = 1
"""Preference of the filter that counts the requests; the faults' own follow."""
_IFB = "rocelab-f"
"""Begins the names of our interfaces, which send a frame back in where it came from."""
_BTH = 28
"""Where the BTH is in an IPv4 datagram without options, as rxe and adapters send them."""
_RESPONSES = ((0x0D, 0xFF), (0x0E, 0xFE), (0x10, 0xFE), (0x12, 0xFF))
"""Opcodes of answers, as values and masks; the rest of the reliable connection's are requests."""
_RELIABLE = (0x00, 0xE0)
REQUESTS_SO_FAR = (
    f"tc -s filter show block {BLOCK} chain {_CHAIN} | "
    "sed -n 's/.*Sent [0-9]* bytes \\([0-9]*\\) pkt.*/\\1/p' | head -n 1"
)
"""Shell text that prints how many of the client's requests have come."""
_QUEUE_PACKETS = 100_000
_DRAIN_SECONDS = 10
SWEEP = f"""
tc qdisc show | sed -n 's/^qdisc ingress [^ ]* dev \\([^ ]*\\) .*ingress_block {BLOCK} .*/\\1/p' |
	while read -r netdev; do tc qdisc del dev "$netdev" ingress; done
ip -o link show | sed -n 's/^[0-9]*: \\({_IFB}[0-9]*\\):.*/\\1/p' |
	while read -r netdev; do ip link delete "$netdev"; done
"""
"""Shell text that removes what a killed run left of these faults."""


@dataclass(frozen=True)
class Counted:
    """What tc counted of a fault: the requests that it looked at, and those that it met."""

    fault: str
    seen: int
    met: int


@dataclass
class CountedLink:
    """A link with faults by tc; `measure.fault_places` fills in what the capture shows of them."""

    faults: Sequence[FaultPlan]
    requests: int = 0
    """The client's requests that came to the server's interface, by tc."""
    counted: tuple[Counted, ...] = ()
    events: list[Event] = field(default_factory=list)
    altered: Altered = UNALTERED
    met: set[str] = field(default_factory=set)
    unlisted: int = 0

    @property
    def passed(self) -> dict[str, int]:
        """Frames that the faults looked at, by direction."""
        return {TO_SERVER: self.requests}

    @property
    def of_packets(self) -> list[FaultPlan]:
        """The faults that are tc's, in order."""
        return [fault for fault in self.faults if fault.action not in OF_PROCESS]

    @property
    def longest_s(self) -> float:
        """The longest time for which a fault holds a packet back."""
        delays = [each.duration_us for each in self.faults if each.action is Action.DELAY]
        return max(delays, default=0) / 1e6


def commands(netdev: str, server: str, client: str, faults: Sequence[FaultPlan]) -> str:
    """Return the lines for `tc -batch` that have the faults meet the client's requests."""
    lines = [f"qdisc add dev {netdev} ingress_block {BLOCK} ingress"]
    rule = f"filter add block {BLOCK} protocol ip"
    counting = f"{rule} chain {_CHAIN} pref"
    lines.append(f"{counting} {_ALL} matchall action continue")
    for number, fault in enumerate(faults, _ALL + 1):
        if fault.action is Action.DELAY:
            netem = f"limit {_QUEUE_PACKETS} delay {fault.duration_us}us"
            lines.append(f"qdisc add dev {_IFB}{number} root netem {netem}")
        then = "drop" if fault.action is Action.DROP else "pipe"
        often = f"random determ {then} {fault.every_packets}"
        lines.append(f"{counting} {number} matchall action continue {often} {_done(fault, number)}")
    roce = (
        f"match ip src {client}/32 match ip dst {server}/32 match ip protocol 17 0xff "
        f"match u8 0x45 0xff at 0 match u16 4791 0xffff at 22 match u8 {{}} {{}} at {_BTH}"
    )
    for value, mask in _RESPONSES:
        lines.append(f"{rule} pref 1 u32 {roce.format(hex(value), hex(mask))} action pass")
    to_faults = roce.format(*map(hex, _RELIABLE))
    lines.append(f"{rule} pref 2 u32 {to_faults} action goto chain {_CHAIN}")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _done(fault: FaultPlan, number: int) -> str:
    """Return the actions on the packets that a fault meets; the last one lets them pass."""
    match fault.action:
        case Action.CORRUPT:
            at, bit = divmod(fault.bit, 32)
            word = f"offset {_BTH + 4 * at} u32 invert retain {1 << (31 - bit):#x}"
            return f"action pedit munge {word} pass"
        case Action.MARK_CE:
            # the second byte ends with ECN; the IP header's checksum follows
            return "action pedit munge offset 1 u8 set 3 retain 3 pipe action csum ip4h pass"
        case Action.DELAY:
            return f"action mirred egress redirect dev {_IFB}{number}"
        case _:
            return ""


@contextmanager
def faulty(server: Node, client: str, faults: Sequence[FaultPlan]) -> Iterator[CountedLink]:
    """Have faults of packets happen at the server's interface while the context lasts.

    Then the yielded link says what tc counted. Raises TestbedError when the interface has an
    ingress queueing discipline, or the kernel lacks what the faults need.
    """
    link = CountedLink(faults)
    netdev = server.link.netdev
    _refuse_foreign(server)
    try:
        _install(server, commands(netdev, server.link.ipv4, client, link.of_packets), link)
        yield link
        _read(server, link)
    finally:
        with suppress(TestbedError):
            server.root.run(("sh", "-c", SWEEP))


def drain(server: Node, link: CountedLink) -> None:
    """Wait until no delayed packet is held back any more."""
    deadline = time.monotonic() + link.longest_s + _DRAIN_SECONDS
    while link.longest_s and time.monotonic() < deadline:
        listing = _listing(server, "qdisc", "show")
        if not any(
            each.get("qlen") for each in listing if str(each.get("dev", "")).startswith(_IFB)
        ):
            return
        time.sleep(0.05)


def _install(server: Node, batch: str, link: CountedLink) -> None:
    existing = [
        f"{_IFB}{number}"
        for number, fault in enumerate(link.of_packets, _ALL + 1)
        if fault.action is Action.DELAY
    ]
    if existing:
        # without the two interfaces that the module makes by itself
        server.root.run(("modprobe", "ifb", "numifbs=0"), check=False)
    for name in existing:
        server.root.run(("ip", "link", "add", name, "type", "ifb"))
        server.root.run(("ip", "link", "set", name, "up"))
    done = server.root.run(("tc", "-batch", "-"), stdin=batch, check=False)
    if done.returncode:
        raise TestbedError(
            f"tc cannot set up the plan's faults on {server.link.netdev} of {server.name}",
            cause=done.stderr.strip()[-300:] or f"tc exited with {done.returncode}",
            action="Its kernel needs sch_ingress, cls_u32, cls_matchall, act_gact, act_pedit, "
            "act_csum, act_mirred, sch_netem and ifb.",
        )


def _refuse_foreign(server: Node) -> None:
    netdev = server.link.netdev
    listing = _listing(server, "qdisc", "show", "dev", netdev)
    if any(each.get("kind") in ("ingress", "clsact") for each in listing):
        raise TestbedError(
            f"{netdev} on {server.name} has an ingress queueing discipline that is not rocelab's",
            cause="its filters would see packets before or after the plan's faults",
            action=f"Remove it (`tc qdisc del dev {netdev} ingress`, or clsact), or leave out "
            "the faults.",
        )


def _read(server: Node, link: CountedLink) -> None:
    """Read what the filters counted. Raises CellError."""
    listing = _listing(server, "filter", "show", "block", BLOCK, "chain", _CHAIN)
    try:
        rules = {
            int(each["pref"]): each["options"]["actions"] for each in listing if "options" in each
        }
        link.requests = int(rules[_ALL][0]["stats"]["packets"])
        link.counted = tuple(
            Counted(
                fault.name,
                int(actions[0]["stats"]["packets"]),
                int(actions[0]["stats"]["drops"])
                if fault.action is Action.DROP
                else int(actions[1]["stats"]["packets"]),
            )
            for number, fault in enumerate(link.of_packets, _ALL + 1)
            for actions in (rules[number],)
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise CellError(
            f"cannot read what tc counted on {server.link.netdev} of {server.name}",
            cause=f"tc's JSON lacks {error}",
            action=f"On {server.name}: run `tc -s -j filter show block {BLOCK}` during a step.",
        ) from error


def _listing(server: Node, *words: str) -> list[dict[str, Any]]:
    return tc_listing.read(server, *words, subject="tc's rules")
