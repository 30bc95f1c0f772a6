# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin turns each number of a packet comment into a field, and hostile ones into notes."""

from __future__ import annotations

import random
import resource
from pathlib import Path

import pytest

import tshark_plugin
from corpus import files, frames
from rocelab import stage_table
from tshark_plugin import Tshark

pytestmark = pytest.mark.slow

TX = ("rocelab/1 node=n1 dev=rxe0 dir=tx net=v2 op=RC_RDMA_WRITE_ONLY qpn=17 dqpn=18 psn=4711 "
      "wqe_ns=41 alloc_ns=210 bth_ns=38 route_ns=12 net_ns=95 copy_ns=160 icrc_ns=88 xmit_ns=640 "
      "gap_ns=7")  # fmt: skip
RX = ("rocelab/1 node=n2 dev=rxe0 dir=rx net=v2 op=RC_RDMA_WRITE_ONLY qpn=18 dqpn=18 psn=4711 "
      "parse_ns=55 icrc_ns=90 queue_ns=2100 exec_ns=310 copy_ns=120 cqe_ns=60 reply_ns=5 "
      "switched=1 loopback=1 link=made drop=icrc")  # fmt: skip
FOUND = (
    "rocelab/1 psn_status=retransmission response_to=3 response_ns=1234567890 message=3..12 "
    "finding=warning%20loss%20ambiguous:%20PSN%207%20%3e%206 finding=error%20icrc-bad:%20x "
    "verdict=2%20limit%20one_in_flight%20likely:%20Each%20waits:%20y."
)
FIELDS = [
    *(f"rocelab.{name}" for name in (
        "node", "dev", "dir", "net", "op", "qpn", "dqpn", "psn", "encapsulation", "decapsulation",
        "gap", "switched", "loopback", "link", "drop", "other", "psn.status", "response_time",
        "response_to", "message", "message.first", "message.last", "finding", "finding.severity",
        "finding.ambiguous", "finding.detail", "verdict", "verdict.kind", "verdict.cause",
        "verdict.certainty", "verdict.detail")),
    *(f"rocelab.stage.{name}" for name in dict.fromkeys((*stage_table.TX, *stage_table.RX))),
    "rocelab", "_ws.expert.message",
]  # fmt: skip
UNKNOWN = "Not understood"


def frame() -> bytes:
    """An acknowledgement: it has no payload for heuristic dissectors."""
    body = frames.transport("RC_ACKNOWLEDGE", 18, 4711, frames.aeth(0x1F, 1))
    whole: bytes = frames.frame(frames.Net(), "a", body)
    return whole


def packet(*comments: bytes) -> bytes:
    """An enhanced packet block with any number of comments of any bytes."""
    plain = files.packet_block(0, frame())
    body = plain[8:-4] + b"".join(files.option(1, text) for text in comments) + files.option(0, b"")
    made: bytes = files.block(6, body)
    return made


def shown(tshark: Tshark, tmp_path: Path, *packets: list[bytes]) -> dict[int, dict[str, str]]:
    path = tmp_path / "commented.pcapng"
    blocks = [files.section(), files.interface(), *(packet(*comments) for comments in packets)]
    path.write_bytes(b"".join(blocks))
    return tshark.fields(path, FIELDS)


