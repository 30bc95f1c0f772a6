# SPDX-License-Identifier: GPL-2.0-or-later
"""Contexts on several nodes at once: all are left, however they end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Barrier

import pytest

from rocelab.testbed.node import awake
from rocelab.testbed.node.parallel import all_of, at_once


@pytest.mark.parametrize("interrupts", [True, False])
def test_a_signal_ends_commands_that_do_not_end(interrupts: bool) -> None:
    """On all nodes, and of what they began in turn; what cleans up is not ended.

    A signal that comes just before the main thread waits does not interrupt that wait, nor does one
    that another thread takes.
    """
    cleaned = []
    begun = threading.Barrier(4)

    def signals() -> None:
        begun.wait()
        if interrupts:
            os.kill(os.getpid(), signal.SIGINT)
        else:
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    def inner(name: str) -> None:
        begun.wait()
        try:
            awake.run(["sleep", "1000"], stdin=b"", seconds=1000)
        finally:
            done = awake.run(["echo", name], stdin=b"", seconds=100)
            cleaned.append(done.stdout)

    def outer(names: str) -> None:
        at_once(inner, names)

    threading.Thread(target=signals, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        at_once(outer, ["ab", "c"])
    assert sorted(cleaned) == [b"a\n", b"b\n", b"c\n"]


def test_the_next_commands_are_not_ended() -> None:
    """Those that clean up after an interruption."""

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        at_once(interrupted, [1])
    assert at_once(lambda text: awake.run(["echo", text], stdin=b"", seconds=100).stdout, "x")


class Contexts:
    """Three contexts that are entered and left together; `refused` cannot be entered."""

    def __init__(self, refused: str = "") -> None:
        self.refused = refused
        self.left: dict[str, str] = {}
        # one after the other, they would wait for each other for ever
        self.together = Barrier(3 - bool(refused), timeout=300)

    @contextmanager
    def one(self, name: str) -> Iterator[str]:
        if name == self.refused:
            raise OSError(name)
        self.together.wait()
        try:
            yield name
        except BaseException as error:
            self.left[name] = str(error)
            raise
        else:
            self.left[name] = "well"
        finally:
            self.together.wait()

    def each(self) -> list[AbstractContextManager[str]]:
        return [self.one(name) for name in "abc"]


def test_they_are_entered_and_left_together() -> None:
    contexts = Contexts()
    with all_of(contexts.each()) as names:
        assert names == ["a", "b", "c"]
    assert contexts.left == dict.fromkeys("abc", "well")


def test_each_learns_how_the_body_ended() -> None:
    contexts = Contexts()
    with pytest.raises(KeyError, match="body"), all_of(contexts.each()):
        raise KeyError("body")
    assert contexts.left == dict.fromkeys("abc", "'body'")


def test_one_that_cannot_be_entered() -> None:
    contexts = Contexts("b")
    with pytest.raises(OSError, match="b"), all_of(contexts.each()):
        raise AssertionError("not reached")
    assert contexts.left == dict.fromkeys("ac", "b")
