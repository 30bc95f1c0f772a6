# SPDX-License-Identifier: GPL-2.0-or-later
"""What a machine is told when it asks who it is, and how it asks."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocelab.errors import TestbedError
from rocelab.testbed.qemu import identity
from rocelab.testbed.qemu.identity import Channel


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[socket.socket]:
    """A socket that listens, as QEMU does for a machine's serial port."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / "n1.channel"))
        listener.listen(1)
        yield listener


def told(folder: Path) -> dict[str, list[str]]:
    lines: dict[str, list[str]] = {}
    for line in identity.identity(
        folder, "n1", {"n1": "10.44.0.1", "n2": "10.44.0.2"}
    ).splitlines():
        word, _, value = line.decode().partition(" ")
        lines.setdefault(word, []).append(value)
    return lines


def test_each_identity_is_another_one(tmp_path: Path) -> None:
    identity.make_keys(tmp_path)
    first, second = told(tmp_path), told(tmp_path)
    assert first["host"] == ["10.44.0.1 n1", "10.44.0.2 n2"]
    assert list(first)[-1] == "go"
    assert base64.b64decode(first["host-key"][0]) == (tmp_path / "host_key").read_bytes()
    assert all(first[word] != second[word] for word in ("random", "machine-id"))
    # the driver's table of queue pairs has one level up to number 63, two up to 4095
    assert all(17 + 47 <= 17 + int(each["queue-pairs"][0]) < 4096 for each in (first, second))
    identity.make_keys(tmp_path)
    third = told(tmp_path)
    assert all(first[word] != third[word] for word in ("host-key", "authorized-key"))
    # a line that the machine's shell reads whole: its terminal keeps 4,095 characters
    assert max(len(value) for values in third.values() for value in values) < 4000


def test_a_word_that_comes_in_parts_is_heard(guest: socket.socket, tmp_path: Path) -> None:
    with Channel(tmp_path / "n1.channel") as channel:
        machine, _ = guest.accept()
        with machine:
            machine.sendall(b"[    1.0] noise\nwai")
            assert not channel.waits(0.1)
            machine.sendall(b"ting\n")
            assert channel.waits(60)


def test_a_machine_that_floods_us_is_no_harm(guest: socket.socket, tmp_path: Path) -> None:
    with Channel(tmp_path / "n1.channel") as channel:
        machine, _ = guest.accept()

        def flood() -> None:
            with machine:
                machine.sendall(b"x" * 10_000_000)

        thread = threading.Thread(target=flood)
        thread.start()
        assert not channel.waits(60)
        thread.join()


def test_a_machine_that_ends_meanwhile_is_an_error(guest: socket.socket, tmp_path: Path) -> None:
    with Channel(tmp_path / "n1.channel") as channel:
        guest.accept()[0].close()
        with pytest.raises(TestbedError, match="did not take its identity"):
            channel.tell(b"go\n", patience=1)
    guest.close()
    with pytest.raises(TestbedError, match="cannot connect"):
        Channel(tmp_path / "n1.channel")
