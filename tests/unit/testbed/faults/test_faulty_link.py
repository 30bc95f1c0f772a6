# SPDX-License-Identifier: GPL-2.0-or-later
"""What a faulty link does to frames of a client and a server, frame by frame."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from faulty_frames import (
    ACK,
    CLIENT_QPN,
    ONLY,
    READ,
    READ_FIRST,
    READ_LAST,
    READ_MIDDLE,
    frame,
    message,
)
from rocelab.plans.fault import LAST, TO_CLIENT, TO_SERVER, Action, FaultPlan
from rocelab.record.faults_document import Altered
from rocelab.testbed.faults import link as link_module
from rocelab.testbed.faults import roce_frame
from rocelab.testbed.faults.link import Due, FaultyLink

CAPTURES = Path(__file__).parents[4] / "captures"


def fault(action: str, **what: int | str) -> FaultPlan:
    values: dict[str, int | str] = {
        "name": "it",
        "direction": TO_SERVER,
        "message": 2,
        "packet": 1,
        "times": 1,
        "every": 0,
        "at_us": 0,
        "every_us": 0,
        "bit": 0,
        "duration_us": 0,
        "count": 0,
        "rnr_timer": 0,
        **what,
    }
    return FaultPlan(action=Action(action), **values)  # type: ignore[arg-type]


def through(link: FaultyLink, frames: Sequence[bytes], direction: str = TO_SERVER) -> list[Due]:
    return [due for each in frames for due in link.frame(direction, each, 1000)]


def psns(out: Sequence[Due]) -> list[int]:
    frames = [roce_frame.parse(due.frame) for due in out]
    return [each.psn for each in frames if each]


def test_the_icrc_is_that_of_a_real_driver() -> None:
    """Of a frame that rxe sent between two nodes."""
    data = (CAPTURES / "testbed-send-bw-1024.pcap").read_bytes()
    offset, seen = 24, 0
    while offset < len(data):
        length = int.from_bytes(data[offset + 8 : offset + 12], "little")
        one = data[offset + 16 : offset + 16 + length]
        offset += 16 + length
        if roce_frame.parse(one):
            assert roce_frame.icrc(one[14:-4]) == one[-4:]
            seen += 1
    assert seen > 10


def test_one_packet_of_one_message_is_dropped_once() -> None:
    """Also when PSNs wrap; sent again, it passes."""
    link = FaultyLink([fault("drop", message=2, packet=3)])
    first, second = message(0xFFFFFC), message(0)
    assert psns(through(link, [*first, *second])) == [
        0xFFFFFC,
        0xFFFFFD,
        0xFFFFFE,
        0xFFFFFF,
        0,
        1,
        2,
    ]
    assert psns(through(link, [second[3]])) == [3]
    (event,) = link.events
    assert (event.fault, event.done, event.psn, event.message) == ("it", "drop", 3, 2)
    assert link.altered == Altered(received=-1, on_wire=0)


def test_the_next_message_is_counted_by_psn_not_by_packets() -> None:
    """A message that is sent again is not another one."""
    link = FaultyLink([fault("drop", message=3, packet=0)])
    again = [*message(100), *message(104), *message(100), *message(104)]
    assert len(through(link, again)) == 16
    assert psns(through(link, message(108))) == [109, 110, 111]


def test_times_meets_what_is_sent_again() -> None:
    link = FaultyLink([fault("drop", message=1, packet=0, times=2)])
    assert psns(through(link, [message(5)[0]] * 3)) == [5]
    assert link.altered.received == -2


def test_every_repeats_in_later_messages() -> None:
    link = FaultyLink([fault("drop", message=1, packet=LAST, times=3, every=2)])
    out = psns(through(link, [each for i in range(8) for each in message(4 * i)]))
    assert sorted(set(range(32)) - set(out)) == [3, 11, 19]


def test_every_nth_packet_is_met_to_the_end() -> None:
    """Another fault sees those that the one before it did not meet; the answers are not counted."""
    rules = [
        fault("drop", message=0, times=0, every_packets=5),
        fault("mark_ce", name="ce", message=0, times=0, every_packets=4),
    ]
    link = FaultyLink(rules)
    sent = [each for i in range(5) for each in message(4 * i)]
    for each in sent:
        link.frame(TO_SERVER, each, 1000)
        link.frame(TO_CLIENT, frame(ACK, 0, to_client=True), 1000)
    met = [(event.fault, event.psn) for event in link.events]
    # of twenty packets the fifth of each five is dropped; of the others each fourth is marked
    assert met == [
        *(("ce", 3), ("it", 4), ("ce", 8), ("it", 9)),
        *(("ce", 13), ("it", 14), ("ce", 18), ("it", 19)),
    ]
    assert link.altered == Altered(received=-4)


def at_times(link: FaultyLink, times_us: Sequence[int]) -> list[int]:
    """Send a packet at each time after the first; return the PSNs of those that passed."""
    return psns(
        [
            due
            for psn, time_us in enumerate(times_us)
            for due in link.frame(TO_SERVER, frame(ONLY, psn), 7_000_000 + 1000 * time_us)
        ]
    )


def test_a_fault_by_time_meets_the_first_packet_after_it() -> None:
    """Counted from the first request."""
    link = FaultyLink([fault("drop", message=0, packet=0, at_us=100)])
    assert at_times(link, [0, 50, 99, 100, 101, 300]) == [0, 1, 2, 4, 5]
    (event,) = link.events
    assert (event.fault, event.psn, event.message) == ("it", 3, 4)


def test_a_fault_by_time_comes_again() -> None:
    """At its times; where no packet came for long, not more often."""
    link = FaultyLink([fault("drop", message=0, packet=0, at_us=100, every_us=100, times=4)])
    out = at_times(link, [0, 100, 150, 210, 290, 555, 556, 599, 600, 700, 900])
    assert sorted(set(range(11)) - set(out)) == [1, 3, 5, 8]


def test_a_fault_by_time_meets_its_direction() -> None:
    link = FaultyLink([fault("drop", direction=TO_CLIENT, message=0, packet=0, at_us=10)])
    assert at_times(link, [0, 20]) == [0, 1]
    for time_us, passed in ((21, []), (22, [1])):
        ack = frame(ACK, 1, to_client=True)
        assert psns(link.frame(TO_CLIENT, ack, 7_000_000 + 1000 * time_us)) == passed


def test_a_flap_by_time_takes_what_comes_meanwhile() -> None:
    link = FaultyLink([fault("flap", message=0, packet=0, at_us=100, duration_us=50)])
    assert at_times(link, [0, 100, 149, 150, 200]) == [0, 3, 4]
    assert [event.done for event in link.events] == ["flap", "lost"]


def test_an_answer_belongs_to_its_message() -> None:
    """The last packet of an ACK, and one of a READ's response."""
    acks = FaultyLink([fault("drop", direction=TO_CLIENT, message=2, packet=LAST)])
    through(acks, [*message(0), *message(4)])
    got = through(acks, [frame(ACK, psn, to_client=True) for psn in (3, 7)], TO_CLIENT)
    assert psns(got) == [3]
    reads = FaultyLink([fault("drop", direction=TO_CLIENT, message=2, packet=1)])
    through(reads, [frame(READ, 0, body=bytes(16)), frame(READ, 3, body=bytes(16))])
    opcodes = (READ_FIRST, READ_MIDDLE, READ_LAST) * 2
    answers = [frame(code, psn, to_client=True) for psn, code in enumerate(opcodes)]
    assert psns(through(reads, answers, TO_CLIENT)) == [0, 1, 2, 3, 5]
    assert reads.altered == Altered(received=-1, on_wire=-1)


