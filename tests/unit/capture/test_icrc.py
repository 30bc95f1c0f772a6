# SPDX-License-Identifier: GPL-2.0-or-later
"""The ICRC against scapy's (v2) and the generator's, and the diagnosis of a wrong one."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from corpus import CAPTURES, files, frames
from rocelab import capture

Net = frames.Net


def verdict(path: Path, packets: list[bytes]) -> dict[str, int]:
    path.write_bytes(files.pcap((index, data) for index, data in enumerate(packets)))
    icrc: dict[str, int] = capture.analyze([str(path)]).result["icrc"]
    return icrc


@pytest.mark.slow
def test_scapy_agrees_on_random_v2_packets(tmp_path: Path) -> None:
    from scapy.contrib.roce import BTH
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether
    from scapy.packet import Raw

    draw = random.Random(4791)
    packets = []
    for _ in range(200):
        # sizes below and above the one where the core splits its input
        payload = draw.randbytes(4 * draw.choice([0, 1, 15, 16, 60, 61, 63, 64, 65, 256, 1024]))
        packet = (
            Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01")
            / IP(src="10.0.0.1", dst="10.0.0.2", tos=draw.randrange(256), ttl=draw.randrange(256))
            / UDP(sport=draw.randrange(65536), dport=4791)
            / BTH(opcode=0x04, psn=draw.randrange(1 << 24), dqpn=draw.randrange(1 << 24))
            / Raw(payload)
        )
        packets.append(bytes(packet))
    counts = verdict(tmp_path / "scapy.pcap", packets)
    assert (counts["ok"], counts["bad"]) == (200, 0)


@pytest.mark.parametrize("kind", ["v1", "v2_ipv4", "v2_ipv6"])
def test_generator_agrees(kind: str, tmp_path: Path) -> None:
    draw = random.Random(kind)
    packets = []
    for _ in range(200):
        net = Net(kind=kind, tclass=draw.randrange(256), ttl=draw.randrange(256))
        if kind == "v2_ipv6":
            net.a, net.b = "fd00::1", "fd00::2"
        payload = draw.randbytes(draw.randrange(1200))
        wire = frames.transport("RC_SEND_ONLY", 17, draw.randrange(1 << 24), b"", payload)
        packets.append(frames.frame(net, "a", wire))
    counts = verdict(tmp_path / "generated.pcap", packets)
    assert (counts["ok"], counts["bad"]) == (200, 0)


@pytest.mark.parametrize("kind", ["v1", "v2_ipv4", "v2_ipv6"])
def test_every_flipped_bit_is_detected_or_masked(kind: str, tmp_path: Path) -> None:
    """A flipped bit is masked exactly where routers may change it, and detected elsewhere."""
    net = Net(kind=kind)
    if kind == "v2_ipv6":
        net.a, net.b = "fd00::1", "fd00::2"
    wire = frames.transport("RC_SEND_ONLY", 17, 1, b"", b"payload")
    good = frames.frame(net, "a", wire)
    bth = len(good) - 4 - len(wire)
    masked = {
        "v1": {15, 16, 17, 21}, "v2_ipv4": {15, 22, 24, 25, 40, 41},
        "v2_ipv6": {15, 16, 17, 21, 60, 61},
    }[kind] | {bth + 4}  # fmt: skip
    # these fields decide whether and where there is an ICRC
    shape = {"v1": {14, 18, 19, 20}, "v2_ipv4": {14, 16, 17, 20, 21, 23, 36, 37, 38, 39},
             "v2_ipv6": {14, 18, 19, 20, 56, 57, 58, 59}}[kind]  # fmt: skip
    shape |= {bth, bth + 1}
    for at in range(14, len(good)):
        if at in shape:
            continue
        flipped = [good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1 :] for bit in range(8)]
        counts = verdict(tmp_path / "flip.pcap", flipped)
        right = 8 if at in masked else 0
        assert counts["ok"] == right, f"byte {at}"


@pytest.mark.parametrize(
    ("name", "diagnosis"),
    [
        ("zero", "zero"), ("byte-order", "byte_order"), ("dscp", "dscp_ecn_included"),
        ("ttl", "ttl_included"), ("ip-checksum", "ip_checksum_included"),
        ("udp-checksum", "udp_checksum_included"), ("lrh", "lrh_missing"), ("pad", "pad_excluded"),
        ("nothing-masked", "nothing_masked"), ("hop-limit", "ttl_included"),
        ("corrupted", "corrupted"),
    ],
)  # fmt: skip
def test_diagnosis(name: str, diagnosis: str) -> None:
    golden = json.loads((CAPTURES / "golden" / f"icrc-{name}.pcap.json").read_text())
    assert [row["diagnosis"] for row in golden["icrc"]["bad_packets"]] == [diagnosis]
    now = capture.analyze([str(CAPTURES / f"icrc-{name}.pcap")]).result["icrc"]
    assert [row["diagnosis"] for row in now["bad_packets"]] == [diagnosis]


def test_diagnosis_shows_the_bytes_on_the_wire() -> None:
    """`expected` and `found` have the bytes in the order on the wire, as Wireshark prints them."""
    path = CAPTURES / "icrc-byte-order.pcap"
    row = capture.analyze([str(path)]).result["icrc"]["bad_packets"][0]
    stored = path.read_bytes()[-4:]
    assert row["found"] == f"0x{int.from_bytes(stored, 'big'):08x}"
    assert row["expected"] == f"0x{int.from_bytes(stored, 'little'):08x}"
    assert row["packet"] == 1
