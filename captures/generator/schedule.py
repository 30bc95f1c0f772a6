# SPDX-License-Identifier: GPL-2.0-or-later
"""A reliable connection on a lossy wire with a tap in its middle.

        a ----- before ----- tap ----- behind ----- b

A Go-Back-N requester (a) and responder (b) exchange real packets event by event; faults are
injected on the first transmission of chosen packets, on either side of the tap. What the tap saw is
the capture, and `truth` says what a reader of it can know.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from generator import frames
from generator.files import Packet
from generator.frames import Net

HOP_NS = 2_000
GAP_NS = 400
TIMEOUT_NS = 4_000_000
RNR_CODE, RNR_NS = 12, 640_000
_MAX_EVENTS = 20_000
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


@dataclass
class Run:
    """Retransmitted packets in a row, as they passed the tap."""

    first: int
    acked: bool
    """The tap had seen all of them acknowledged."""
    last: int


@dataclass
class Truth:
    """What the tap's capture must show of direction a."""

    messages: int = 0
    goodput_bytes: int = 0
    response_messages: int = 0
    response_bytes: int = 0
    naks: int = 0
    rnr: int = 0
    retransmitted: int = 0
    nak_indices: set[int] = field(default_factory=set)
    """Packets that a NAK asked for."""
    runs: list[Run] = field(default_factory=list)
    overtaken: dict[int, bool] = field(default_factory=dict)
    """Reordered packets; whether a new packet passed the tap before the next retransmission."""


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


