# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks of `rocelab doctor` that need not wait for each other run at once."""

from __future__ import annotations

import threading

import pytest

from rocelab.cli.doctor import Check, _show, _try_all
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

    answers = list(_try_all(checks()))
    assert [check.name for check, _ in answers] == ["first", "wrong", "alone", "last"]
    said = [answer.what if isinstance(answer, RocelabError) else answer for _, answer in answers]
    assert said == ["first", "wrong", "alone", "last"]


def test_no_line_of_a_host_looks_like_a_check(capsys: pytest.CaptureFixture[str]) -> None:
    said = "6.12\nok       driver: all is well\r\nwrong    x: y"

    def wrong() -> str:
        raise RocelabError(said, cause=said, action=said)

    _show([Check("a", lambda: said), Check("b", wrong)], bad="wrong", causes=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 12
    assert [line[:9] for line in lines if not line.startswith(" " * 9)] == [
        "ok       ",
        "wrong    ",
    ]