def test_every_number_comes_back(tshark: Tshark, tmp_path: Path) -> None:
    """One frame has the sender's, the receiver's and the analyzer's comment; another has none."""
    rows = shown(tshark, tmp_path, [TX.encode(), RX.encode(), FOUND.encode()], [])
    row = rows[1]
    expected = {
        "node": "n1,n2", "dev": "rxe0,rxe0", "dir": "tx,rx", "net": "v2,v2",
        "op": "RC_RDMA_WRITE_ONLY,RC_RDMA_WRITE_ONLY", "psn": "4711,4711",
        "encapsulation": str(38 + 12 + 95 + 88), "decapsulation": str(55 + 90), "gap": "7",
        "link": "made", "drop": "icrc", "other": "", "psn.status": "retransmission",
        "response_time": "1.234567890", "response_to": "3", "message": "3..12",
        "message.first": "3", "message.last": "12", "finding": "loss,icrc-bad",
        "finding.severity": "warning,error", "finding.detail": "PSN 7 > 6,x",
        "verdict": "2", "verdict.kind": "limit", "verdict.cause": "one_in_flight",
        "verdict.certainty": "likely", "verdict.detail": "Each waits: y.",
        "stage.wqe": "41", "stage.alloc": "210", "stage.bth": "38", "stage.route": "12",
        "stage.net": "95", "stage.copy": "160,120", "stage.icrc": "88,90", "stage.xmit": "640",
        "stage.parse": "55", "stage.queue": "2100", "stage.exec": "310", "stage.cqe": "60",
        "stage.reply": "5",
    }  # fmt: skip
    assert {name: row[f"rocelab.{name}"] for name in expected} == expected
    for name, wanted in (("qpn", [17, 18]), ("dqpn", [18, 18])):
        assert [int(text, 0) for text in row[f"rocelab.{name}"].split(",")] == wanted
    for name in ("switched", "loopback"):
        assert tshark_plugin.flag(row[f"rocelab.{name}"]) == "1"
    doubts = [tshark_plugin.flag(text) for text in row["rocelab.finding.ambiguous"].split(",")]
    assert doubts == ["1", "0"]
    notes = row["_ws.expert.message"]
    assert "loss ambiguous: PSN 7 > 6" in notes
    assert "icrc-bad: x" in notes
    assert "one_in_flight (likely): Each waits: y." in notes
    assert "Dropped by the driver: icrc" in notes
    assert UNKNOWN not in notes
    assert not any(rows[2][f"rocelab.{name}"] for name in expected)


def test_display_filters(tshark: Tshark, tmp_path: Path) -> None:
    shown(tshark, tmp_path, [TX.encode()], [RX.encode()], [FOUND.encode()])
    path = tmp_path / "commented.pcapng"
    for text, wanted in (
        ('rocelab.node == "n1"', ["1"]),
        ("rocelab.stage.icrc > 88", ["2"]),
        ("rocelab.encapsulation == 233", ["1"]),
        ("rocelab.response_time > 1.2", ["3"]),
        ('rocelab.finding == "loss"', ["3"]),
        ("rocelab.verdict", ["3"]),
        ('rocelab.verdict.cause == "one_in_flight"', ["3"]),
        ('rocelab.psn.status contains "retrans"', ["3"]),
        ("rocelab.message.first <= 5 && rocelab.message.last >= 5", ["3"]),
    ):
        words = ["-r", path, "-Y", text, "-T", "fields", "-e", "frame.number"]
        assert tshark.run(*words).split() == wanted, text


def test_findings_reach_the_expert_statistics(tshark: Tshark, tmp_path: Path) -> None:
    failed = b"rocelab/1 verdict=1%20failure%20given_up%20certain:%20No%20answer."
    shown(tshark, tmp_path, [FOUND.encode()], [failed])
    path = tmp_path / "commented.pcapng"
    table = tshark.run("-r", path, "-q", "-z", "expert")
    assert "Errors (2)" in table
    assert "given_up (certain): No answer." in table
    assert "Warns (1)" in table
    assert "Notes (1)" in table


HOSTILE = [
    b"rocelab/1",
    b"rocelab/1 ",
    b"rocelab/1 wqe_ns=",
    b"rocelab/1 wqe_ns=-1",
    b"rocelab/1 wqe_ns=1e9",
    b"rocelab/1 wqe_ns=0x10",
    b"rocelab/1 wqe_ns=99999999999999999999999999999999",
    b"rocelab/1 psn=16777216",
    b"rocelab/1 =",
    b"rocelab/1 ===",
    b"rocelab/1 node=%",
    b"rocelab/1 node=%0",
    b"rocelab/1 node=%00%ff%fe%c3%28%e2%82",
    b"rocelab/1 node=\xff\xfe dev=\x00",
    b"rocelab/1 node=%s%n%d %s=%d",
    b"rocelab/1 response_to=0 response_ns=x message=.. finding=",
    b"rocelab/1 response_to=99999999999 message=1..99999999999",
    b"rocelab/1 message=5..1 finding=fatal%20x:%20y",
    b"rocelab/1 finding=error%20loss%20perhaps:%20y",
    b"rocelab/1 switched=yes dir=sideways net= op=",
    b"rocelab/1 " + b"a=b " * 4000,
    b"rocelab/1 node=" + b"%41" * 8000,
    b"rocelab/1 future_key=7 qpn=3",
    b"rocelab/1\tnode=tab\nnode=newline",
    b"rocelab/1 verdict=",
    b"rocelab/1 verdict=99999999999%20fault%20loss%20likely:%20x",
    b"rocelab/1 verdict=1%20doom%20loss%20likely:%20x",
    b"rocelab/1 verdict=1%20fault%20loss:%20x",
]


