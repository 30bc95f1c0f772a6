# SPDX-License-Identifier: GPL-2.0-or-later
"""Where every ICRC is wrong, connections are followed, and it is said what all have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import in_process as rocelab
from corpus import crc, files, frames, scenarios
from rocelab import capture

NET = frames.Net()
PACKETS = 40


def stream(change: Callable[[bytes], bytes], *, keep: int = 0) -> list[tuple[int, bytes]]:
    """SENDs and their ACKs, of which all but `keep` have changed ICRCs."""
    packets = []
    for number in range(PACKETS // 2):
        psn = 100 + number
        data = bytes((psn * at) & 0xFF for at in range(64))
        send = frames.transport("RC_SEND_ONLY", 18, psn, b"", data, ack=1)
        ack = frames.transport("RC_ACKNOWLEDGE", 17, psn, frames.aeth(0x1F, number + 1))
        packets += [frames.frame(NET, "a", send), frames.frame(NET, "b", ack)]
    changed = [one if at < keep else change(one) for at, one in enumerate(packets)]
    return [(1000 * at, one) for at, one in enumerate(changed)]


def constant(frame: bytes) -> bytes:
    return frame[:-4] + b"\xef\xbe\xad\xde"


def other_seed(frame: bytes) -> bytes:
    """Inverted: what another number at the end, or at the beginning, looks like."""
    return frame[:-4] + bytes(byte ^ 0xFF for byte in frame[-4:])


def other_algorithm(frame: bytes) -> bytes:
    return frame[:-4] + bytes((byte * 7 + 3) & 0xFF for byte in frame[-4:])


def analyzed(tmp_path: Path, packets: list[tuple[int, bytes]], **options: Any) -> dict[str, Any]:
    path = tmp_path / "capture"
    path.write_bytes(files.pcap(packets))
    result: dict[str, Any] = capture.analyze([str(path)], capture.Options(**options)).result
    return result


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (constant, "each is 0xefbeadde, a constant"),
        (other_seed, "another seed"),
        (other_algorithm, "nothing in common"),
    ],
)
def test_connections_are_followed(
    change: Callable[[bytes], bytes], says: str, tmp_path: Path
) -> None:
    result = analyzed(tmp_path, stream(change))
    assert result["icrc"]["diagnoses"] == {"corrupted": PACKETS}
    (row,) = result["conditions"]
    assert row["kind"] == "icrcs_all_wrong"
    assert says in row["detail"]
    (connection,) = result["connections"]
    directions = connection["directions"]
    assert [row["goodput_bytes"] for row in directions] == [64 * PACKETS // 2, 0]
    assert directions[0]["latency_ns"]["count"] == PACKETS // 2
    assert {row["rule"] for row in result["findings"]} == {"icrc-bad"}


def test_one_right_icrc_makes_the_others_corrupted(tmp_path: Path) -> None:
    result = analyzed(tmp_path, stream(constant, keep=1))
    assert result["conditions"] == []
    assert result["icrc"]["bad"] == PACKETS - 1


def test_diagnoses_count_what_no_list_has(tmp_path: Path) -> None:
    result = analyzed(tmp_path, stream(constant), max_findings=2)
    assert len(result["icrc"]["bad_packets"]) == 2
    assert result["icrc"]["diagnoses"] == {"corrupted": PACKETS}
    path = tmp_path / "capture"
    done = rocelab("analyze", str(path), "--max-findings", "2")
    assert f"0 right, {PACKETS} wrong, 0 not checked ({PACKETS} corrupted)" in done.stdout


def test_a_responder_that_answers_to_the_source_port_is_named(tmp_path: Path) -> None:
    """Its ACKs go to another port than 4791, and their ICRCs are as wrong as the requests'."""
    packets = [
        (time, one if at % 2 == 0 else one[:36] + (50000).to_bytes(2, "big") + one[38:])
        for at, (time, one) in enumerate(stream(constant))
    ]
    result = analyzed(tmp_path, packets)
    assert [row["kind"] for row in result["conditions"]] == ["icrcs_all_wrong", "other_port"]
    assert "--port 50000" in result["conditions"][1]["detail"]
    (connection,) = analyzed(tmp_path, packets, ports=[50000])["connections"]
    assert len(connection["directions"]) == 2


@pytest.mark.parametrize("side", [0, 1])
def test_a_sender_whose_every_icrc_is_wrong_is_followed(side: int, tmp_path: Path) -> None:
    """Its first packets may be corrupted, with a wrong queue pair; the later ones are not."""
    packets = stream(lambda frame: frame)
    packets = [
        (time, constant(one) if at % 2 == side else one) for at, (time, one) in enumerate(packets)
    ]
    result = analyzed(tmp_path, packets)
    assert "icrcs_all_wrong" not in {row["kind"] for row in result["conditions"]}
    assert {row["rule"] for row in result["findings"]} == {"icrc-bad"}
    assert result["icrc"]["ok"] == PACKETS // 2
    (connection,) = result["connections"]
    assert len(connection["directions"]) == 2


def test_the_copy_follows_them(tmp_path: Path) -> None:
    path, copy = tmp_path / "capture", tmp_path / "copy.pcapng"
    path.write_bytes(files.pcap(stream(constant)))
    assert rocelab("annotate", str(path), "-o", str(copy)).returncode == 0
    data = copy.read_bytes()
    assert data.count(b"psn_status=answer") == PACKETS // 2
    assert b"psn_status=corrupt" not in data


SOURCE, LENGTH, DESTINATION_PORT = 14 + 12, 14 + 2, 14 + 20 + 2


@pytest.mark.parametrize(
    ("at", "before", "says"),
    [
        (SOURCE, bytes([192, 168, 7, 9]), "the source address was 192.168.7.9"),
        (LENGTH, bytes(2), "the IP length was 0"),
        (DESTINATION_PORT, bytes([0x30, 0x39]), "the UDP destination port was 12345"),
    ],
)
def test_the_field_that_was_changed(tmp_path: Path, at: int, before: bytes, says: str) -> None:
    """Made over the field as it was; packets of several lengths agree on it."""

    def made_before(whole: bytes) -> bytes:
        then = whole[:at] + before + whole[at + len(before) :]
        right = crc.icrc(NET.kind, then[14:34], then[34:42], then[42:-4])
        return whole[:-4] + right

    packets = [made_before(one) for one in scenarios.conversation(NET)]
    result = analyzed(tmp_path, [(1000 * at, one) for at, one in enumerate(packets)])
    detail = result["conditions"][0]["detail"]
    assert f"from 10.0.0.1 to 10.0.0.2 {says}" in detail
    assert f"from 10.0.0.2 to 10.0.0.1 {says}" in detail
