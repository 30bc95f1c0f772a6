# SPDX-License-Identifier: GPL-2.0-or-later
"""The fast path for runs of similar packets gives the same result as the slow path.

The fast path is off while packet rows are kept, so the two can be compared.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from corpus import CAPTURES, SAMPLES, files, frames
from rocelab import capture

MODULUS = 1 << 24
START_NS = 1_700_000_000 * 10**9


def stream(draw: random.Random) -> list[tuple[int, bytes]]:
    """Two directions of small messages, with occasional disturbances that must be noticed."""
    net = frames.Net(kind=draw.choice(["v2_ipv4", "v2_ipv4", "v2_ipv4", "v2_ipv6", "v1"]))
    if net.kind == "v2_ipv6":
        net.a, net.b = "fd00::1", "fd00::2"
    service = draw.choice(["RC", "RC", "UC"])
    psns = {"a": draw.randrange(MODULUS), "b": MODULUS - 20}
    size, now, msn = 64, START_NS, 0
    packets = []
    for _ in range(400):
        sender = "a" if draw.random() < 0.9 else "b"
        odd = draw.random() < 0.06
        what = draw.randrange(11) if odd else -1
        now += draw.choice([300, 300, 300, 40_000, 900_000]) if what != 0 else 10**9
        if what == 1:
            size = draw.choice([0, 3, 64, 256, 1024, 4096, 5000])
        if what == 2:
            psns[sender] += draw.choice([1, 7, -3, 70_000, -70_000])
        psn = psns[sender] % MODULUS
        kind = "RDMA_WRITE_ONLY" if draw.random() < 0.8 else "SEND_ONLY"
        if what == 3:
            kind = draw.choice(["SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "RDMA_WRITE_FIRST"])
        announced = size + (what == 4)
        headers = frames.reth(1 << 40, 7, announced) if kind.startswith("RDMA") else b""
        data = frames.transport(f"{service}_{kind}", 17 if sender == "a" else 18, psn, headers,
                                draw.randbytes(size), ack=draw.random() < 0.2)  # fmt: skip
        if what == 5:
            # AckReq's reserved neighbours, the reserved byte, flags, P_Key
            at = draw.choice([8, 4, 1, 3])
            data = data[:at] + bytes([data[at] ^ 1 << draw.randrange(7)]) + data[at + 1 :]
        frame = frames.frame(net, sender, data)
        if what == 6:
            at = draw.randrange(len(frame))
            frame = frame[:at] + bytes([frame[at] ^ 1 << draw.randrange(8)]) + frame[at + 1 :]
        if what == 7:
            frame = frame[: draw.randrange(40, len(frame))]
        if what == 8:
            frame += bytes(draw.randrange(1, 9))
        packets.append((now, frame))
        if what == 9:
            packets.append((now + 50, frame))
        psns[sender] += 1
        if service == "RC" and draw.random() < 0.1:
            other = "b" if sender == "a" else "a"
            msn += 1
            syndrome = draw.choice([0x1F, 0x1F, 0x1F, 0x60, 0x2C])
            answer = frames.transport("RC_ACKNOWLEDGE", 17 if other == "a" else 18,
                                      (psn - (what == 10)) % MODULUS,
                                      frames.aeth(syndrome, msn))  # fmt: skip
            packets.append((now + 900, frames.frame(net, other, answer)))
    return packets


@pytest.mark.parametrize("seed", range(60))
def test_streams(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "stream.pcap"
    path.write_bytes(files.pcap(stream(random.Random(seed))))
    check(path)


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(name: str) -> None:
    check(CAPTURES / name)


def check(path: Path) -> None:
    options = [capture.Options(threads=threads, max_findings=10_000) for threads in (1, 2)]
    kept = capture.read(str(path), options=options[0]).result
    assert kept["roce"]["packets"] > 0 or path.parent == CAPTURES
    for option in options:
        assert capture.analyze([str(path)], option).result == kept
