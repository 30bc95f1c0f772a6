# SPDX-License-Identifier: GPL-2.0-or-later
"""The join of capture and traces against a generator that knows each packet's fate."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from corpus import files
from rocelab import correlate, stage_table
from rocelab.correlate import Joined, join
from rocelab.errors import UsageError
from two_drivers import FATES, Lab, schedule, statistics


def joined(lab: Lab, folder: Path, **options: Any) -> Joined:
    wire, traces = lab.write(folder)
    return join(wire, traces, **options)


def rows_by_frame(result: Joined) -> dict[int, tuple[int | None, str, int | None, str]]:
    framed = result.packets.filter(pl.col("wire_packet").is_not_null())
    names = ("wire_packet", "tx_packet", "sent", "rx_packet", "received")
    rows = list(framed.select(names).iter_rows())
    assert len(rows) == len({row[0] for row in rows}), "a frame occurs twice"
    return {row[0]: row[1:] for row in rows}


def check_no_record_is_used_twice(result: Joined) -> None:
    for way in ("tx", "rx"):
        used = result.packets.drop_nulls(f"{way}_packet").select(f"{way}_file", f"{way}_packet")
        assert used.is_unique().all()


def test_without_loss_everything_is_matched(tmp_path: Path) -> None:
    lab = schedule(1, messages=200, faults=0)
    result = joined(lab, tmp_path)
    assert rows_by_frame(result) == lab.frames
    assert result.sums["wire"]["sent"] == result.sums["wire"]["received"] == {"matched": 400}
    assert result.sums["wire"]["again"] == result.unexplained == result.sums["early"] == 0
    both = {"tx": 200, "tx_matched": 200, "rx": 200, "rx_matched": 200}
    assert result.sums["nodes"] == {"n1": both, "n2": both}
    # a stage that was not measured is absent, not zero
    acks = result.packets.filter(pl.col("opcode_name") == "RC_ACKNOWLEDGE")
    assert acks["tx_wqe_ns"].null_count() == 200
    assert result.packets["tx_xmit_ns"].null_count() == 0


@pytest.mark.parametrize("seed", range(40))
def test_the_fate_of_every_packet_is_found(seed: int, tmp_path: Path) -> None:
    lab = schedule(seed, faults=0.1 if seed % 2 else 0.5)
    result = joined(lab, tmp_path)
    check_no_record_is_used_twice(result)
    ours = dict(lab.frames)
    theirs = rows_by_frame(result)
    # one trace that lost records makes every missing receipt at that node uncertain
    for frame, (tx, sent, rx, received) in ours.items():
        far = "b" if _sender(lab, frame) == "a" else "a"
        if received == "behind_capture" and lab.lost[far]:
            ours[frame] = (tx, sent, rx, "lost_or_record_lost")
    assert theirs == ours
    lone = result.packets.filter(pl.col("wire_packet").is_null())
    told = {
        (row["tx_node"] or row["rx_node"], row["tx_packet"] or row["rx_packet"]): row["sent"]
        or row["received"]
        for row in lone.iter_rows(named=True)
    }
    assert told == lab.alone
    assert result.unexplained == 0
    lost = {f"{node}.pcapng": lab.lost[side] for side, node in (("a", "n1"), ("b", "n2"))}
    assert {Path(name).name: n for name, n in result.sums["records"]["lost"].items()} == lost


def _sender(lab: Lab, frame: int) -> str:
    data = lab.tap.packets[frame - 1][1]
    return "a" if data[26:30] == bytes([10, 0, 0, 1]) else "b"


def test_the_schedules_include_every_fate() -> None:
    met: Counter[str] = Counter()
    for seed in range(40):
        lab = schedule(seed, faults=0.1 if seed % 2 else 0.5)
        met.update(sent for _, sent, _, _ in lab.frames.values())
        met.update(received for *_, received in lab.frames.values())
        met.update(lab.alone.values())
    assert len(FATES) == 8
    assert {
        "matched", "copy", "record_lost", "behind_capture", "lost_or_record_lost", "dropped",
        "damaged", "ambiguous", "before_device", "before_capture",
    } <= met.keys()  # fmt: skip


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_records_does_not_matter(seed: int, tmp_path: Path) -> None:
    """The network reorders; a trace lists packets in the order the driver finished them."""
    lab = schedule(seed, faults=0.2)
    dice = random.Random(seed)
    before = joined(lab, tmp_path).sums
    for trace in lab.trace.values():
        packets = trace.packets
        for at in range(len(packets) - 1):
            if dice.random() < 0.3:
                packets[at], packets[at + 1] = packets[at + 1], packets[at]
    after = joined(lab, tmp_path).sums
    assert (after["wire"], after["records"]) == (before["wire"], before["records"])


def test_equal_bytes_are_matched_while_the_counts_agree(tmp_path: Path) -> None:
    """IPv6 has no identification field: a retransmission has the same bytes as its original."""
    lab = Lab(3, "v2_ipv6")
    for fate in ("far_drop", ""):
        lab.send("a", "RC_RDMA_WRITE_ONLY", 7, fate, 64)
    result = joined(lab, tmp_path)
    assert result.sums["wire"]["sent"] == {"matched": 2}
    # two equal frames and one receipt: which frame was received?
    assert result.sums["wire"]["received"] == {"ambiguous": 2}
    assert result.sums["records"]["rx_alone"] == {"ambiguous": 1}
    check_no_record_is_used_twice(result)


def test_of_equal_records_the_one_that_reached_the_device_is_matched(tmp_path: Path) -> None:
    """Two equal packets were sent, but one frame seen: it is the one given to the device."""
    lab = Lab(3, "v2_ipv6")
    lab.send("a", "RC_RDMA_WRITE_ONLY", 7, "queue_drop", 64)
    lab.send("a", "RC_RDMA_WRITE_ONLY", 7, "", 64)
    result = joined(lab, tmp_path)
    assert rows_by_frame(result) == lab.frames
    assert result.packets.filter(pl.col("wire_packet") == 1)["again"].item() == 1
    lab = Lab(3, "v2_ipv6")
    for fate in ("link_drop", ""):
        lab.send("a", "RC_RDMA_WRITE_ONLY", 7, fate, 64)
    result = joined(lab, tmp_path)
    assert result.sums["wire"]["sent"] == {"ambiguous": 1}
    assert result.sums["records"]["tx_alone"] == {"ambiguous": 2}


def test_retransmissions_are_counted(tmp_path: Path) -> None:
    lab = Lab(1)
    lab.send("a", "RC_RDMA_WRITE_ONLY", 5, "far_drop", 64)
    lab.send("a", "RC_RDMA_WRITE_ONLY", 5, "queue_drop", 64)
    lab.send("a", "RC_RDMA_WRITE_ONLY", 5, "", 64)
    lab.send("b", "RC_ACKNOWLEDGE", 5)
    result = joined(lab, tmp_path)
    assert result.sums["wire"]["again"] == 1
    assert result.packets["again"].to_list() == [0, 2, 0, 1]


def test_a_node_without_a_trace_is_not_blamed(tmp_path: Path) -> None:
    lab = schedule(5, messages=10, faults=0)
    wire, (first, _) = lab.write(tmp_path)
    result = join(wire, [first])
    assert result.sums["wire"]["sent"] == {"matched": 10, "not_traced": 10}
    assert result.sums["wire"]["received"] == {"matched": 10, "not_traced": 10}
    assert result.unexplained == 0


def test_missing_records_and_frames_are_unexplained(tmp_path: Path) -> None:
    """A record is missing though the probe reports no loss; then a frame is missing."""
    lab = schedule(5, messages=10, faults=0)
    del lab.trace["a"].packets[0]
    result = joined(lab, tmp_path)
    assert result.sums["wire"]["sent"] == {"matched": 19, "unexplained": 1}
    assert result.unexplained == 1
    del lab.tap.packets[-1]
    result = joined(lab, tmp_path)
    assert result.unexplained == 2
    assert result.sums["records"]["tx_alone"] == {"not_captured": 1}
    assert result.sums["records"]["rx_alone"] == {"not_captured": 1}


def test_a_small_window_is_enough_for_a_steady_stream(tmp_path: Path) -> None:
    lab = schedule(8, messages=500, faults=0)
    result = joined(lab, tmp_path, window=64)
    assert rows_by_frame(result) == lab.frames
    assert result.sums["early"] == 0
    # and packets that leave it too early are counted
    lab.trace["b"].packets.reverse()
    result = joined(lab, tmp_path, window=64)
    check_no_record_is_used_twice(result)
    assert result.sums["early"] > 0


def test_hostile_comments_are_counted_and_harm_nothing(tmp_path: Path) -> None:
    lab = schedule(2, messages=20, faults=0)
    packets = lab.trace["a"].packets
    time, data, good = packets[0]
    hostile = {
        "version": good.replace("rocelab/1", "rocelab/9"),
        "syntax": good.replace("node=n1", "node=%G1"),
        "repeated_key": good + " psn=1",
        "missing_key": good.replace(" dev=rxe0", ""),
        "range": good.replace("wqe_ns=", "wqe_ns=99999999999999999999"),
        "contradiction": good.replace("dqpn=18", "dqpn=19"),
        "foreign": "see packet 12",
    }
    for text in hostile.values():
        packets.append((time, data, text))
    packets.append((time, data, ""))
    result = joined(lab, tmp_path)
    assert result.sums["records"]["rejected"] == dict.fromkeys(hostile, 1)
    assert result.sums["records"]["without_comment"] == 1
    assert rows_by_frame(result) == lab.frames


@pytest.mark.parametrize("seed", range(30))
def test_no_bytes_break_it(seed: int, tmp_path: Path) -> None:
    """Bits flipped anywhere give an error or a result, and no record is used twice."""
    dice = random.Random(seed)
    lab = schedule(seed, messages=15)
    wire, traces = lab.write(tmp_path)
    for path in (wire, *traces):
        data = bytearray(path.read_bytes())
        for _ in range(dice.randrange(1, 20)):
            data[dice.randrange(24, len(data))] ^= 1 << dice.randrange(8)
        path.write_bytes(data)
    try:
        result = join(wire, traces)
    except UsageError:
        return
    check_no_record_is_used_twice(result)
    sums = result.sums
    assert sum(sums["wire"]["sent"].values()) == sums["wire"]["frames"]
    assert sum(sums["wire"]["received"].values()) == sums["wire"]["frames"]
    told = sum(counts.get("tx", 0) for counts in sums["nodes"].values())
    assert told == sums["records"]["tx"]


def test_statistics_of_every_interface_and_section_count(tmp_path: Path) -> None:
    lab = schedule(2, messages=3, faults=0)
    wire, (first, second) = lab.write(tmp_path)
    more = b"".join((statistics(4), files.section(">"), files.interface(order=">")))
    # the last block of an interface counts; a new section starts again
    first.write_bytes(first.read_bytes() + more + statistics(2, ">") + statistics(5, ">"))
    result = join(wire, [first, second])
    assert list(result.sums["records"]["lost"].values()) == [9, 0]


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    lab = schedule(2, messages=3, faults=0)
    wire, traces = lab.write(tmp_path)
    with pytest.raises(UsageError, match="cannot read"):
        join(tmp_path / "absent.pcap", traces)
    nonsense = tmp_path / "nonsense.pcap"
    nonsense.write_bytes(b"this is no capture at all")
    with pytest.raises(UsageError, match="cannot be used"):
        join(nonsense, traces)
    with pytest.raises(UsageError, match=r"nonsense\.pcap cannot be used"):
        join(wire, [nonsense])


def test_spans_are_taken_within_one_clock(tmp_path: Path) -> None:
    lab = schedule(4, messages=30, faults=0)
    result = joined(lab, tmp_path)
    made = correlate.messages(result.packets)
    assert len(made) == 30
    assert made["clean"].all()
    assert made["answered"].all()
    spans = ("requester_ns", "wire_ns", "responder_ns")
    # the clocks are an hour apart; a difference between them would show it
    assert made.select(spans).max_horizontal().max() < 10**9  # type: ignore[operator]
    packets = {row["wire_packet"]: row for row in result.packets.iter_rows(named=True)}
    for row in made.iter_rows(named=True):
        first, answer = packets[row["first_frame"]], packets[row["answer_frame"]]
        assert row["wire_ns"] == answer["wire_ns"] - first["wire_ns"]
        sending = sum(first[f"tx_{name}_ns"] for name in stage_table.TX)
        receipt = sum(answer[f"rx_{name}_ns"] for name in stage_table.DELIVERING)
        assert row["requester_ns"] == answer["rx_ns"] + receipt - first["tx_ns"]
        assert row["requester_ns"] == (
            sending + receipt + row["requester_side_ns"] + row["wire_ns"]
        )
        assert row["wire_ns"] == row["responder_ns"] + row["responder_side_ns"]
        assert row["there_ns"] is None


def test_disturbed_messages_are_not_clean(tmp_path: Path) -> None:
    lab = Lab(9)
    for psn, fate in ((1, ""), (2, "far_drop"), (2, ""), (3, "copied"), (4, "")):
        lab.send("a", "RC_RDMA_WRITE_ONLY", psn, fate, 64)
    lab.send("b", "RC_ACKNOWLEDGE", 4)
    made = correlate.messages(joined(lab, tmp_path).packets)
    assert made["psn"].to_list() == [1, 2, 3, 4]
    assert made["clean"].to_list() == [True, False, False, True]
    # one ACK for all: it belongs only to the last
    assert made["answered"].to_list() == [False, False, False, True]
