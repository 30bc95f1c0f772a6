# SPDX-License-Identifier: GPL-2.0-or-later
"""IP fragments of RoCE are named, put together, and judged like other packets."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from corpus import files, fragments, frames
from rocelab import capture

V4, V6 = frames.Net(), frames.Net(kind="v2_ipv6", a="fd00::1", b="fd00::2")
BOTH = pytest.mark.parametrize("net", [V4, V6], ids=["ipv4", "ipv6"])
SENDS = 20
WAITING = 512
"""Packets that wait for fragments at once."""
SECOND = 10**9


def stream(net: frames.Net, lost: Sequence[int] = ()) -> Iterator[bytes]:
    """SENDs and their ACKs; those lost before the capture point are sent again after a NAK."""
    for number in range(SENDS):
        psn = 100 + number
        send = frames.transport("RC_SEND_ONLY", 18, psn, b"", bytes([number]) * 256, ack=1)
        if number in lost:
            late = frames.transport("RC_SEND_ONLY", 18, psn + 1, b"", bytes(256), ack=1)
            yield frames.frame(net, "a", late)
            nak = frames.transport("RC_ACKNOWLEDGE", 17, psn, frames.aeth(0x60, number))
            yield frames.frame(net, "b", nak)
        yield frames.frame(net, "a", send)
        ack = frames.transport("RC_ACKNOWLEDGE", 17, psn, frames.aeth(0x1F, number + 1))
        yield frames.frame(net, "b", ack)


def cut(frame: bytes, first: int, number: int, *, rewrite: bool = False) -> list[bytes]:
    """A SEND in two fragments; other packets as they are."""
    if len(frame) < 256:
        return [frame]
    parts: list[bytes] = fragments.cut(frame, [first], identification=number, rewrite=rewrite)
    return parts


def analyzed(tmp_path: Path, packets: Sequence[tuple[int, bytes]], **more: Any) -> dict[str, Any]:
    path = tmp_path / "capture"
    path.write_bytes(files.pcap(packets))
    result: dict[str, Any] = capture.analyze([str(path)], capture.Options(**more)).result
    return result


def timed(groups: Sequence[Sequence[bytes]]) -> list[tuple[int, bytes]]:
    """The last frame of each group comes 10 µs after that of the one before."""
    return [
        (SECOND + 10_000 * at + index - len(group), frame)
        for at, group in enumerate(groups)
        for index, frame in enumerate(group, 1)
    ]


def conditions(result: dict[str, Any]) -> dict[str, str]:
    return {row["kind"]: row["detail"] for row in result["conditions"]}


def without_numbers(value: object) -> object:
    """A result without the numbers and lengths of its frames, which fragments change."""
    if isinstance(value, dict):
        hidden = {"packet", "until", "file", "detail", "wire_bytes"}
        return {key: without_numbers(one) for key, one in value.items() if key not in hidden}
    return [without_numbers(one) for one in value] if isinstance(value, list) else value


@BOTH
@pytest.mark.parametrize("first", [8, 48, 200])
@pytest.mark.parametrize("rewrite", [False, True])
@pytest.mark.parametrize("lost", [(), (5, 11)])
@pytest.mark.parametrize("reverse", [False, True])
def test_judged_as_if_not_fragmented(
    net: frames.Net,
    first: int,
    rewrite: bool,
    lost: Sequence[int],
    reverse: bool,
    tmp_path: Path,
) -> None:
    whole = list(stream(net, lost))
    parts = [cut(one, first, number, rewrite=rewrite) for number, one in enumerate(whole)]
    parts = [group[::-1] if reverse else group for group in parts]
    expected = analyzed(tmp_path, timed([[one] for one in whole]))
    result = analyzed(tmp_path, timed(parts))
    sends = SENDS + len(lost)
    read = result["input"]
    assert (read["fragments"], read["roce_fragments"]) == (2 * sends, sends)
    assert (read["reassembled"], read["other"]) == (sends, 0)
    for key in ("connections", "findings", "finding_counts", "roce", "icrc", "opcodes"):
        assert without_numbers(result[key]) == without_numbers(expected[key]), key
    own = [line for line in result["verdict"] if line["cause"] != "fragments"]
    assert [line["cause"] for line in own] == [line["cause"] for line in expected["verdict"]]
    assert [line["lost_ns"] for line in own] == [line["lost_ns"] for line in expected["verdict"]]
    assert {line["cause"] for line in result["verdict"]} >= {"fragments"}
    said = conditions(result)["reassembled"]
    assert said.startswith(f"{sends} RoCE packet(s) were sent in IP fragments ({2 * sends} ")
    assert ("identification" in said) == (rewrite and net is V4)
    overhead = result["overhead"]
    headers = overhead["by_header"]
    assert sum(headers.values()) + overhead["payload_bytes"] == overhead["wire_bytes"]
    assert headers["fragmentation"] > 0
    ways = [way for row in result["connections"] for way in row["directions"]]
    assert sum(way["wire_bytes"] for way in ways) == overhead["wire_bytes"]


@BOTH
@pytest.mark.parametrize("missing", [0, 1])
def test_nothing_is_concluded_where_a_fragment_is_missing(
    net: frames.Net, missing: int, tmp_path: Path
) -> None:
    groups = [cut(one, 48, at, rewrite=True) for at, one in enumerate(stream(net, [5]))]
    del groups[8][missing]
    result = analyzed(tmp_path, timed(groups))
    assert result["input"]["reassembled"] == SENDS
    assert [row["rule"] for row in result["findings"]] == []
    assert "nothing is concluded" in conditions(result)["fragments"]
    assert [line["cause"] for line in result["verdict"]] == ["fragments"]


@BOTH
def test_fragments_that_overlap_are_dropped(net: frames.Net, tmp_path: Path) -> None:
    """RFC 5722: also the fragments before, and those to come. A copy of one is no overlap."""
    groups = [cut(one, 48, at, rewrite=True) for at, one in enumerate(stream(net))]
    copied, overlapped = groups[4], groups[8]
    groups[4] = [copied[1], copied[1], copied[0]]
    forged = overlapped[0][:-1] + b"!"
    groups[8] = [overlapped[0], forged, overlapped[1]]
    result = analyzed(tmp_path, timed(groups))
    assert result["input"]["reassembled"] == SENDS - 1
    assert "nothing is concluded" in conditions(result)["fragments"]


@BOTH
def test_so_many_wait_that_the_oldest_leaves(net: frames.Net, tmp_path: Path) -> None:
    first, *others = [
        cut(one, 48, at, rewrite=True) for at, one in enumerate(stream(net)) if at % 2 == 0
    ]
    begun = [
        fragments.cut(frames.frame(net, "a", send), [48], identification=1000 + at, rewrite=True)[0]
        for at in range(WAITING)
        for send in [frames.transport("RC_SEND_ONLY", 18, at, b"", bytes(256))]
    ]
    enough = analyzed(tmp_path, timed([[first[0], *begun[1:], first[1]]]))
    assert enough["input"]["reassembled"] == 1
    full = analyzed(tmp_path, timed([[first[0], *begun, first[1]], *others]))
    assert full["input"]["reassembled"] == len(others)
    assert "nothing is concluded" in conditions(full)["fragments"]


def test_pieces_of_two_packets_are_not_joined(tmp_path: Path) -> None:
    """What fits by its headers and not by its ICRC may be mixed: neither packet nor finding."""
    send, other = (cut(one, 48, 7) for number, one in enumerate(stream(V4)) if number in {0, 2})
    result = analyzed(tmp_path, timed([[send[0], other[1]]]))
    assert result["input"]["reassembled"] == 0
    assert (result["roce"]["packets"], result["icrc"]["bad"], result["findings"]) == (0, 0, [])


def test_records_out_of_order_may_mix_fragments(tmp_path: Path) -> None:
    packets = timed([cut(one, 48, 7) for one in stream(V4, [5])])
    packets[3], packets[9] = packets[9], packets[3]
    result = analyzed(tmp_path, packets)
    assert result["input"]["reassembled"] == SENDS + 1
    assert "out of order" in conditions(result)["fragments"]


def test_the_last_fragment_is_awaited(tmp_path: Path) -> None:
    """Also where UDP's length says that all is there."""
    whole = next(stream(V4))
    begun = whole[:20] + struct.pack(">H", 0x2000) + whole[22:]
    result = analyzed(tmp_path, timed([[begun]]))
    assert result["input"]["reassembled"] == 0
    assert "nothing is concluded" in conditions(result)["fragments"]


