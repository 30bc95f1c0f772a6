# SPDX-License-Identifier: GPL-2.0-or-later
"""Contexts on several nodes at once: all are left, however they end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Barrier

import pytest

from rocelab.testbed.node.parallel import all_of


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
