# SPDX-License-Identifier: GPL-2.0-or-later
"""Two simulated drivers with a tap between them: a capture, two traces, and the truth about them.

        n1 driver → device ──── tap ──── device → n2 driver

A driver sends each packet once. Each fate below is recorded when it happens, so the truth does not
depend on any matching. All three clocks differ.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field
from pathlib import Path

from corpus import crc, files, frames
from rocelab import stage_table

FATES = (
    "queue_drop",  # before the device: the record has no xmit_ns
    "link_drop",  # between device and tap
    "far_drop",  # after the tap, no trace of it at the receiver
    "refused",  # the receiver's driver drops it on arrival, and says so
    "copied",  # twice on the wire, the second copy lost after the tap
    "damaged",  # payload changed before the tap; the receiver's driver drops it
    "tx_lost",  # rxedump lost the sender's record
    "rx_lost",  # rxedump lost the receiver's record
)
QPN = {"a": 17, "b": 18}
NODE = {"a": "n1", "b": "n2"}
_CLOCKS = {"tap": 0, "a": 3_600 * 10**9, "b": -77 * 10**9 + 12_345}
_START = 1_700_000_000 * 10**9


@dataclass
class Written:
    """A file in the making; what is put into it gets the next frame number."""

    packets: list[tuple[int, bytes, str]] = field(default_factory=list)

    def put(self, time: int, data: bytes, comment: str = "") -> int:
        self.packets.append((time, data, comment))
        return len(self.packets)


@dataclass
class Lab:
    """Send packets, then `write`. `truth` maps frame numbers to what the join has to say."""

    seed: int
    kind: str = "v2_ipv4"
    now: int = _START

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.tap, self.trace = Written(), {"a": Written(), "b": Written()}
        self.frames: dict[int, tuple[int | None, str, int | None, str]] = {}
        """Frame → (record of the sender, sent, record of the receiver, received)."""
        self.alone: dict[tuple[str, int], str] = {}
        """(node, record) → why it has no frame."""
        self.lost = {"a": 0, "b": 0}
        self.ids = 100
        address = {"a": "10.0.0.1", "b": "10.0.0.2"}
        if self.kind == "v2_ipv6":
            address = {"a": "fd00::1", "b": "fd00::2"}
        self.net = frames.Net(self.kind, **address)

    def bytes_of(self, side: str, name: str, psn: int, size: int) -> bytes:
        """Build a packet as the driver does; each IPv4 packet has a new identification."""
        headers = {"RC_RDMA_WRITE_ONLY": frames.reth(0x1000, 7, size), "RC_ACKNOWLEDGE": b"\0" * 4}
        to = "b" if side == "a" else "a"
        body = frames.transport(
            name, QPN[to], psn, headers.get(name, b""), bytes([psn & 255]) * size
        )
        whole: bytes = frames.frame(self.net, side, body)
        if self.kind != "v2_ipv4":
            return whole
        self.ids += 1
        network = bytearray(whole[14:34])
        network[4:6] = struct.pack(">H", self.ids & 0xFFFF)
        network[10:12] = b"\0\0"
        network[10:12] = struct.pack(">H", frames.checksum(bytes(network)))
        udp, rest = whole[34:42], whole[42:-4]
        right: bytes = crc.icrc(self.kind, bytes(network), udp, rest)
        return whole[:14] + bytes(network) + udp + rest + right

    def comment(
        self, side: str, way: str, name: str, psn: int, stages: tuple[str, ...], more: str = ""
    ) -> str:
        to = QPN["b" if side == "a" else "a"] if way == "tx" else QPN[side]
        times = "".join(f" {stage}_ns={self.dice.randrange(1, 9999)}" for stage in stages)
        return (
            f"rocelab/1 node={NODE[side]} dev=rxe0 dir={way} net=v2 op={name} qpn={QPN[side]} "
            f"dqpn={to} psn={psn}{times}{more}"
        )

    def send(self, side: str, name: str, psn: int, fate: str = "", size: int = 0) -> None:
        """One packet from driver to driver."""
        far = "b" if side == "a" else "a"
        data = self.bytes_of(side, name, psn, size)
        self.now += self.dice.randrange(500, 5_000)
        answer = name == "RC_ACKNOWLEDGE"
        stages = tuple(s for s in stage_table.TX if not (answer and s == "wqe"))
        if fate == "queue_drop":
            stages = stages[:-1]
        record: int | None = None
        if fate == "tx_lost":
            self.lost[side] += 1
        else:
            text = self.comment(side, "tx", name, psn, stages)
            record = self.trace[side].put(self.now + _CLOCKS[side], data, text)
        if fate in {"queue_drop", "link_drop"}:
            why = "before_device" if fate == "queue_drop" else "before_capture"
            self.alone[NODE[side], record or 0] = why
            return
        self.now += self.dice.randrange(100, 900)
        seen = data
        if fate == "damaged":
            # a byte of the payload, far from what names the packet
            seen = data[:-6] + bytes([data[-6] ^ 0x55]) + data[-5:]
        frame = self.tap.put(self.now, seen)
        sent = "record_lost" if fate == "tx_lost" else "matched"
        self.now += self.dice.randrange(100, 900)
        if fate == "copied" and self.kind != "v2_ipv4":
            raise ValueError("nothing tells copies apart there")
        if fate == "copied":
            copy = self.tap.put(self.now, seen)
            self.frames[copy] = (None, "copy", None, "ambiguous")
        arrived: int | None = None
        received = {
            "far_drop": "behind_capture",
            "damaged": "damaged",
            "rx_lost": "lost_or_record_lost",
            "refused": "dropped",
            "copied": "ambiguous",
        }.get(fate, "matched")
        if fate == "rx_lost":
            self.lost[far] += 1
        elif fate == "refused":
            text = (
                f"rocelab/1 node={NODE[far]} dev=rxe0 dir=rx net=v2 op={name} dqpn={QPN[far]} "
                f"psn={psn} drop=qp_state"
            )
            arrived = self.trace[far].put(self.now + _CLOCKS[far], data, text)
        elif fate not in {"far_drop", "damaged"}:
            text = self.comment(far, "rx", name, psn, stage_table.DELIVERING)
            at = self.trace[far].put(self.now + _CLOCKS[far], data, text)
            if fate == "copied":
                self.alone[NODE[far], at] = "ambiguous"
            else:
                arrived = at
        self.frames[frame] = (record, sent, arrived, received)

    def write(self, folder: Path) -> tuple[Path, list[Path]]:
        """Write wire.pcap, n1.pcapng and n2.pcapng."""
        wire = folder / "wire.pcap"
        wire.write_bytes(files.pcap([(time, data) for time, data, _ in self.tap.packets]))
        traces = []
        for side, trace in self.trace.items():
            blocks = [files.section(), files.interface()]
            blocks += [files.packet_block(t, d, comment=text) for t, d, text in trace.packets]
            blocks.append(statistics(self.lost[side]))
            path = folder / f"{NODE[side]}.pcapng"
            path.write_bytes(b"".join(blocks))
            traces.append(path)
        return wire, traces


def statistics(lost: int, order: str = "<") -> bytes:
    """An interface statistics block with isb_osdrop."""
    dropped: bytes = files.option(7, struct.pack(order + "Q", lost), order)
    end: bytes = files.option(0, b"", order)
    head = struct.pack(order + "III", 0, 0, 0)
    block: bytes = files.block(5, head + dropped + end, order)
    return block


def schedule(seed: int, *, messages: int = 60, faults: float = 0.3) -> Lab:
    """WRITEs and their ACKs, some of which meet a fate; what is lost is sent again."""
    lab = Lab(seed)
    psn = lab.dice.randrange(1 << 24)
    # a wrap of the PSN is always within reach
    if lab.dice.random() < 0.3:
        psn = (1 << 24) - messages // 2
    for _ in range(messages):
        size = lab.dice.choice((4, 64, 1024))
        for side, name in (("a", "RC_RDMA_WRITE_ONLY"), ("b", "RC_ACKNOWLEDGE")):
            payload = size if side == "a" else 0
            for _ in range(3):
                fate = lab.dice.choice(FATES) if lab.dice.random() < faults else ""
                if fate == "damaged" and not payload:
                    fate = ""  # an ACK has no payload to damage
                lab.send(side, name, psn, fate, payload)
                if fate not in {"queue_drop", "link_drop", "far_drop", "damaged", "refused"}:
                    break
        psn = (psn + 1) % (1 << 24)
    return lab