def _segments(kind: str, size: int, mtu: int) -> list[tuple[str, int]]:
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
    """Draw a connection of 40 to 120 packets and plant up to `faults` faults in it."""
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
    wanted = draw.randrange(40, 120)
    va = 0x7F00_0000_0000
    while len(packets) < wanted:
        kind = draw.choice(["SEND", "SEND", "RDMA_WRITE", "RDMA_WRITE", "READ"])
        size = draw.choice([0, 1, 64, mtu, mtu + 1, 3 * mtu, draw.randrange(8 * mtu)])
        if kind == "READ":
            span = max(1, -(-size // mtu))
            headers = frames.reth(va, 0x1234, size)
            name = f"{service}_RDMA_READ_REQUEST"
            packets.append(Planned(psn, name, queue + headers, b"", True, span))
            psn = (psn + span) % MODULUS
            continue
        parts = _segments(kind, size, mtu)
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


def shifted(plan: Plan, psns: int) -> Plan:
    """The same connection with all PSNs moved."""
    for packet in plan.packets:
        packet.psn = (packet.psn + psns) % MODULUS
    return plan


class Wire:
    """Runs a plan: `capture` afterwards holds what the tap saw, in order."""

    def __init__(self, plan: Plan, window: int = 12) -> None:
        self.plan = plan
        self.window = window
        self.now = START_NS
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self.order = 0
        self.capture: list[Packet] = []
        self.truth = Truth()
        # requester: indexes into plan.packets
        self.base = 0
        self.next = 0
        self.sent: set[int] = set()
        self.epoch = 0
        self.deadline = 0
        self.paused = False
        # responder
        self.expected = plan.packets[0].psn
        self.nak_sent = False
        self.msn = 0
        self.b_free = 0
        self.rnr_done: set[int] = set()
        self.acks_lost: set[int] = set()
        self.high = plan.packets[0].psn
        # tap
        self.a_free = 0
        self.passed: set[int] = set()
        self.run_goes_on = False
        self.acked = plan.packets[0].psn
        self.late: int | None = None

    # -- events ---------------------------------------------------------------------------------
    def at(self, delay: int, action: Callable[[], None]) -> None:
        self.order += 1
        heapq.heappush(self.queue, (self.now + delay, self.order, action))

    def run(self) -> list[Packet]:
        """Let it run until everything is acknowledged."""
        self.at(0, self.send)
        for _ in range(_MAX_EVENTS):
            if not self.queue:
                break
            self.now, _, action = heapq.heappop(self.queue)
            action()
        if self.base != len(self.plan.packets):
            raise RuntimeError(f"seed {self.plan.seed}: the connection hangs")
        return self.capture

    def tap(self, sender: str, transport: bytes, *, broken: bool = False) -> None:
        data = frames.frame(self.plan.net, sender, transport)
        if broken:
            middle = len(data) - 5
            data = data[:middle] + bytes([data[middle] ^ 0x40]) + data[middle + 1 :]
        self.capture.append((self.now, data))

    # -- requester ------------------------------------------------------------------------------
    def index_of(self, psn: int) -> int | None:
        for index, packet in enumerate(self.plan.packets):
            if (psn - packet.psn) % MODULUS < packet.span:
                return index
        return None

    def send(self) -> None:
        if self.paused or self.next >= len(self.plan.packets):
            return
        if self.next - self.base >= self.window:
            return
        index = self.next
        self.next += 1
        first = index not in self.sent
        self.sent.add(index)
        self.arm()
        self.transmit(index, self.plan.faults.get(index) if first else None)
        epoch = self.epoch
        self.at(GAP_NS, lambda: self.send() if epoch == self.epoch else None)

    def transmit(self, index: int, fault: str | None) -> None:
        # what is delayed delays what follows
        delay = max(HOP_NS, self.a_free - self.now)
        if fault == "drop_before":
            return
        if fault in DELAYS:
            delay += DELAYS[fault]
            self.a_free = self.now + delay
        if fault == "reorder":
            delay += int(GAP_NS * 1.5)
        if fault == "duplicate":
            self.at(delay, lambda: self.pass_tap(index, fault=None))
            delay += 20
        self.at(delay, lambda: self.pass_tap(index, fault))

    def pass_tap(self, index: int, fault: str | None) -> None:
        packet = self.plan.packets[index]
        wire = frames.transport(
            packet.name, self.plan.qpn_b, packet.psn, packet.headers, packet.payload, ack=packet.ack
        )
        if "READ" not in packet.name:
            # by the definition in docs/formats/analysis.md
            passed = (packet.psn - self.high) % MODULUS >= MODULUS // 2
            if fault not in ("corrupt", "duplicate", "reorder"):
                self.truth.retransmitted += passed
        if fault != "corrupt" and (packet.psn - self.high) % MODULUS < MODULUS // 2:
            self.high = (packet.psn + packet.span) % MODULUS
        self.note_passed(index, fault)
        self.tap("a", wire, broken=fault == "corrupt")
        if fault in ("corrupt", "drop_behind"):
            return
        self.at(HOP_NS, lambda: self.receive(index))

    def note_passed(self, index: int, fault: str | None) -> None:
        """What a reader of the capture can know about this packet."""
        if fault == "corrupt":
            return
        packet = self.plan.packets[index]
        new = all(index > other for other in self.passed)
        if self.late is not None and index != self.late:
            self.truth.overtaken[self.late] = new
            self.late = None
        if new:
            self.run_goes_on = False
        elif fault == "reorder":
            self.late = index
            self.truth.overtaken[index] = False
        else:
            runs = self.truth.runs
            acked = (packet.psn - self.acked) % MODULUS >= MODULUS // 2
            if self.run_goes_on and runs and runs[-1].last + 1 == index:
                runs[-1].last = index
                runs[-1].acked &= acked
            else:
                runs.append(Run(index, acked, index))
            self.run_goes_on = True
        self.passed.add(index)

    def note_acked(self, psn: int) -> None:
        """The tap sees everything up to and with `psn` acknowledged."""
        if (psn + 1 - self.acked) % MODULUS < MODULUS // 2:
            self.acked = (psn + 1) % MODULUS

    def arm(self) -> None:
        self.deadline = self.now + TIMEOUT_NS
        deadline = self.deadline
        self.at(TIMEOUT_NS, lambda: self.expire(deadline))

    def expire(self, deadline: int) -> None:
        if deadline == self.deadline and self.base < len(self.plan.packets) and not self.paused:
            self.go_back(self.base)

    def go_back(self, index: int) -> None:
        self.base = index
        self.next = index
        self.epoch += 1
        self.arm()
        self.send()

    def advance(self, psn: int) -> None:
        """All packets up to and with `psn` are acknowledged."""
        moved = False
        while self.base < len(self.plan.packets):
            packet = self.plan.packets[self.base]
            last = (packet.psn + packet.span - 1) % MODULUS
            if (psn - last) % MODULUS >= MODULUS // 2:
                break
            self.base += 1
            self.next = max(self.next, self.base)
            moved = True
        if moved:
            self.arm()
            self.epoch += 1
            self.send()

    def answered(self, psn: int, syndrome: int) -> None:
        kind = syndrome >> 5
        if kind == 0:
            self.advance(psn)
            return
        self.advance((psn - 1) % MODULUS)
        index = self.index_of(psn)
        if index is None or index < self.base:
            return
        if kind == 1:
            self.paused = True
            self.epoch += 1

            def resume() -> None:
                self.paused = False
                self.go_back(index)

            self.at(RNR_NS + 10_000, resume)
        else:
            self.go_back(index)

    # -- responder ------------------------------------------------------------------------------
    def receive(self, index: int) -> None:
        packet = self.plan.packets[index]
        ahead = (packet.psn - self.expected) % MODULUS
        if ahead >= MODULUS // 2:
            if "READ" in packet.name:
                self.read(packet)
            elif packet.ack:
                self.answer((self.expected - 1) % MODULUS, 0x1F, index)
            return
        if ahead:
            if not self.nak_sent:
                self.nak_sent = True
                self.answer(self.expected, 0x60, index)
            return
        if self.plan.faults.get(index) == "rnr" and index not in self.rnr_done:
            self.rnr_done.add(index)
            # what follows is dropped silently until the packet is retransmitted
            self.nak_sent = True
            self.answer(packet.psn, 0x20 | RNR_CODE, index)
            return
        self.nak_sent = False
        self.expected = (packet.psn + packet.span) % MODULUS
        if "FIRST" in packet.name or "MIDDLE" in packet.name:
            self.truth.goodput_bytes += len(packet.payload)
            if packet.ack:
                self.answer(packet.psn, 0x1F, index)
            return
        self.msn = (self.msn + 1) % MODULUS
        if "READ" in packet.name:
            size = int.from_bytes(packet.headers[-4:], "big")
            self.truth.response_messages += 1
            self.truth.response_bytes += size
            self.read(packet)
            return
        self.truth.messages += 1
        self.truth.goodput_bytes += len(packet.payload)
        if packet.ack:
            self.answer(packet.psn, 0x1F, index)

    def read(self, packet: Planned) -> None:
        size = int.from_bytes(packet.headers[-4:], "big")
        parts = _segments("RDMA_READ_RESPONSE", size, self.plan.mtu)
        for offset, (name, part) in enumerate(parts):
            psn = (packet.psn + offset) % MODULUS
            headers = b"" if "MIDDLE" in name else frames.aeth(0x1F, self.msn)
            wire = frames.transport(
                f"{self.plan.service}_{name}", self.plan.qpn_a, psn, headers, b"\x33" * part
            )
            last = offset == len(parts) - 1
            self.at(self.queued(), lambda w=wire, p=psn, e=last: self.respond(w, p, e))

    def queued(self) -> int:
        """The delay to the tap of b's next packet: they leave one after the other."""
        self.b_free = max(self.b_free + 10, self.now)
        return HOP_NS + self.b_free - self.now

    def respond(self, wire: bytes, psn: int, last: bool) -> None:
        self.tap("b", wire)
        self.note_acked(psn)
        if last:
            self.at(HOP_NS, lambda: self.advance(psn))

    def answer(self, psn: int, syndrome: int, index: int) -> None:
        headers = frames.aeth(syndrome, self.msn)
        wire = frames.transport(f"{self.plan.service}_ACKNOWLEDGE", self.plan.qpn_a, psn, headers)
        fault = None
        if syndrome == 0x1F and index not in self.acks_lost:
            fault = self.plan.faults.get(index)
            if fault in ("ack_lost_before", "ack_lost_behind"):
                self.acks_lost.add(index)
        if fault == "ack_lost_before":
            return
        lost = fault == "ack_lost_behind"
        self.at(self.queued(), lambda: self.ack_at_tap(wire, psn, syndrome, lost=lost))

    def ack_at_tap(self, wire: bytes, psn: int, syndrome: int, *, lost: bool) -> None:
        self.tap("b", wire)
        self.note_acked(psn if syndrome >> 5 == 0 else (psn - 1) % MODULUS)
        if syndrome >> 5 == 3 and (index := self.index_of(psn)) is not None:
            self.truth.nak_indices.add(index)
        self.truth.naks += syndrome >> 5 == 3
        self.truth.rnr += syndrome >> 5 == 1
        if not lost:
            self.at(HOP_NS, lambda: self.answered(psn, syndrome))
