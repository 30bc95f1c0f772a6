# SPDX-License-Identifier: GPL-2.0-or-later
"""Captures for the benchmark of the analyzer: RC traffic, all packets distinct, ICRCs right."""

from __future__ import annotations

import itertools
import os
import struct
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "captures"))

from generator import crc, files, frames

NOISE = os.urandom(2 << 12)
REQUESTER, RESPONDER = 0x100, 0x20000
"""The QP numbers of the first queue pair."""
BEHIND = 16
"""Requests between a request and its ACK."""
MTU = 1024


@dataclass
class Wire:
    """Makes frames quickly: what packets with the same headers share is computed once."""

    net: frames.Net
    _known: dict[tuple[str, str, int, int, int], tuple[bytes, int]] = field(default_factory=dict)

    def frame(self, name: str, sender: str, dqpn: int, psn: int, headers: bytes = b"",
              payload: bytes = b"") -> bytes:  # fmt: skip
        """A frame; `payload` has a multiple of four bytes."""
        key = (name, sender, dqpn, len(headers), len(payload))
        known = self._known.get(key)
        if known is None:
            net = self.net
            ends = ("a", "b") if sender == "a" else ("b", "a")
            transport = frames.transport(name, dqpn, 0, headers, payload, ack=sender == "a")
            network, udp, _ = frames.layers(net, sender, transport)
            lead = crc.pseudo_packet(net.kind, network, udp, transport)[: -len(transport)]
            masked = transport[:4] + b"\xff" + transport[5:9]
            addresses = (net.address(end) for end in ends)
            outer = frames.ethernet(net, *addresses, network + udp)
            # the generator's own CRC is slow on purpose; zlib's gives the same (tests say so)
            known = (outer + transport[:9], zlib.crc32(masked, zlib.crc32(lead)))
            self._known[key] = known
        before, seed = known
        rest = (psn & 0xFFFFFF).to_bytes(3, "big") + headers + payload
        return before + rest + zlib.crc32(rest, seed).to_bytes(4, "little")


def noise(size: int, index: int) -> bytes:
    start = index % 4096
    return NOISE[start : start + size]


def first_psn(pair: int) -> int:
    """Like a random one: it shows which ACKs belong to which requests."""
    return pair * 2_654_435_761 >> 4 & 0xFFFFFF


def plain(wire: Wire, size: int) -> Iterator[bytes]:
    """The WRITEs of one connection."""
    headers = frames.reth(1 << 40, 7, size)
    for psn in itertools.count():
        yield wire.frame("RC_RDMA_WRITE_ONLY", "a", 18, psn, headers, noise(size, psn))


def writes_with_acks(wire: Wire, pairs: int, size: int = 64) -> Iterator[bytes]:
    """WRITEs of many queue pairs in turn, and an ACK for each."""
    headers = frames.reth(1 << 40, 7, size)
    waiting: deque[tuple[int, int, int]] = deque()
    for index in itertools.count():
        done, pair = divmod(index, pairs)
        psn = first_psn(pair) + done
        yield wire.frame(
            "RC_RDMA_WRITE_ONLY", "a", RESPONDER + pair, psn, headers, noise(size, index)
        )
        waiting.append((pair, psn, done))
        if len(waiting) > BEHIND:
            pair, psn, done = waiting.popleft()
            aeth = frames.aeth(31, (done + 1) & 0xFFFFFF)
            yield wire.frame("RC_ACKNOWLEDGE", "b", REQUESTER + pair, psn, aeth)


def _mix(wire: Wire, pair: int) -> Iterator[bytes]:
    """One queue pair: SENDs, WRITEs and READs of several sizes."""
    psn = first_psn(pair)
    to, back = RESPONDER + pair, REQUESTER + pair
    done = 0

    def answer(psn: int) -> bytes:
        return wire.frame("RC_ACKNOWLEDGE", "b", back, psn, frames.aeth(31, done & 0xFFFFFF))

    for index in itertools.count(pair):
        size = (64, 256, MTU)[index % 3]
        yield wire.frame("RC_SEND_ONLY", "a", to, psn, b"", noise(size, index))
        done += 1
        yield answer(psn)
        reth = frames.reth(1 << 40, 7, 3 * MTU + 512)
        for offset, (name, headers, length) in enumerate((
            ("FIRST", reth, MTU), ("MIDDLE", b"", MTU), ("MIDDLE", b"", MTU), ("LAST", b"", 512),
        )):  # fmt: skip
            yield wire.frame(
                f"RC_RDMA_WRITE_{name}", "a", to, psn + 1 + offset, headers, noise(length, index)
            )
        done += 1
        yield answer(psn + 4)
        reth = frames.reth(1 << 40, 7, 2 * MTU)
        yield wire.frame("RC_RDMA_READ_REQUEST", "a", to, psn + 5, reth)
        done += 1
        for offset, name in enumerate(("FIRST", "LAST")):
            aeth, data = frames.aeth(31, done & 0xFFFFFF), noise(MTU, index)
            response = f"RC_RDMA_READ_RESPONSE_{name}"
            yield wire.frame(response, "b", back, psn + 5 + offset, aeth, data)
        psn += 7


def mix(wire: Wire, pairs: int) -> Iterator[bytes]:
    """Queue pairs in turn, a packet each, with several opcodes and sizes."""
    each = [_mix(wire, pair) for pair in range(pairs)]
    for pair in itertools.cycle(each):
        yield next(pair)


V1 = frames.Net(kind="v1", a="fe80::1", b="fe80::2")
IPV6 = frames.Net(kind="v2_ipv6", a="fd00::1", b="fd00::2")
VLAN = frames.Net(vlans=[0x2007])

Traffic = Callable[[], Iterator[bytes]]
TRAFFIC: dict[str, Traffic] = {
    "one connection, 64 B": lambda: plain(Wire(frames.Net()), 64),
    "one connection, 4 KiB": lambda: plain(Wire(frames.Net()), 4096),
    "64 QPs, an ACK each": lambda: writes_with_acks(Wire(frames.Net()), 64),
    "64 QPs, IPv6": lambda: writes_with_acks(Wire(IPV6), 64),
    "64 QPs, RoCE v1": lambda: writes_with_acks(Wire(V1), 64),
    "64 QPs, VLAN": lambda: writes_with_acks(Wire(VLAN), 64),
    "64 QPs, mixed": lambda: mix(Wire(frames.Net()), 64),
    "10,000 QPs, an ACK each": lambda: writes_with_acks(Wire(frames.Net()), 10_000),
}
"""The rows of the benchmark."""


def write(path: Path, traffic: Traffic, packets: int) -> int:
    """Writes that many packets, 1 µs apart; returns the bytes of the file."""
    with path.open("wb") as file:
        file.write(files.pcap([]))
        rows = []
        for index, frame in enumerate(itertools.islice(traffic(), packets)):
            seconds, micros = divmod(index, 1_000_000)
            length = len(frame)
            head = struct.pack("<IIII", 1_700_000_000 + seconds, micros * 1000, length, length)
            rows.append(head + frame)
            if len(rows) == 4096:
                file.write(b"".join(rows))
                rows.clear()
        file.write(b"".join(rows))
    return path.stat().st_size
