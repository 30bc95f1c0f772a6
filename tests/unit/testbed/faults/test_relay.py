# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames through the relay, over sockets as QEMU's."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from faulty_frames import message
from polling import wait_until
from rocelab.errors import TestbedError
from rocelab.plans.fault import TO_CLIENT, TO_SERVER, Action, FaultPlan
from rocelab.testbed.faults.link import Due, FaultyLink
from rocelab.testbed.faults.relay import DIRECTIONS, Relay, Signal

Ends = dict[tuple[str, str], socket.socket]


class Later(FaultyLink):
    """Every frame to the client comes 20 ms later."""

    def frame(self, direction: str, frame: bytes, now_ns: int) -> list[Due]:
        return [Due(now_ns + (direction == TO_CLIENT) * 20_000_000, direction, frame)]


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[tuple[Relay, Ends]]:
    """A relay, and QEMU's ends of its sockets."""
    with joined(tmp_path, Later(()), lambda _: None) as (made, ends):
        yield made, ends


@contextmanager
def joined(
    folder: Path, link: FaultyLink, signal: Signal
) -> Iterator[tuple[Relay, dict[tuple[str, str], socket.socket]]]:
    made = Relay(folder, link, signal)
    ends: Ends = {}
    for key, path in made.paths.items():
        ends[key] = socket.socket(socket.AF_UNIX)
        ends[key].connect(str(path))
        ends[key].settimeout(20)
    made.start()
    yield made, ends
    for end in ends.values():
        end.close()


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(4) + content


def received(end: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        data += end.recv(count - len(data))
    return data


def test_both_directions(relay: tuple[Relay, Ends]) -> None:
    made, ends = relay
    for direction in DIRECTIONS:
        whole = framed(b"one") + framed(b"second")
        # lengths and frames arrive in pieces
        for part in (whole[:2], whole[2:9], whole[9:]):
            ends[direction, "out"].sendall(part)
        assert received(ends[direction, "into"], len(whole)) == whole
    made.close()
    assert not any(path.exists() for path in made.paths.values())


def test_more_than_a_socket_holds(relay: tuple[Relay, Ends]) -> None:
    """QEMU reads nothing while it writes: the relay must not wait for it."""
    made, ends = relay
    whole = framed(b"x" * 4000) * 1000
    ends[TO_SERVER, "out"].sendall(whole)
    assert received(ends[TO_SERVER, "into"], len(whole)) == whole
    made.close()


def test_a_link_that_fails_is_not_silent(relay: tuple[Relay, Ends]) -> None:
    made, ends = relay
    ends[TO_SERVER, "out"].sendall(b"\xff\xff\xff\xff")
    wait_until("the link fails", lambda: not made.is_running)
    with pytest.raises(TestbedError, match="the faulty link failed"):
        made.close()


def test_qemu_may_close_first(relay: tuple[Relay, Ends]) -> None:
    """As when its redirectors are removed; what is still under way is lost."""
    made, ends = relay
    ends[TO_CLIENT, "out"].sendall(framed(b"late"))
    for end in ends.values():
        end.close()
    made.close()


KILL = FaultPlan(
    name="it",
    action=Action.KILL,
    direction=TO_SERVER,
    message=1,
    packet=1,
    times=1,
    every=0,
    at_us=0,
    every_us=0,
    bit=0,
    duration_us=0,
    count=0,
    rnr_timer=0,
)


def test_frames_wait_until_the_signal_has_worked(tmp_path: Path) -> None:
    """And pass afterwards."""
    asked, may_work = threading.Event(), threading.Event()

    def signal(name: str) -> None:
        assert name == "KILL"
        asked.set()
        assert may_work.wait(20)

    with joined(tmp_path, FaultyLink([KILL]), signal) as (made, ends):
        frames = [framed(each) for each in message(10)]
        ends[TO_SERVER, "out"].sendall(b"".join(frames))
        assert received(ends[TO_SERVER, "into"], len(frames[0])) == frames[0]
        assert asked.wait(20)
        ends[TO_SERVER, "into"].settimeout(0.2)
        with pytest.raises(TimeoutError):
            ends[TO_SERVER, "into"].recv(1)
        ends[TO_SERVER, "into"].settimeout(20)
        may_work.set()
        rest = b"".join(frames[1:])
        assert received(ends[TO_SERVER, "into"], len(rest)) == rest
        made.close()


def test_a_stopped_process_continues_when_the_benchmark_ends(tmp_path: Path) -> None:
    """However long it was to be stopped."""
    sent: list[str] = []
    stop = replace(KILL, action=Action.STOP, duration_us=3600 * 1_000_000)
    with joined(tmp_path, FaultyLink([stop]), sent.append) as (made, ends):
        frames = b"".join(framed(each) for each in message(10))
        ends[TO_SERVER, "out"].sendall(frames)
        assert received(ends[TO_SERVER, "into"], len(frames)) == frames
        assert sent == ["STOP"]
        made.close()
    assert sent == ["STOP", "CONT"]


def test_a_signal_that_fails_is_not_silent(tmp_path: Path) -> None:
    def signal(_: str) -> None:
        raise TestbedError("no such process")

    with joined(tmp_path, FaultyLink([KILL]), signal) as (made, ends):
        ends[TO_SERVER, "out"].sendall(b"".join(framed(each) for each in message(10)))
        wait_until("the link fails", lambda: not made.is_running)
        with pytest.raises(TestbedError, match="the faulty link failed"):
            made.close()
