# SPDX-License-Identifier: GPL-2.0-or-later
"""What a reliable connection sends, and the faults that meet it: drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from generator import frames
from generator.frames import Net

START_NS = 1_700_000_000 * 10**9
MODULUS = 1 << 24

# a queue somewhere: less, and more, than the requester's timeout
DELAYS = {"delay": 500_000, "delay_long": 5_000_000}

FAULTS = (
    "drop_before", "drop_behind", "duplicate", "reorder", "corrupt", "rnr", "ack_lost_before",
    "ack_lost_behind", *DELAYS,
)  # fmt: skip
"""`delay` and `delay_long` hold a packet of a, and what follows it, before the tap. For packets of
b, too, before and behind are as b's packets travel: b, behind, tap, before, a. `ack_lost_before` is
lost before it comes to the tap."""


@dataclass
class Planned:
    """A request packet."""

    psn: int
    name: str
    headers: bytes
    payload: bytes
    ack: bool
    span: int = 1

    @property
    def read_size(self) -> int:
        """Bytes that a READ asks for, from its RETH."""
        return int.from_bytes(self.headers[-4:], "big")


@dataclass
class Plan:
    """A seeded connection: its messages, and where faults are injected (by packet index)."""

    seed: int
    net: Net
    mtu: int
    qpn_a: int
    qpn_b: int
    packets: list[Planned]
    faults: dict[int, str]
    service: str = "RC"

    def index_of(self, psn: int) -> int | None:
        """Return which packet has this PSN."""
        for index, packet in enumerate(self.packets):
            if (psn - packet.psn) % MODULUS < packet.span:
                return index
        return None


def segments(kind: str, size: int, mtu: int) -> list[tuple[str, int]]:
    """Opcode suffix and bytes of each packet of a message."""
    if size <= mtu:
        return [(f"{kind}_ONLY", size)]
    count = -(-size // mtu)
    names = ["FIRST"] + ["MIDDLE"] * (count - 2) + ["LAST"]
    sizes = [mtu] * (count - 1) + [size - mtu * (count - 1)]
    return [(f"{kind}_{name}", part) for name, part in zip(names, sizes, strict=True)]


def plan(
    seed: int,
    *,
    faults: int = 1,
    kinds: tuple[str, ...] = FAULTS,
    services: tuple[str, ...] = ("RC",),
) -> Plan:
    """Draw a connection of 40 to 120 packets and inject up to `faults` faults in it."""
    draw = random.Random(seed)
    service = services[seed % len(services)]
    # an XRC request names the shared receive queue, its answer does not
    queue = (77).to_bytes(4, "big") if service == "XRC" else b""
    mtu = draw.choice([256, 512, 1024])
    start = draw.choice([0, MODULUS - draw.randrange(1, 60), draw.randrange(MODULUS)])
    net = Net(
        kind=draw.choice(["v1", "v2_ipv4", "v2_ipv6"]),
        vlans=draw.choice([[], [], [7], [100, 7]]),
    )
    if net.kind == "v2_ipv6":
        net.a, net.b = "fd00::1", "fd00::2"
    packets: list[Planned] = []
    psn = start
    count = draw.randrange(40, 120)
    va = 0x7F00_0000_0000
    while len(packets) < count:
        kind = draw.choice(["SEND", "SEND", "RDMA_WRITE", "RDMA_WRITE", "READ"])
        size = draw.choice([0, 1, 64, mtu, mtu + 1, 3 * mtu, draw.randrange(8 * mtu)])
        if kind == "READ":
            span = max(1, -(-size // mtu))
            headers = frames.reth(va, 0x1234, size)
            name = f"{service}_RDMA_READ_REQUEST"
            packets.append(Planned(psn, name, queue + headers, b"", True, span))
            psn = (psn + span) % MODULUS
            continue
        parts = segments(kind, size, mtu)
        for index, (name, part) in enumerate(parts):
            first_of_write = kind == "RDMA_WRITE" and index == 0
            headers = frames.reth(va, 0x1234, size) if first_of_write else b""
            payload = bytes(draw.randrange(256) for _ in range(min(part, 4))).ljust(part, b"\x55")
            last = index == len(parts) - 1
            # never a whole window without an answer
            ack = (last and draw.random() < 0.8) or len(packets) % 6 == 5
            packets.append(Planned(psn, f"{service}_{name}", queue + headers, payload, ack))
            psn = (psn + 1) % MODULUS
    packets[-1].ack = True
    injected: dict[int, str] = {}
    for _ in range(faults):
        index = draw.randrange(2, len(packets) - 2)
        # far apart: each fault is over before the next
        if all(abs(index - other) > 30 for other in injected):
            injected[index] = draw.choice(kinds)
    qpns = draw.randrange(2, MODULUS), draw.randrange(2, MODULUS)
    return Plan(seed, net, mtu, qpns[0], qpns[1], packets, injected, service)


def shift(plan: Plan, psns: int) -> Plan:
    """The same connection with all PSNs moved."""
    for packet in plan.packets:
        packet.psn = (packet.psn + psns) % MODULUS
    return plan