def test_the_icrc_alone_can_tell_a_corrupted_packet() -> None:
    """Exactly one bit differs, and UDP has no checksum to find it with."""
    link = FaultyLink([fault("corrupt", message=1, packet=1, bit=8 * 12 + 5)])
    sent = message(0)
    got = through(link, sent)[1].frame
    changed = [a ^ b for a, b in zip(sent[1], got, strict=True)]
    assert sum(each.bit_count() for each in changed) == 1
    assert changed[14 + 28 + 12] == 0x80 >> 5
    assert roce_frame.icrc(got[14:-4]) != got[-4:]
    beyond = FaultyLink([fault("corrupt", message=1, packet=1, bit=30000)])
    assert through(beyond, sent)[1].frame == sent[1]
    assert (beyond.events[0].done, beyond.altered) == ("not done", Altered())


def test_duplicates_and_late_packets() -> None:
    twice = FaultyLink([fault("duplicate", message=1, packet=1)])
    assert psns(through(twice, message(0))) == [0, 1, 1, 2, 3]
    assert twice.altered == Altered(received=1)
    late = FaultyLink([fault("delay", message=1, packet=1, duration_us=5)])
    assert [due.at_ns for due in through(late, message(0))] == [1000, 6000, 1000, 1000]


def test_others_overtake() -> None:
    """The packet follows after `count` others, or, if none come, after a while."""
    link = FaultyLink([fault("reorder", message=1, packet=1, count=2)])
    assert psns(through(link, message(0))) == [0, 2, 3, 1]
    alone = FaultyLink([fault("reorder", message=1, packet=3, count=2)])
    assert psns(through(alone, message(0))) == [0, 1, 2]
    assert alone.late(1000) == []
    assert psns(alone.late(10**9)) == [3]
    assert alone.late(10**9) == []


