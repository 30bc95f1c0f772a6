# SPDX-License-Identifier: GPL-2.0-or-later
"""What a capture says of recovery: times, what was sent again, and why."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from faulty_frames import ACK, CLIENT, READ, READ_FIRST, READ_LAST, frame, message
from rocelab.correlate.recovery import Unanswered, recovery
from rocelab.record.faults_document import Event

NAK = 0x60
US = 1000


def capture(path: Path, frames: Sequence[tuple[int, bytes]]) -> Path:
    """Write a pcap of (microsecond, frame)."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    records = (
        struct.pack("<IIII", 1_700_000_000, at, len(one), len(one)) + one for at, one in frames
    )
    path.write_bytes(head + b"".join(records))
    return path


def answer(psn: int, syndrome: int = 0x1F) -> bytes:
    return frame(ACK, psn, to_client=True, syndrome=syndrome)


def event(done: str, psn: int, direction: str = "to_server", opcode: int = 1) -> Event:
    return Event("it", done, direction, 0, opcode, psn, 1, 1)


def test_a_lost_request_is_mended_by_a_nak(tmp_path: Path) -> None:
    first, second = message(10), message(14)
    frames = [
        *((at, each) for at, each in enumerate(first)),
        (20, answer(13)),
        *((30 + at, each) for at, each in enumerate(second)),
        # packet 15 was lost: the server asks for it
        (50, answer(15, NAK)),
        *((60 + at, each) for at, each in enumerate(second[1:])),
        (90, answer(17)),
    ]
    result = recovery(
        capture(tmp_path / "wire.pcap", frames), CLIENT, [event("drop", 15), event("lost", 16)]
    )
    (mended,) = result.mended
    assert (mended.found, mended.recovered_ns) == (True, (90 - 31) * US)
    assert result.usual_ns == (20 - 3) * US
    assert result.sent_again == {"client": 3, "server": 0}
    assert result.causes == {"after_nak": 3}
    assert result.naks == {"psn_sequence_error": 1}


def test_a_lost_answer_is_mended_by_a_later_one(tmp_path: Path) -> None:
    frames = [
        *((at, each) for at, each in enumerate([*message(10), *message(14)])),
        (40, answer(17)),
    ]
    lost = event("drop", 13, "to_client", ACK)
    (mended,) = recovery(capture(tmp_path / "wire.pcap", frames), CLIENT, [lost]).mended
    assert (mended.found, mended.recovered_ns) == (True, (40 - 3) * US)


def test_a_read_needs_its_own_packet(tmp_path: Path) -> None:
    """A later packet of the response does not replace the lost one."""
    request = frame(READ, 5, body=bytes(8) + bytes(4) + (2048).to_bytes(4))
    data = bytes(1024)
    one = frame(READ_FIRST, 5, to_client=True, body=data)
    two = frame(READ_LAST, 6, to_client=True, body=data)
    frames = [(0, request), (10, two), (20, request), (30, one), (31, two)]
    lost = event("drop", 5, "to_client", READ_FIRST)
    (mended,) = recovery(capture(tmp_path / "wire.pcap", frames), CLIENT, [lost]).mended
    assert mended.recovered_ns == 30 * US


def test_what_never_came_has_no_time(tmp_path: Path) -> None:
    """And what the capture does not show is not found."""
    wire = capture(tmp_path / "wire.pcap", [(at, each) for at, each in enumerate(message(10))])
    never, elsewhere = recovery(wire, CLIENT, [event("drop", 13), event("drop", 99)]).mended
    assert (never.found, never.recovered_ns) == (True, None)
    assert (elsewhere.found, elsewhere.recovered_ns) == (False, None)


def test_tries_that_nobody_answers(tmp_path: Path) -> None:
    """They are counted by the fault's own packet, and everything that was sent since."""
    first, second = message(10), message(14)
    frames = [
        *((at, each) for at, each in enumerate(first)),
        (20, answer(13)),
        *((100 * tries + at, each) for tries in (1, 2, 3) for at, each in enumerate(second)),
    ]
    wire = capture(tmp_path / "wire.pcap", frames)
    unanswered = recovery(wire, CLIENT, [event("kill", 15)]).unanswered
    assert unanswered == Unanswered(psn=15, tries=3, sent=11, span_ns=(303 - 101) * US)
    assert recovery(wire, CLIENT, [event("drop", 11)]).unanswered is None
