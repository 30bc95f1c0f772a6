# SPDX-License-Identifier: GPL-2.0-or-later
"""Layers that are not looked into are named and counted: nothing is "no RoCE" in silence."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from corpus import files, frames
from rocelab import capture

NET = frames.Net()
FRAME = frames.frame(NET, "a", frames.transport("RC_SEND_ONLY", 17, 100, b"", bytes(64), ack=1))
MACS, PACKET = FRAME[:12], FRAME[14:]


def ipv4(protocol: int, body: bytes) -> bytes:
    head = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(body), 1, 0, 64, protocol, 0, 1, 2)
    return MACS + b"\x08\0" + head + body


def analyzed(tmp_path: Path, *packets: bytes) -> dict[str, Any]:
    path = tmp_path / "capture"
    path.write_bytes(files.pcap([(1000 * at, one) for at, one in enumerate(packets)]))
    result: dict[str, Any] = capture.analyze([str(path)]).result
    return result


DEEP = FRAME
for _ in range(6):
    DEEP = MACS + b"\x89\x03\0\x40" + DEEP

LAYERS = {
    "EtherType 0x9998 not looked into; 1 of those tried hold RoCE": (
        MACS + b"\x99\x98" + bytes(6) + PACKET
    ),
    "EtherType 0x88e5 (MACsec, encrypted) not looked into": (
        MACS + b"\x88\xe5\x0c\0" + bytes(4) + b"\xa5" * 80
    ),
    "IP protocol 50 (ESP, encrypted) not looked into": ipv4(50, b"\xa5" * 80),
    "IP protocol 253 not looked into; 1 of those tried hold RoCE": ipv4(253, bytes(3) + PACKET),
    "IP protocol 115 (L2TP) not looked into": ipv4(115, b"\0\0\0\x07" + b"\xa5" * 80),
    "UDP port 4793 (Ultra Ethernet) not looked into": ipv4(
        17, struct.pack(">HHHH", 49152, 4793, 88, 0) + b"\xa5" * 80
    ),
    "more than four tunnels within each other not looked into": DEEP,
}


@pytest.mark.parametrize("says", LAYERS)
def test_a_layer_that_is_not_looked_into(says: str, tmp_path: Path) -> None:
    result = analyzed(tmp_path, LAYERS[says])
    assert result["roce"]["packets"] == 0
    row, last = result["conditions"]
    assert (row["kind"], last["kind"]) == ("not_looked_into", "no_roce")
    assert f"1 packet(s) of {says}" in row["detail"]


@pytest.mark.parametrize(
    "packet",
    [
        MACS + b"\x08\x06" + bytes(46),
        MACS + b"\x88\xcc" + bytes(46),
        MACS + b"\x00\x26\x42\x42\x03" + bytes(46),
        ipv4(6, bytes(20)),
        ipv4(17, struct.pack(">HHHH", 1, 53, 28, 0) + bytes(20)),
    ],
    ids=["arp", "lldp", "stp", "tcp", "dns"],
)
def test_what_carries_no_other_packets_is_not_named(packet: bytes, tmp_path: Path) -> None:
    assert [row["kind"] for row in analyzed(tmp_path, packet)["conditions"]] == ["no_roce"]


def test_samples_of_one_datagram_are_bounded(tmp_path: Path) -> None:
    """A datagram whose samples lie within each other costs no more than another."""
    body = struct.pack(">IIIIIII", 5, 1, 0, 0, 1, 1, 0xFFFFFFFF)
    body += struct.pack(">II", 1, 0) * 150
    datagram = struct.pack(">HHHH", 1, 6343, 8 + len(body), 0) + body
    result = analyzed(tmp_path, *[ipv4(17, datagram)] * 2000)
    assert (result["roce"]["packets"], result["input"]["packets"]) == (0, 2000)