def test_congestion_is_marked_where_the_icrc_does_not_look() -> None:
    link = FaultyLink([fault("mark_ce", message=1, packet=1)])
    got = through(link, message(0))[1].frame
    assert got[15] & 3 == 3
    assert roce_frame.icrc(got[14:-4]) == got[-4:]
    header = struct.unpack("!10H", got[14:34])
    assert sum(header) % 0xFFFF == 0


def test_the_client_is_told_of_congestion() -> None:
    """As soon as an answer has told its queue pair's number."""
    link = FaultyLink([fault("cnp", message=2, packet=0, count=3)])
    assert len(through(link, [*message(0), *message(4)])) == 8
    got = through(link, [frame(ACK, 3, to_client=True)], TO_CLIENT)
    assert [due.frame[42] for due in got] == [ACK, 0x81, 0x81, 0x81]
    assert all(due.direction == TO_CLIENT for due in got)
    one = got[-1].frame
    assert int.from_bytes(one[47:50]) == CLIENT_QPN
    assert one[46] == 0x40
    assert roce_frame.icrc(one[14:-4]) == one[-4:]
    assert link.altered == Altered(received=0, on_wire=3, spoilt=3)


def test_a_server_that_is_not_ready_takes_nothing_until_the_same_packet() -> None:
    link = FaultyLink([fault("rnr_nak", message=2, packet=0, rnr_timer=5)])
    through(link, message(0))
    through(link, [frame(ACK, 3, to_client=True)], TO_CLIENT)
    (nak,) = through(link, message(4))
    assert (nak.direction, nak.frame[42], nak.frame[54]) == (TO_CLIENT, ACK, 0x20 | 5)
    assert int.from_bytes(nak.frame[55:58]) == 9  # the last MSN
    assert psns([nak]) == [4]
    assert roce_frame.icrc(nak.frame[14:-4]) == nak.frame[-4:]
    assert psns(through(link, message(4))) == [4, 5, 6, 7]
    assert link.altered == Altered(received=-3, on_wire=1)


def test_a_flap_takes_everything_for_its_time() -> None:
    link = FaultyLink([fault("flap", message=1, packet=1, duration_us=5)])
    arp = b"\xff" * 12 + b"\x08\x06" + bytes(46)
    assert psns(through(link, message(0))) == [0]
    assert link.frame(TO_CLIENT, arp, 5999) == []
    assert [due.frame for due in link.frame(TO_CLIENT, arp, 6000)] == [arp]
    assert link.altered.received == -3
    assert [event.done for event in link.events] == ["flap", "lost", "lost", "lost"]
    assert sum(event.psn is None for event in link.events) == 1


