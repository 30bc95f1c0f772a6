# SPDX-License-Identifier: GPL-2.0-or-later
"""Every frame between two nodes matches the records of both drivers, with and without loss."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import rxe_trace
from rocelab import correlate, stage_table
from rocelab.correlate import Joined
from rocelab.testbed.node import Node
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rxe_trace import Event
from rxedump_watch import Dump, dumping
from rxestat_watch import counter, watching
from traffic import perftest

MESSAGES = 1000
WRITE = "RC_RDMA_WRITE_ONLY"
MODULUS = 1 << 24
# netem uses its own seeded generator: the same losses for the same packets on any machine
# what is not reordered is delayed, and overtaken: rxe goes back for each such packet
NETEM = ("delay", "1ms", "reorder", "98%", "loss", "2%", "duplicate", "2%", "seed", "7")


@dataclass
class Witnessed:
    """Recordings of some traffic; complete when the context has ended."""

    folder: Path
    dumps: list[Dump]
    traces: list[Path]

    def join(self) -> Joined:
        return correlate.join(self.folder / "wire.pcap", self.traces)


@contextmanager
def witnessed(testbed: QemuTestbed, folder: Path) -> Iterator[Witnessed]:
    """Capture between the nodes, and rxedump on both."""
    with dumping(*testbed.nodes) as dumps, testbed.capture(folder / "wire.pcap"):
        seen = Witnessed(folder, dumps, [])
        yield seen
        for dump in dumps:
            dump.end()
            seen.traces.append(dump.fetch(folder))


def writes(n1: Node, n2: Node) -> None:
    """1,000 WRITEs of 64 bytes from n1 to n2; the ACK timeout is longer than a node can stall."""
    perftest("ib_write_bw", n1, n2, size=64, iterations=MESSAGES, ack_timeout=18)


def used_once(packets: pl.DataFrame) -> None:
    for way in ("tx", "rx"):
        records = packets.drop_nulls(f"{way}_packet").select(f"{way}_file", f"{way}_packet")
        assert records.is_unique().all()
    assert packets["wire_packet"].drop_nulls().is_unique().all()


def test_without_loss_every_frame_has_both_records(
    testbed: QemuTestbed, n1: Node, n2: Node, tmp_path: Path
) -> None:
    """Probes, counters and wire count the same packets, and each is found in all three places."""
    with watching(n1, n2) as watches:
        with witnessed(testbed, tmp_path) as seen:
            writes(n1, n2)
        documents = [watch.stop() for watch in watches]
    result = seen.join()
    frames = result.sums["wire"]["frames"]
    assert result.sums["wire"]["sent"] == result.sums["wire"]["received"] == {"matched": frames}
    assert result.sums["wire"]["again"] == result.unexplained == result.sums["early"] == 0
    assert result.sums["records"]["rejected"] == {}
    assert result.sums["records"]["tx"] == result.sums["records"]["rx"] == frames
    assert sum(result.sums["records"]["lost"].values()) == 0
    used_once(result.packets)
    assert len(result.packets.filter(pl.col("opcode_name") == WRITE)) == MESSAGES
    for node, watch, document in zip((n1, n2), watches, documents, strict=True):
        ours = result.sums["nodes"][node.name]
        for way, name in (("tx", "sent_pkts"), ("rx", "rcvd_pkts")):
            counted = sum(row["count"] for row in document["packets"] if row["event"] == way)
            assert ours[way] == ours[f"{way}_matched"] == counted == watch.moved[name]
        assert document["lost"] == 0
    # stages of all sent and all received packets; an ACK has no work request
    always = [f"tx_{stage}_ns" for stage in stage_table.TX if stage != "wqe"]
    always += [
        f"rx_{stage}_ns" for stage in stage_table.RX if stage not in {"copy", "cqe", "reply"}
    ]
    absent = {name: result.packets[name].null_count() for name in always}
    # the kernel skips a program that would interrupt itself: on a busy CPU a few packets lack
    # what is observed outside the driver
    for stage in stage_table.OBSERVED:
        assert absent.pop(f"tx_{stage}_ns") <= frames // 100
    assert not any(absent.values()), absent
    for name in always:
        p50, p99 = (result.packets[name].quantile(share) for share in (0.5, 0.99))
        assert p50 is not None
        assert p99 is not None
        assert 0 <= p50 <= p99
    messages = correlate.messages(result.packets)
    assert len(messages) == MESSAGES
    answered = messages.filter("answered")
    assert len(answered) > 0
    # each by its own clock: a round trip is longer seen by the sender than by the receiver, unless
    # the host stops the receiver between an answer and the stamp that ends its sending
    assert (answered["requester_ns"] > answered["responder_ns"]).mean() >= 0.95


@contextmanager
def netem(*nodes: Node) -> Iterator[None]:
    """Packets that leave these nodes are lost, duplicated and reordered."""
    try:
        for node in nodes:
            device = node.link.netdev
            node.run(["tc", "qdisc", "add", "dev", device, "root", "netem", *NETEM])
        yield
    finally:
        for node in nodes:
            node.run(["tc", "qdisc", "del", "dev", node.link.netdev, "root"], check=False)


def dropped(node: Node) -> int:
    """Return the number of packets that the queueing discipline dropped."""
    text = node.run(["tc", "-s", "qdisc", "show", "dev", node.link.netdev]).stdout
    return sum(int(number) for number in re.findall(r"dropped (\d+)", text))


def offset(trace: Path) -> int:
    """Return the offset from the trace's times to CLOCK_MONOTONIC that rxedump states."""
    stated = re.search(rb"wall_offset_ns=(\d+)", trace.read_bytes())
    assert stated
    return int(stated[1])


