# SPDX-License-Identifier: GPL-2.0-or-later
"""Several looks at each packet: by the interfaces of `tcpdump -i any`, or by mirrored ports."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from generator.tunnels import wrap

from corpus import files, frames
from rocelab import capture

NET = frames.Net()
MESSAGES = 60
OUTGOING = 4
Look = tuple[int, int, bytes]
"""Time, interface, frame."""


def messages(count: int, *, again: int = -1) -> list[tuple[int, bytes]]:
    """SENDs and their ACKs; the one of number `again` is lost behind the tap, and sent again."""
    packets, time = [], 0
    for number in range(count):
        psn = 100 + number
        send = frames.transport("RC_SEND_ONLY", 18, psn, b"", bytes(64), ack=1)
        ack = frames.transport("RC_ACKNOWLEDGE", 17, psn, frames.aeth(0x1F, number + 1))
        if number == again:
            packets.append((time, frames.frame(NET, "a", send)))
            time += 4_000_000_000
        packets.append((time, frames.frame(NET, "a", send)))
        packets.append((time + 10_000, frames.frame(NET, "b", ack)))
        time += 100_000
    return packets


def looks(packets: list[tuple[int, bytes]], interfaces: int) -> list[Look]:
    return sorted(
        (time + 1000 * interface, interface, data)
        for time, data in packets
        for interface in range(interfaces)
    )


def sll2(seen: list[Look]) -> bytes:
    def cooked(interface: int, data: bytes) -> bytes:
        header = struct.pack(">HHIHBB8s", 0x0800, 0, 3 + interface, 1, OUTGOING, 6, bytes(8))
        return header + data[14:]

    packets = [(time, cooked(interface, data)) for time, interface, data in seen]
    return bytes(files.pcap(packets, link=files.SLL2))


def pcapng(seen: list[Look]) -> bytes:
    interfaces = [files.interface() for _ in {interface for _, interface, _ in seen}]
    packets = [files.packet_block(time, data, number=interface) for time, interface, data in seen]
    return b"".join([files.section(), *interfaces, *packets])


def ethernet(seen: list[Look]) -> bytes:
    return bytes(files.pcap([(time, data) for time, _, data in seen]))


def analyzed(tmp_path: Path, data: bytes) -> dict[str, Any]:
    path = tmp_path / "capture"
    path.write_bytes(data)
    result: dict[str, Any] = capture.analyze([str(path)]).result
    return result


def judged(result: dict[str, Any]) -> tuple[Any, ...]:
    """All that must not depend on the number of looks."""
    findings = [(row["rule"], row["count"], row["ambiguous"]) for row in result["findings"]]
    rows = [
        (row["packets"], row["messages"], row["goodput_bytes"], row["latency_ns"])
        for connection in result["connections"]
        for row in connection["directions"]
    ]
    return findings, rows


@pytest.mark.parametrize("again", [-1, 7])
@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("write", [sll2, pcapng])
def test_interfaces_see_one_packet(tmp_path: Path, write: Any, count: int, again: int) -> None:
    """Few messages suffice, since the capture names the interfaces."""
    packets = messages(10, again=again)
    once = analyzed(tmp_path, write(looks(packets, 1)))
    result = analyzed(tmp_path, write(looks(packets, count)))
    assert judged(result) == judged(once)
    assert len(judged(once)[0]) == (again >= 0)
    (condition,) = result["conditions"]
    assert condition["kind"] == "several_interfaces"
    assert f"{(count - 1) * len(packets)} packets" in condition["detail"]
    assert once["conditions"] == []


@pytest.mark.parametrize(("count", "says"), [(2, "twice"), (3, "up to 3 times")])
def test_one_interface_sees_packets_often(tmp_path: Path, count: int, says: str) -> None:
    packets = messages(MESSAGES, again=7)
    result = analyzed(tmp_path, ethernet(looks(packets, count)))
    assert judged(result) == judged(analyzed(tmp_path, ethernet(looks(packets, 1))))
    (condition,) = result["conditions"]
    assert condition["kind"] == "mirrored"
    assert says in condition["detail"]


def test_each_tunnel_is_judged_for_itself(tmp_path: Path) -> None:
    """The packets outside the tunnel appear three times, those in it once."""
    packets = messages(MESSAGES)
    inside = [(time + 5000, 9, wrap("vxlan", data, 42)) for time, data in packets]
    result = analyzed(tmp_path, ethernet(sorted(looks(packets, 3) + inside)))
    assert result["findings"] == []
    assert [len(row["directions"]) for row in result["connections"]] == [2, 2]
    assert [row["kind"] for row in result["conditions"]] == ["mirrored"]


def test_a_tunnel_and_its_device_are_one_connection(tmp_path: Path) -> None:
    packets = messages(10)
    inside = [(time + 5000, 9, wrap("vxlan", data, 42)) for time, data in packets]
    result = analyzed(tmp_path, sll2(sorted(looks(packets, 2) + inside)))
    assert judged(result) == judged(analyzed(tmp_path, sll2(looks(packets, 1))))


def test_what_is_sent_again_at_once_is_no_copy(tmp_path: Path) -> None:
    """A NAK comes back within microseconds: the interface sees the packet a second time."""
    first, *rest = messages(3)
    lost = frames.transport("RC_ACKNOWLEDGE", 17, 100, frames.aeth(0x60, 0))
    packets = [first, (2000, frames.frame(NET, "b", lost)), (9000, first[1]), *rest]
    once = analyzed(tmp_path, sll2(looks(packets, 1)))
    assert judged(analyzed(tmp_path, sll2(looks(packets, 2)))) == judged(once)
    assert [row["rule"] for row in once["findings"]] != []
