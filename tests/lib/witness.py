# SPDX-License-Identifier: GPL-2.0-or-later
"""Verifies the frames of a RoCE v1 sender with three independent decoders."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corpus import crc
from rocelab import capture
from rocelab.testbed.node import Node

IBOE, VLAN = 0x8915, 0x8100
GRH_LEN, ICRC_LEN = 40, 4
SMALLEST = 60
"""Bytes of the smallest Ethernet frame, without its FCS."""


def frames(path: Path) -> list[bytes]:
    """Frames of a classic pcap file, as QEMU and tcpdump write it."""
    data = path.read_bytes()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    frames_in_file, at = [], 24
    while at < len(data):
        size = struct.unpack_from(order + "I", data, at + 8)[0]
        frames_in_file.append(data[at + 16 : at + 16 + size])
        at += 16 + size
    return frames_in_file


def network(frame: bytes) -> tuple[int, bytes]:
    """Ethernet type after VLAN tags, and what follows it."""
    at = 12
    while (kind := int.from_bytes(frame[at : at + 2], "big")) == VLAN:
        at += 4
    return kind, frame[at + 2 :]


def grhs(path: Path) -> list[bytes]:
    """The GRH of every RoCE v1 frame."""
    return [body[:GRH_LEN] for kind, body in map(network, frames(path)) if kind == IBOE]


def check_v1(path: Path, expected: int) -> dict[str, int]:
    """Assert that all RoCE v1 frames of a capture are complete and correct, in the expected number.

    Returns the opcodes by name, as the analyzer counts them.
    """
    v1 = [body for kind, body in map(network, frames(path)) if kind == IBOE]
    assert len(v1) == expected > 0
    for body in v1:
        _check_frame(body)
    result = capture.analyze([str(path)]).result
    assert result["roce"]["v1"] == expected
    assert (result["icrc"]["bad"], result["icrc"]["unchecked"]) == (0, 0)
    assert result["icrc"]["ok"] == result["roce"]["packets"]
    _ask_tshark(path, expected)
    opcodes: dict[str, int] = result["opcodes"]
    return opcodes


def _check_frame(body: bytes) -> None:
    """Compare a frame, from its GRH on, with the specification."""
    first, paylen, following = struct.unpack_from(">IHB", body)
    assert first >> 28 == 6
    assert following == 0x1B
    end = GRH_LEN + paylen
    assert end == len(body) or (end < len(body) and len(body) + 14 <= SMALLEST), "trailing bytes"
    transport = body[GRH_LEN : end - ICRC_LEN]
    assert body[end - ICRC_LEN : end] == crc.icrc("v1", body[:GRH_LEN], b"", transport)


def _ask_tshark(path: Path, expected: int) -> None:
    # payload is anything: protocols that guess at it would call it malformed packets of theirs
    listing = subprocess.run(
        ["tshark", "-G", "heuristic-decodes"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    guesses = [row[1] for row in (line.split("\t") for line in listing.splitlines())
               if row[0] == "infiniband.payload" and "." not in row[1]]  # fmt: skip
    argv = ["tshark", "-n", "-r", str(path)]
    for name in guesses:
        if name != "ethertype":
            argv += ["--disable-protocol", name]
    argv += ["-T", "fields", "-e", "_ws.malformed", "-e", "infiniband.bth.opcode"]
    argv += ["-Y", "eth.type == 0x8915 or vlan.etype == 0x8915"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) == expected, done.stderr
    assert [row for row in rows if row[0] or not row[1]] == []


# the file has not grown for a second: tcpdump writes each packet at once
_UNTIL_READ = """
same=0 last=
while [ $same -lt 10 ]; do
	now=$(stat -c %s "$1")
	if [ "$now" = "$last" ]; then same=$((same + 1)); else same=0; fi
	last=$now
	sleep 0.1
done
"""


@contextmanager
def sniff(node: Node, netdev: str, path: Path) -> Iterator[None]:
    """Capture an interface inside a node, by tcpdump, into the local file `path`."""
    remote = f"/tmp/sniffed-{netdev}.pcap"
    # unbuffered, and with room: a node's one CPU has other things to do
    argv = ["tcpdump", "-i", netdev, "-U", "-B", "65536", "-s", "0", "-w", remote]
    process = node.start([*argv, "udp port 4791 or ether proto 0x8915"])
    try:
        process.wait_for_line("listening on", timeout=60)
        yield
        # what it has not read yet when it is interrupted is lost, and not even counted as dropped
        node.run(["timeout", "120", "sh", "-c", _UNTIL_READ, "sh", remote], timeout=150)
        process.interrupt()
        done = process.wait(timeout=60)
        assert "\n0 packets dropped by kernel" in done.stderr, done.stderr
    finally:
        process.kill()
    node.get(remote, path)
