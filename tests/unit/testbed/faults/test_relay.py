# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames through the relay, over sockets as QEMU's."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocelab.errors import TestbedError
from rocelab.plans.fault import TO_CLIENT, TO_SERVER
from rocelab.testbed.faults.link import Due, FaultyLink
from rocelab.testbed.faults.relay import DIRECTIONS, Relay

Ends = dict[tuple[str, str], socket.socket]


class Later(FaultyLink):
    """Every frame to the client comes 20 ms later."""

    def frame(self, direction: str, frame: bytes, now_ns: int) -> list[Due]:
        return [Due(now_ns + (direction == TO_CLIENT) * 20_000_000, direction, frame)]


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[tuple[Relay, Ends]]:
    """A relay, and QEMU's ends of its sockets."""
    made = Relay(tmp_path, Later(()))
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
    deadline = time.monotonic() + 20
    while made.is_running:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(TestbedError, match="the faulty link failed"):
        made.close()


def test_qemu_may_close_first(relay: tuple[Relay, Ends]) -> None:
    """As when its redirectors are removed; what is still under way is lost."""
    made, ends = relay
    ends[TO_CLIENT, "out"].sendall(framed(b"late"))
    for end in ends.values():
        end.close()
    made.close()
