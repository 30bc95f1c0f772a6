# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks of `rocelab doctor` that need not wait for each other run at once."""

from __future__ import annotations

import threading

from rocelab.cli.doctor import Check, _tried
from rocelab.errors import RocelabError


def test_checks_meet_and_answers_keep_their_order() -> None:
    """Two checks wait for each other; one that must be alone waits for both."""
    meeting = threading.Barrier(2, timeout=300)
    done = []

    def meets(name: str) -> str:
        meeting.wait()
        done.append(name)
        return name

    def wrong() -> str:
        meeting.wait()
        done.append("wrong")
        raise RocelabError("wrong")

    def alone() -> str:
        assert sorted(done[:2]) == ["first", "wrong"]
        return "alone"

    def checks():
        yield Check("first", lambda: meets("first"), alone=False)
        yield Check("wrong", wrong, alone=False)
        yield Check("alone", alone)
        # a check may depend on what those before it found
        assert len(done) == 2
        yield Check("last", lambda: "last", alone=False)

    answers = list(_tried(checks()))
    assert [check.name for check, _ in answers] == ["first", "wrong", "alone", "last"]
    said = [found.what if isinstance(found, RocelabError) else found for _, found in answers]
    assert said == ["first", "wrong", "alone", "last"]
