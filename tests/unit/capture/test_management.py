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
    path.write_bytes(files.pcap(scenarios.stamp(packets)))
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


def reads(side: str, qpn: int, count: int) -> list[bytes]:
    return [
        frames.frame(V4, side, frames.transport("RC_RDMA_READ_REQUEST", qpn, psn, READ))
        for psn in range(100, 100 + count)
    ]


def answer(side: str, qpn: int, psn: int, msn: int) -> bytes:
    body = frames.transport(
        "RC_RDMA_READ_RESPONSE_ONLY", qpn, psn, frames.aeth(0x1F, msn), bytes(8)
    )
    return bytes(frames.frame(V4, side, body))


READ = frames.reth(0x1000, 7, 8)


def depths(tmp_path: Path, packets: list[bytes]) -> list[tuple[int, bool]]:
    result = analyzed(tmp_path, [*scenarios.connection_setup(2), *packets])
    rows = [row for row in result["findings"] if row["rule"] == "read-depth"]
    return [(row["packet"], row["ambiguous"]) for row in rows]


def test_more_reads_than_the_responder_has_resources_for(tmp_path: Path) -> None:
    answers = [answer("b", 17, 100 + at, 1 + at) for at in range(4)]
    four = reads("a", 18, 4)
    assert depths(tmp_path, [*four, *answers]) == [(8, False)]
    # no more than two at once
    in_turn = [*four[:2], answers[0], four[2], answers[1], four[3], *answers[2:]]
    assert depths(tmp_path, in_turn) == []
    # the response to the first one may have passed elsewhere
    assert depths(tmp_path, [*four[:3], *answers[1:3], four[3], answers[3]]) == [(7, True)]


def test_the_requester_has_resources_too(tmp_path: Path) -> None:
    """Its REQ says 16."""
    for count, expected in ((16, []), (17, [(21, False)])):
        answers = [answer("a", 18, 100 + at, 1 + at) for at in range(count)]
        assert depths(tmp_path, [*reads("b", 17, count), *answers]) == expected


def test_a_refused_read_says_how_many_were_outstanding(tmp_path: Path) -> None:
    nak = frames.transport("RC_ACKNOWLEDGE", 17, 102, frames.aeth(0x61, 2))
    answers = [answer("b", 17, 100 + at, 1 + at) for at in range(2)]
    result = analyzed(tmp_path, [*reads("a", 18, 5), *answers, frames.frame(V4, "b", nak)])
    (detail,) = [row["detail"] for row in result["findings"] if row["rule"] == "nak"]
    assert detail.endswith("invalid_request; up to 5 READs and atomics were outstanding: more than "
                           "the responder's resources?")  # fmt: skip


def test_unanswered_reads_say_how_many_were_outstanding(tmp_path: Path) -> None:
    five = reads("a", 18, 5)
    answers = [answer("b", 17, 100 + at, 1 + at) for at in range(5)]
    packets = [*five, *answers[:2], *five[2:], *answers[2:]]
    path = tmp_path / "capture"
    times = [(10**6 * (at > 6) + 1000 * at, packet) for at, packet in enumerate(packets)]
    path.write_bytes(files.pcap(times))
    findings = capture.analyze([str(path)]).result["findings"]
    (detail,) = [row["detail"] for row in findings if row["rule"] == "timeout"]
    assert "; up to 5 READs and atomics were outstanding" in detail


def test_max_reads_is_the_depth(tmp_path: Path) -> None:
    packets = [*reads("a", 18, 31), *(answer("b", 17, 100 + at, 1 + at) for at in range(31))]
    (connection,) = analyzed(tmp_path, packets)["connections"]
    assert [way["max_reads"] for way in connection["directions"]] == [31, 0]


def test_a_device_that_changes_migreq_is_not_named(tmp_path: Path) -> None:
    def ack(psn: int, mig: int) -> bytes:
        body = frames.transport("RC_ACKNOWLEDGE", 17, psn, frames.aeth(0x1F, psn), mig=mig)
        return bytes(frames.frame(V4, "b", body))

    def rules(*bits: int) -> list[str]:
        packets = []
        for psn, bit in enumerate(bits, 1):
            packets += [scenarios.data(V4, psn), ack(psn, bit)]
        return [row["rule"] for row in analyzed(tmp_path, packets)["findings"]]

    assert rules(1, 1, 1) == []
    assert rules(0, 0, 0) == ["migreq"]
    assert rules(0, 1, 0) == []