def test_what_is_no_longer_listed_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "_MAX_EVENTS", 3)
    flap, later = fault("flap", message=1, packet=0, duration_us=5), fault("drop", name="later")
    link = FaultyLink([flap, later])
    through(link, [*message(0), *message(4)])
    for each in [*message(0), *message(4)]:
        link.frame(TO_SERVER, each, 9000)
    assert (len(link.events), link.unlisted) == (3, 6)
    assert link.altered.received == -9
    assert link.met == {"it", "later"}


def test_the_servers_own_requests_pass() -> None:
    """As in a latency test: they are no answers, whatever their PSN."""
    link = FaultyLink([fault("drop", direction=TO_CLIENT, message=1, packet=1)])
    through(link, message(0))
    own = [frame(ONLY, psn, to_client=True) for psn in range(4)]
    assert psns(through(link, own, TO_CLIENT)) == [0, 1, 2, 3]
    theirs = [frame(ACK, psn) for psn in range(4)]
    assert psns(through(link, theirs)) == [0, 1, 2, 3]
    assert not link.events


@pytest.mark.parametrize("odd", [b"", bytes(60), frame(ONLY, 1)[:50], frame(0x64, 1)])
def test_other_frames_pass(odd: bytes) -> None:
    """Those of another queue pair, and of anything that is no reliable connection."""
    link = FaultyLink([fault("drop", message=1, packet=0)])
    assert [due.frame for due in through(link, [odd])] == [odd]
    assert not link.events


@pytest.mark.parametrize("action", ["kill", "stop"])
def test_the_link_waits_for_the_servers_process(action: str) -> None:
    """No frame passes before it is done; then all do, in order, that of the fault first."""
    link = FaultyLink([fault(action, message=2, packet=1)])
    first, second = message(10), message(14)
    through(link, first)
    assert link.awaits is None
    assert psns(through(link, second)) == [14]
    assert link.awaits is not None
    assert through(link, [frame(ACK, 13, to_client=True)], TO_CLIENT) == []
    assert link.events == []
    out = link.done(2000)
    assert psns(out) == [15, 16, 17, 13]
    assert [due.direction for due in out] == [TO_SERVER] * 3 + [TO_CLIENT]
    assert link.awaits is None
    ((event,), done) = link.events, link.done(3000)
    assert done == []
    assert (event.done, event.psn, event.message, event.packet) == (action, 15, 2, 1)
    assert event.time_ns == 2000
    assert link.altered == Altered()


def test_what_waited_may_wait_again() -> None:
    link = FaultyLink(
        [fault("stop", name="a", message=1, packet=1), fault("kill", message=1, packet=3)]
    )
    assert psns(through(link, message(10))) == [10]
    assert psns(link.done(2000)) == [11, 12]
    assert link.awaits is not None
    assert link.awaits.action is Action.KILL
    assert psns(link.done(3000)) == [13]


def test_a_server_that_vanishes_is_silent_for_good() -> None:
    link = FaultyLink([fault("vanish", message=2, packet=1)])
    assert psns(through(link, message(10) + message(14))) == [10, 11, 12, 13, 14]
    late = 10**15
    assert link.frame(TO_CLIENT, frame(ACK, 13, to_client=True), late) == []
    assert link.frame(TO_SERVER, frame(ONLY, 99), late) == []
    assert [each.done for each in link.events] == ["vanish", *["lost"] * 4]
    assert link.altered == Altered(received=-5, on_wire=-1)


def test_queue_pairs_before_are_left_alone() -> None:
    """As that of perftest's rendezvous by rdma_cm; its answers count for nothing either."""
    link = FaultyLink([fault("drop", message=1, packet=0)], pairs_before=1)
    other = bytearray(frame(ONLY, 500))
    other[42 + 5 : 42 + 8] = (7).to_bytes(3)
    answer = bytearray(frame(ACK, 500, to_client=True))
    answer[42 + 5 : 42 + 8] = (9).to_bytes(3)
    assert len(through(link, [bytes(other)])) == 1
    assert len(through(link, [bytes(answer)], TO_CLIENT)) == 1
    assert psns(through(link, message(10))) == [11, 12, 13]
    through(link, [frame(ACK, 13, to_client=True)], TO_CLIENT)
    assert len(through(link, [bytes(other)])) == 1
    assert [each.psn for each in link.events] == [10]
