# SPDX-License-Identifier: GPL-2.0-or-later
"""What tc counted is found in the capture, or the cell is an error."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from faulty_frames import ACK, CLIENT, frame, message
from rocelab.errors import CellError
from rocelab.measure import fault_places
from rocelab.plans.fault import TO_SERVER, Action, FaultPlan
from rocelab.record.faults_document import Altered
from rocelab.testbed.faults import traffic_control
from rocelab.testbed.faults.traffic_control import Counted, CountedLink


def fault(action: Action, *, name: str = "it", every: int = 0, at_us: int = 0) -> FaultPlan:
    return FaultPlan(
        *(name, action, TO_SERVER, 0, 0, 0 if every else 1, 0, at_us, 0, 100, 20, 0, 0, every)
    )


def capture_of(frames: Sequence[bytes], path: Path) -> Path:
    header = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    records = (
        struct.pack("<IIII", 1, number, len(each), len(each)) + each
        for number, each in enumerate(frames)
    )
    path.write_bytes(header + b"".join(records))
    return path


MESSAGES = [each for i in range(5) for each in message(4 * i)]


def test_the_nth_request_of_the_capture_is_the_one(tmp_path: Path) -> None:
    """Answers are not counted, and each fault sees what no earlier one met."""
    answers = [frame(ACK, psn, to_client=True) for psn in (3, 7)]
    wire = capture_of([*MESSAGES[:8], *answers, *MESSAGES[8:]], tmp_path / "wire.pcap")
    link = CountedLink([fault(Action.DROP, every=5), fault(Action.MARK_CE, name="ce", every=4)])
    link.requests = 20
    link.counted = (Counted("it", 20, 4), Counted("ce", 16, 4))
    fault_places.find(link, wire, CLIENT)
    assert [(each.fault, each.psn) for each in link.events] == [
        *(("ce", 3), ("it", 4), ("ce", 8), ("it", 9)),
        *(("ce", 13), ("it", 14), ("ce", 18), ("it", 19)),
    ]
    place = [(each.message, each.packet) for each in link.events if each.fault == "it"]
    assert place == [(2, 0), (3, 1), (4, 2), (5, 3)]
    assert link.altered == Altered(received=-4)
    assert link.met == {"it", "ce"}


@pytest.mark.parametrize(("requests", "met"), [(19, 4), (21, 4), (20, 3), (20, 5)])
def test_other_counts_than_the_captures_are_an_error(
    tmp_path: Path, requests: int, met: int
) -> None:
    wire = capture_of(MESSAGES, tmp_path / "wire.pcap")
    link = CountedLink([fault(Action.DROP, every=5)], requests, (Counted("it", requests, met),))
    with pytest.raises(CellError, match="the capture has 20"):
        fault_places.find(link, wire, CLIENT)


def test_a_server_that_was_killed_left_the_first_request_unanswered(tmp_path: Path) -> None:
    frames = [*MESSAGES[:8], frame(ACK, 5, to_client=True), *MESSAGES[6:8], *MESSAGES[6:8]]
    link = CountedLink([fault(Action.KILL, at_us=9)])
    fault_places.find(link, capture_of(frames, tmp_path / "wire.pcap"), CLIENT)
    (event,) = link.events
    assert (event.done, event.psn, event.message, event.packet) == ("kill", 6, 2, 2)


def test_tc_is_told_which_bit_to_change() -> None:
    """As a word from the BTH's first byte, and a mask with the bit in network order."""
    (line,) = (
        line
        for line in traffic_control.commands(
            "data0", "10.0.0.2", "10.0.0.1", [fault(Action.CORRUPT, every=9)]
        ).splitlines()
        if "pedit" in line
    )
    # bit 100 is the fifth of the fourth word
    assert "random determ pipe 9 action pedit munge offset 40 u32 invert retain 0x8000000" in line
