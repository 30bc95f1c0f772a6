# SPDX-License-Identifier: GPL-2.0-or-later
"""Captures of packets that have no ICRC are judged by what they have."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import in_process as rocelab
from corpus import CAPTURES, files, scenarios
from rocelab import capture

ETHERNET, UDP = 14, 14 + 20


def left_out(frame: bytes) -> bytes:
    """Without the ICRC; IP and UDP do not count it."""
    ip, udp = (struct.unpack_from(">H", frame, at)[0] for at in (ETHERNET + 2, UDP + 4))
    data = bytearray(frame[:-4])
    struct.pack_into(">H", data, ETHERNET + 2, ip - 4)
    struct.pack_into(">H", data, UDP + 4, udp - 4)
    return bytes(data)


def counted(frame: bytes) -> bytes:
    return frame[:-4]


def write(path: Path, packets: list[bytes]) -> str:
    path.write_bytes(files.pcap(scenarios.stamp(packets)))
    return str(path)


def judged(result: dict[str, Any]) -> tuple[Any, ...]:
    rows = [
        (row["messages"], row["goodput_bytes"], row["payload_bytes"], row["latency_ns"])
        for connection in result["connections"]
        for row in connection["directions"]
    ]
    return result["findings"], result["opcodes"], rows


@pytest.mark.parametrize("icrc", [True, False])
@pytest.mark.parametrize(("change", "says"), [(left_out, "leave"), (counted, "end before")])
def test_nothing_else_is_wrong(
    tmp_path: Path, change: Callable[[bytes], bytes], says: str, *, icrc: bool
) -> None:
    packets = scenarios.conversation(scenarios.V4)
    whole = capture.analyze([write(tmp_path / "whole", packets)]).result
    path = write(tmp_path / "capture", [change(one) for one in packets])
    result = capture.analyze([path], capture.Options(icrc=icrc)).result
    assert judged(result) == judged(whole)
    assert result["findings"] == []
    (condition,) = result["conditions"]
    assert condition["kind"] == "no_icrc"
    assert says in condition["detail"]
    assert result["icrc"]["unchecked"] == len(packets)
    overhead = result["overhead"]
    assert overhead["wire_bytes"] == overhead["payload_bytes"] + sum(overhead["by_header"].values())
    assert "icrc" not in overhead["by_header"]


@pytest.mark.parametrize("change", [left_out, counted])
def test_one_packet_with_an_icrc_decides(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    first, *packets = scenarios.conversation(scenarios.V4)
    path = write(tmp_path / "capture", [first, *map(change, packets)])
    result = capture.analyze([path]).result
    assert "no_icrc" not in [row["kind"] for row in result["conditions"]]
    assert result["icrc"]["ok"] == 1


def test_a_wrong_length_alone_proves_nothing() -> None:
    result = capture.analyze([str(CAPTURES / "length.pcap")]).result
    assert result["conditions"] == []


def test_the_copy_is_judged_alike(tmp_path: Path) -> None:
    packets = [left_out(one) for one in scenarios.conversation(scenarios.V4)]
    path, copy = write(tmp_path / "capture", packets), tmp_path / "copy.pcapng"
    done = rocelab("annotate", path, "-o", str(copy))
    assert "findings: 0" in done.stdout
    assert b"psn_status=answer" in copy.read_bytes()
