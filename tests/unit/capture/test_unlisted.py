# SPDX-License-Identifier: GPL-2.0-or-later
"""How many connections are listed changes neither the findings nor the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corpus import CAPTURES, files, frames
from rocelab import capture
from rocelab.capture import changes
from rocelab.capture.verdict import causes

SAMPLES = [
    *("read-depth.pcap", "cm-unanswered.pcap", "fault-rnr.pcap", "fault-drop-behind.pcap"),
    *("case-read-response-lost-before.pcap", "case-tunnels.pcap", "migreq.pcap"),
]


def analysed(path: Path, most: int) -> dict[str, Any]:
    return capture.analyze([str(path)], capture.Options(max_connections=most)).result


def judgement(result: dict[str, Any]) -> object:
    verdict = [
        {key: line[key] for key in ("cause", "kind", "where", "connections", "count", "lost_ns")}
        for line in result["verdict"]
    ]
    made = [row["connection"] for row in result["cm"]]
    return verdict, causes.of(result), result["findings"], result["finding_counts"], made


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("most", [0, 1])
def test_nothing_depends_on_how_many_are_listed(name: str, most: int) -> None:
    whole, limited = (analysed(CAPTURES / name, limit) for limit in (16384, most))
    assert len(limited["connections"]) <= most
    assert judgement(limited) == judgement(whole)


def test_what_is_not_listed_is_said() -> None:
    result = analysed(CAPTURES / "read-depth.pcap", 1)
    said = {row["kind"]: row["detail"] for row in result["conditions"]}
    assert said["unlisted"].startswith("1 more connection(s) are not listed")
    assert "unlisted" not in {
        row["kind"] for row in analysed(CAPTURES / "read-depth.pcap", 16384)["conditions"]
    }


@pytest.mark.parametrize("most", [0, 1])
def test_shares_of_a_comparison_are_of_all_connections(most: int) -> None:
    calm, lossy = (
        [analysed(CAPTURES / name, limit) for limit in (16384, most)]
        for name in ("read-depth.pcap", "fault-drop-behind.pcap")
    )
    whole, limited = (changes.compare(*pair).rows for pair in zip(calm, lossy, strict=True))
    assert [row.after.share for row in limited] == [row.after.share for row in whole]


def connection(number: int, packets: list[tuple[str, bytes]]) -> Iterator[bytes]:
    """A connection's packets, with QPs of its number; nobody checks their ICRC."""
    for sender, wire in packets:
        frame = bytearray(frames.frame(frames.Net(), sender, wire))
        qpn = number + (1 << 20 if sender == "a" else 1 << 21)
        at = len(frame) - 4 - len(wire) + 5
        frame[at : at + 3] = qpn.to_bytes(3, "big")
        yield bytes(frame)


def test_a_loss_beyond_the_limit_is_in_the_verdict(tmp_path: Path) -> None:
    def send(psn: int) -> tuple[str, bytes]:
        return "a", frames.transport("RC_SEND_ONLY", 0, psn, b"", b"abcd", ack=1)

    def answer(psn: int, syndrome: int, msn: int) -> tuple[str, bytes]:
        return "b", frames.transport("RC_ACKNOWLEDGE", 0, psn, frames.aeth(syndrome, msn))

    limit = capture.Options().max_connections
    calm = [connection(n, [send(8 * n), answer(8 * n, 0x1F, 1)]) for n in range(limit + 100)]
    last = 8 * len(calm)
    lossy = [send(last), send(last + 1), answer(last + 1, 0x60, 1), send(last + 1)]
    every = [*calm, connection(len(calm), [*lossy, answer(last + 1, 0x1F, 2)])]
    path = tmp_path / "many.pcap"
    path.write_bytes(files.pcap(enumerate((one for each in every for one in each), start=10**9)))
    result = capture.analyze([str(path)], capture.Options(icrc=False)).result
    assert result["connections_unreported"] == 101
    first = result["verdict"][0]
    assert (first["cause"], first["count"], first["connections"]) == ("loss", 1, 1)
    assert first["lost_ns"] > 0
