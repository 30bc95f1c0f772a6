# SPDX-License-Identifier: GPL-2.0-or-later
"""IP fragments of RoCE are named and counted, and what they hold is not called lost."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corpus import files, frames
from rocelab import capture

V4, V6 = frames.Net(), frames.Net(kind="v2_ipv6", a="fd00::1", b="fd00::2")


def fragments(frame: bytes, first: int) -> list[bytes]:
    """The frame in two IP fragments, of which the first has `first` bytes."""
    v4 = frame[14] >> 4 == 4
    head, body = frame[: 34 if v4 else 54], frame[34 if v4 else 54 :]
    parts = []
    for at, part in ((0, body[:first]), (first, body[first:])):
        more = at == 0
        if v4:
            size = struct.pack(">HHH", 20 + len(part), 9, 0x2000 * more | at // 8)
            parts.append(head[:16] + size + head[22:] + part)
        else:
            extension = struct.pack(">BBHI", 17, 0, at | more, 9)
            size = struct.pack(">HB", 8 + len(part), 44)
            parts.append(head[:18] + size + head[21:] + extension + part)
    return parts


def stream(net: frames.Net, first: int, every: int) -> Iterator[bytes]:
    """SENDs and their ACKs; one in so many SENDs is fragmented."""
    for number in range(20):
        psn = 100 + number
        send = frames.transport("RC_SEND_ONLY", 18, psn, b"", bytes(256), ack=1)
        whole = frames.frame(net, "a", send)
        yield from fragments(whole, first) if number % every == every - 1 else [whole]
        ack = frames.transport("RC_ACKNOWLEDGE", 17, psn, frames.aeth(0x1F, number + 1))
        yield frames.frame(net, "b", ack)


def analyzed(tmp_path: Path, packets: list[bytes]) -> dict[str, Any]:
    path = tmp_path / "capture"
    path.write_bytes(files.pcap([(1000 * at, one) for at, one in enumerate(packets)]))
    result: dict[str, Any] = capture.analyze([str(path)]).result
    return result


@pytest.mark.parametrize("net", [V4, V6], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("first", [8, 48, 200])
@pytest.mark.parametrize("every", [1, 4])
def test_fragments_are_counted_and_not_lost(
    net: frames.Net, first: int, every: int, tmp_path: Path
) -> None:
    result = analyzed(tmp_path, list(stream(net, first, every)))
    count = 20 // every
    assert result["input"]["roce_fragments"] == count
    assert result["input"]["fragments"] == 2 * count
    assert result["findings"] == []
    assert "fragments" in {row["kind"] for row in result["conditions"]}
    says = next(row["detail"] for row in result["conditions"] if row["kind"] == "fragments")
    assert says.startswith(f"{count} RoCE packet(s) were sent in IP fragments ({2 * count} ")


def test_fragments_alone_are_not_no_roce(tmp_path: Path) -> None:
    packets = [part for one in stream(V4, 8, 99) for part in fragments(one, 8)]
    result = analyzed(tmp_path, packets)
    assert [row["kind"] for row in result["conditions"]] == ["fragments"]


def test_fragments_of_other_udp_change_nothing(tmp_path: Path) -> None:
    """Those of DNS do not hide what happens to RoCE."""
    whole = frames.frame(V4, "a", frames.transport("RC_SEND_ONLY", 18, 1, b"", bytes(256)))
    other = fragments(whole[:36] + (53).to_bytes(2, "big") + whole[38:], 48)
    result = analyzed(tmp_path, other)
    assert result["input"]["fragments"] == 2
    assert [row["kind"] for row in result["conditions"]] == ["no_roce"]