def test_late_fragments_are_of_another_packet(tmp_path: Path) -> None:
    one, two = cut(next(stream(V4)), 48, 7)
    for apart, count in ((SECOND, 1), (SECOND + 1, 0)):
        result = analyzed(tmp_path, [(SECOND, one), (SECOND + apart, two)])
        assert result["input"]["reassembled"] == count


def test_a_snap_length_leaves_icrcs_unchecked(tmp_path: Path) -> None:
    packets = timed([cut(one, 200, number) for number, one in enumerate(stream(V4))])
    path = tmp_path / "snapped"
    path.write_bytes(files.pcap(packets, snap=96))
    result = capture.analyze([str(path)]).result
    assert result["input"]["reassembled"] == SENDS
    assert (result["icrc"]["unchecked"], result["icrc"]["bad"]) == (SENDS, 0)
    assert result["connections"][0]["directions"][0]["goodput_bytes"] == 256 * SENDS


def test_a_filter_chooses_among_what_is_put_together(tmp_path: Path) -> None:
    groups = [cut(one, 48, number) for number, one in enumerate(stream(V4))]
    chosen = capture.Select(time_ns=(0, 200_000))
    result = analyzed(tmp_path, timed(groups), select=chosen)
    assert result["input"]["reassembled"] == SENDS // 2
    assert "reassembled" in conditions(result)


def test_fragments_of_other_udp_change_nothing(tmp_path: Path) -> None:
    """Those of DNS do not hide what happens to RoCE."""
    whole = frames.frame(V4, "a", frames.transport("RC_SEND_ONLY", 18, 1, b"", bytes(256)))
    other = cut(whole[:36] + struct.pack(">H", 53) + whole[38:], 48, 1)
    result = analyzed(tmp_path, timed([other]))
    assert result["input"]["fragments"] == 2
    assert [row["kind"] for row in result["conditions"]] == ["no_roce"]