def ahead(psn: int, of: int) -> int:
    """Return how far a PSN is before another; negative if after it."""
    return (psn - of + MODULUS // 2) % MODULUS - MODULUS // 2


def within(psn: int, events: list[Event]) -> bool:
    """A range of PSNs to which the driver went back.

    Going back once more, before it has sent all of a range again, shortens the new range; the
    rest of the old one still follows.
    """
    first = events[-1].number("psn")
    furthest = max(ahead(event.number("next_psn"), first) for event in events)
    return 0 <= ahead(psn, first) < furthest


def test_under_loss_every_record_is_explained(
    testbed: QemuTestbed, n1: Node, n2: Node, tmp_path: Path
) -> None:
    """With loss, copies and reordering, nothing is matched twice and nothing is unexplained."""
    before = {node.name: counter(node, "sent_pkts") for node in (n1, n2)}
    with rxe_trace.tracing(n1, "rxe_retransmit") as trace, witnessed(testbed, tmp_path) as seen:
        with netem(n1, n2):
            writes(n1, n2)
            lost = sum(dropped(node) for node in (n1, n2))
        sent = {node.name: counter(node, "sent_pkts") for node in (n1, n2)}
    result = seen.join()
    sums = result.sums
    used_once(result.packets)
    assert result.unexplained == sums["early"] == 0
    assert sums["records"]["rejected"] == {}
    for name, nodes in sums["nodes"].items():
        assert nodes["tx"] == sent[name] - before[name]
    # the qdisc is before the capture, so it dropped all sent packets that are not on the wire
    gone = sum(sums["records"]["tx_alone"].values())
    assert set(sums["records"]["tx_alone"]) <= {"before_device", "before_capture"}
    assert 0 < gone <= lost
    assert sums["records"]["tx_alone"]["before_device"] > 0
    assert set(sums["wire"]["sent"]) == {"matched", "copy"}
    assert sums["wire"]["sent"]["copy"] > 0
    assert set(sums["wire"]["received"]) == {"matched"}
    assert sums["records"]["rx_alone"] == {}
    assert sums["wire"]["frames"] == sums["records"]["rx"]
    assert sums["wire"]["again"] > 0
    retransmitted(result.packets, trace.events, offset(seen.traces[0]))


def retransmitted(packets: pl.DataFrame, events: list[Event], wall_ns: int) -> None:
    """Each retransmitted packet is in the range to which the driver last went back."""
    requests = packets.filter(
        (pl.col("tx_node") == "n1") & pl.col("opcode_name").str.contains("WRITE")
    ).sort("tx_ns")
    again = requests.filter(pl.col("again") > 0)
    assert len(again) > 0
    begun = set()
    for row in again.iter_rows(named=True):
        at = row["tx_ns"] - wall_ns
        earlier = [event for event in events if event.time_us * 1000 <= at]
        assert earlier, f"PSN {row['psn']} was sent again before the driver went back"
        assert within(row["psn"], earlier), (row["psn"], earlier[-1])
        if row["psn"] == earlier[-1].number("psn"):
            begun.add(len(earlier))
    # and each range begins with its first packet, unless the driver went back once more before it
    times = [event.time_us * 1000 for event in events]
    for number, event in enumerate(events, 1):
        following = times[number] if number < len(times) else None
        sent = again.filter(pl.col("tx_ns") - wall_ns >= event.time_us * 1000)
        if following is not None:
            sent = sent.filter(pl.col("tx_ns") - wall_ns < following)
        assert sent.is_empty() or number in begun, event