@pytest.mark.parametrize("seed", [1])
def test_hostile_comments(tshark: Tshark, tmp_path: Path, seed: int) -> None:
    """None makes Lua fail, and the packet's other comments are still read."""
    draw = random.Random(seed)
    packets = [[text, TX.encode()] for text in HOSTILE]
    sources = [TX.encode(), RX.encode(), FOUND.encode()]
    for _ in range(1500):
        text = bytearray(draw.choice(sources))
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(len(text))
            text[at : at + draw.randrange(3)] = draw.randbytes(draw.randrange(4))
        packets.append([bytes(text), TX.encode()])
    rows = shown(tshark, tmp_path, *packets)
    assert len(rows) == len(packets)
    for row in rows.values():
        assert row["rocelab.stage.wqe"].endswith("41")
        assert row["rocelab.stage.xmit"].endswith("640")
    for number in range(3, 13):
        assert UNKNOWN in rows[number]["_ws.expert.message"], HOSTILE[number - 1]
    for number in range(25, 29):
        assert UNKNOWN in rows[number]["_ws.expert.message"], HOSTILE[number - 1]
        assert not rows[number]["rocelab.verdict"]
    assert r"\x00" in rows[13]["rocelab.node"]
    assert rows[23]["rocelab.other"] == "future_key=7"
    assert UNKNOWN not in rows[23]["_ws.expert.message"]


@pytest.mark.parametrize("end", [b"!", b"!:%20x"])
def test_a_long_finding_takes_no_time(tshark: Tshark, tmp_path: Path, end: bytes) -> None:
    """40 of them: half a second; a pattern that tries each division takes many minutes."""
    long = b"rocelab/1 finding=error%20" + b"a" * 30_000 + end
    rows = shown(tshark, tmp_path, *[[long, TX.encode()]] * 40)
    assert all(UNKNOWN in row["_ws.expert.message"] for row in rows.values())


def test_other_comments_are_left_alone(tshark: Tshark, tmp_path: Path) -> None:
    rows = shown(tshark, tmp_path, [b"my own note: rocelab/1 wqe_ns=5"], [b"rocelab/11 wqe_ns=5"],
                 [b"rocelab.dump/1 wqe_ns=5"], [b"rocelab/1x wqe_ns=5"])  # fmt: skip
    assert not any(row["rocelab.stage.wqe"] for row in rows.values())
    assert "Version 11 is not known" in rows[2]["_ws.expert.message"]


_LONGEST = 65_000
"""Bytes of a comment; pcapng allows 65535."""
_SLOW = {
    "blanks in a finding": [b"finding=" + b"a%20" * (_LONGEST // 4)],
    "letters in a finding": [b"finding=warning%20" + b"a" * _LONGEST],
    "colons in a finding": [b"finding=" + b"a:%20" * (_LONGEST // 5)],
    "blanks in a verdict": [b"verdict=" + b"1%20" * (_LONGEST // 4)],
    "words": [b"finding=x " + b"a " * (_LONGEST // 2)],
    "findings": [b"finding=error%20x:%20y " * (_LONGEST // 23)],
    "digits": [b"drop=x psn=" + b"1" * _LONGEST],
    "a range": [b"drop=x message=" + b"1" * _LONGEST + b"..x"],
    "escapes": [b"drop=" + b"%" * _LONGEST],
    "blanks": [b" " * (_LONGEST - 20) + b"drop=x"],
    "comments": [b"drop=x"] * 8000,
}


@pytest.mark.parametrize("kind", _SLOW)
def test_hostile_comments_take_no_time(tshark: Tshark, tmp_path: Path, kind: str) -> None:
    """A pattern that tries all ways took 15 s for 32 kB, at each dissection."""
    comments = [(b"rocelab/1 " + text)[:_LONGEST] for text in _SLOW[kind]]
    path = tmp_path / "slow.pcapng"
    path.write_bytes(b"".join([files.section(), files.interface(), packet(*comments)]))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    shown = tshark.run("-n", "-r", path, "-V")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "RoCE" in shown
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert seconds < 5, f"{seconds:.1f} s of the processor"
