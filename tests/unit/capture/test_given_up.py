# SPDX-License-Identifier: GPL-2.0-or-later
"""What was refused or given up is no goodput, and a finding names who gave up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from corpus import files, frames, scenarios
from rocelab import capture

V4 = scenarios.V4
STEP = 10**6
REMOTE_ACCESS, RNR = 0x62, 0x2C


def analyzed(tmp_path: Path, packets: list[bytes]) -> dict[str, Any]:
    path = tmp_path / "capture"
    path.write_bytes(files.pcap(scenarios.stamp(packets, STEP)))
    result: dict[str, Any] = capture.analyze([str(path)]).result
    return result


def sent(result: dict[str, Any]) -> tuple[int, int]:
    way = result["connections"][0]["directions"][0]
    return way["messages"], way["goodput_bytes"]


def write(psn: int) -> list[bytes]:
    """A WRITE of two packets of 1024 bytes."""
    first = scenarios.data(V4, psn, name="RC_RDMA_WRITE_FIRST", headers=frames.reth(1, 2, 2048),
                           payload=bytes(1024), ack=0)  # fmt: skip
    return [first, scenarios.data(V4, psn + 1, name="RC_RDMA_WRITE_LAST", payload=bytes(1024))]


def told(result: dict[str, Any]) -> list[tuple[bool, str]]:
    rows = result["findings"]
    return [(one["ambiguous"], one["detail"]) for one in rows if one["rule"] == "retry-exceeded"]


def test_a_refused_message(tmp_path: Path) -> None:
    refused = [scenarios.data(V4, 2), scenarios.ack(V4, 2, 1, REMOTE_ACCESS)]
    result = analyzed(tmp_path, [scenarios.data(V4, 1), scenarios.ack(V4, 1, 1), *refused])
    assert sent(result) == (1, 8)
    assert told(result) == []


def test_a_receiver_that_is_never_ready(tmp_path: Path) -> None:
    again = [scenarios.data(V4, 1), scenarios.ack(V4, 1, 0, RNR)]
    result = analyzed(tmp_path, again * 4)
    assert sent(result) == (0, 0)
    ((ambiguous, text),) = told(result)
    assert not ambiguous
    assert "sent 4 times" in text
    assert "posts no buffer" in text


def test_only_large_packets_have_no_answer(tmp_path: Path) -> None:
    small = [scenarios.data(V4, 1), scenarios.ack(V4, 1, 1)]
    result = analyzed(tmp_path, small + write(2) * 5)
    assert sent(result) == (1, 8)
    ((ambiguous, text),) = told(result)
    assert ambiguous
    assert "up to 8 bytes were acknowledged, those of 1024 never" in text


def test_progress_after_retries_is_no_end(tmp_path: Path) -> None:
    packets = write(2) * 4 + [scenarios.ack(V4, 3, 1)]
    result = analyzed(tmp_path, packets)
    assert sent(result) == (1, 2048)
    assert told(result) == []


def test_what_is_under_way_when_the_capture_ends_is_goodput(tmp_path: Path) -> None:
    small = [scenarios.data(V4, 1), scenarios.ack(V4, 1, 1)]
    assert sent(analyzed(tmp_path, small + write(2))) == (2, 8 + 2048)


def _in_vain(*nets: frames.Net) -> list[bytes]:
    """The ends of a connection, each with its own encapsulation; neither is answered."""
    each = [
        frames.frame(net, side, frames.transport("RC_SEND_ONLY", qpn, 100, b"", bytes(64)))
        for net, side, qpn in zip(nets, ("a", "b"), (0x22, 0x11), strict=True)
    ]
    return each * 8


def test_ends_with_other_gid_types(tmp_path: Path) -> None:
    v1 = frames.Net(kind="v1", a="fe80::1", b="fe80::2")
    (line, *_) = analyzed(tmp_path, _in_vain(frames.Net(), v1))["verdict"]
    assert line["cause"] == "gave_up"
    assert "fe80::2 sends in vain, too" in line["what"]
    assert "RoCE v2 over IPv4 and RoCE v1" in line["what"]
    assert "GIDs of one type" in line["advice"]


def test_two_ends_without_answers_and_one_gid_type(tmp_path: Path) -> None:
    other = frames.Net(a="10.0.0.3", b="10.0.0.4")
    (line, *_) = analyzed(tmp_path, _in_vain(frames.Net(), other))["verdict"]
    assert line["cause"] == "gave_up"
    assert "in vain" not in line["what"]
