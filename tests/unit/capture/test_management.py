# SPDX-License-Identifier: GPL-2.0-or-later
"""The messages of the CM, by connection."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from command_line import in_process as rocelab
from corpus import CAPTURES, files, frames, scenarios
from rocelab import capture

V4 = scenarios.V4
GSI = frames.deth(0x80010000, 1)
REJ, REP, RTU, DREQ, DREP = 0x12, 0x13, 0x14, 0x15, 0x16


def message(side: str, kind: int, body: bytes) -> bytes:
    packet = frames.transport("UD_SEND_ONLY", 1, 0, GSI, scenarios.mad(kind, body))
    return bytes(frames.frame(V4, side, packet))


def analyzed(tmp_path: Path, packets: list[bytes]) -> dict[str, Any]:
    path = tmp_path / "capture"
    path.write_bytes(files.pcap(scenarios.timed(packets)))
    result: dict[str, Any] = capture.analyze([str(path)]).result
    return result


def test_what_a_request_asks_for() -> None:
    rejected = capture.analyze([str(CAPTURES / "cm-rejected.pcap")]).result["cm"]
    assert [row["reject"]["reason"] for row in rejected] == [8, 10]
    assert [row["state"] for row in rejected] == ["rejected"] * 2
    assert rejected[0]["request"] == {
        "qpn": 17, "service_id": "0x0000000001064853", "port_space": "tcp", "port": 18515,
        "service": "RC", "path_mtu": 1024, "retries": 7, "rnr_retries": 6,
        "ack_timeout_ns": 4096 << 18, "cm_retries": 15, "responder_resources": 16,
        "initiator_depth": 8,
    }  # fmt: skip


def test_a_connection_from_request_to_disconnection(tmp_path: Path) -> None:
    ids = struct.pack(">II", 0x52, 0x51)
    back = struct.pack(">II", 0x51, 0x52)
    reply = ids + struct.pack(">IIII", 0, 18 << 8, 0, 0) + bytes([4, 2])
    packets = [scenarios.request(0x51, 7471), message("b", REP, reply), message("a", RTU, back)]
    packets += [scenarios.data(V4, 1), scenarios.ack(V4, 1, 1)]
    (row,) = analyzed(tmp_path, packets)["cm"]
    assert (row["state"], row["connection"]) == ("established", 1)
    assert row["reply"] == {"qpn": 18, "responder_resources": 4, "initiator_depth": 2}
    ended = [*packets, message("b", DREQ, ids), message("a", DREP, back)]
    (row,) = analyzed(tmp_path, ended)["cm"]
    assert (row["state"], row["disconnected_by"]) == ("disconnected", "responder")


def test_who_gives_up_rejects_its_own_request(tmp_path: Path) -> None:
    gives_up = struct.pack(">IIBBH", 0x51, 0, 2 << 6, 0, 4)
    result = analyzed(tmp_path, [scenarios.request(0x51, 7471), message("a", REJ, gives_up)])
    (finding,) = result["findings"]
    assert finding["rule"] == "cm-rejected"
    assert "the requester rejects" in finding["detail"]


def test_an_id_that_is_used_again_is_another_connection(tmp_path: Path) -> None:
    reject = struct.pack(">IIBBH", 0x60, 0x51, 0, 0, 28)
    once = [scenarios.request(0x51, 7471), message("b", REJ, reject)]
    rows = analyzed(tmp_path, once * 3)["cm"]
    assert [(row["requests"], row["state"]) for row in rows] == [(1, "rejected")] * 3


def test_inventive_peers_are_counted(tmp_path: Path) -> None:
    packets = [scenarios.request(identity, 7471) for identity in range(1, 4200)]
    result = analyzed(tmp_path, packets)
    assert (len(result["cm"]), result["cm_unreported"]) == (4096, 4199 - 4096)


def test_the_text_and_the_page_have_it(tmp_path: Path) -> None:
    sample = CAPTURES / "cm-rejected.pcap"
    text = rocelab("analyze", str(sample)).stdout
    assert "connection management" in text
    assert "tcp 18515" in text
    assert "nobody listens on this port (reason 8)" in " ".join(text.split())
    rocelab("analyze", str(sample), "--html", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert "Connection management" in page
    assert "stale connection" in page
