# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab ab --check`: the sentence, the table and the document of what was found."""

from __future__ import annotations

import json

import pytest

from rocelab.compare.driver_change import Answer
from rocelab.record.driver_check import FRAMES, TESTS, Check, Trouble
from rocelab.terminal import ab_tables, console

PASSED = {"pass": 90, "skip": 40}
TEST = "tests.test_atomic.AtomicTest.test_atomic_fetch_and_add"
SPLAT = ("WARNING: CPU: 0 PID: 7 at rxe_recv.c:385 rxe_rcv (tests.test_cq)", "Call Trace:")


def check(
    *troubles: Trouble,
    differing: dict[str, tuple[str | None, str | None]] | None = None,
    unsteady: dict[str, tuple[str | None, str | None]] | None = None,
    not_run: str = "",
) -> Check:
    """What was found, with 10^4 frames for each side."""
    tests = None if not_run else (PASSED, PASSED)
    return Check(tests, not_run, differing or {}, unsteady or {}, (10_000, 10_000), troubles)


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (check(), "rdma-core's tests equal; 10^4 hostile frames: no complaint"),
        (
            check(unsteady={TEST: ("pass", "fail")}),
            "rdma-core's tests equal; 10^4 hostile frames: no complaint",
        ),
        (
            check(differing={TEST: ("pass", "fail")}),
            "rdma-core's tests differ in test_atomic_fetch_and_add (pass on base, fail on "
            "change); 10^4 hostile frames: no complaint",
        ),
        (
            check(differing={f"t.x{n}": ("pass", None) for n in range(5)}),
            "rdma-core's tests differ in x0 (pass on base, not run on change), x1 (pass on base, "
            "not run on change), x2 (pass on base, not run on change), 2 more; "
            "10^4 hostile frames: no complaint",
        ),
        (
            check(Trouble("change", FRAMES, SPLAT)),
            f"rdma-core's tests equal; 10^4 hostile frames: change: {SPLAT[0]}",
        ),
        (
            check(Trouble("base", TESTS, ("the node died: BUG: unable to handle page fault",))),
            "rdma-core's tests: base: the node died: BUG: unable to handle page fault; "
            "10^4 hostile frames: no complaint",
        ),
        (
            check(not_run="The image has none."),
            "rdma-core's tests not run; 10^4 hostile frames: no complaint",
        ),
    ],
)
def test_sentence(result: Check, sentence: str) -> None:
    assert result.sentence == sentence
    assert result.is_good == (not result.differing and not result.troubles)


def test_a_node_that_died_has_no_count() -> None:
    """Nobody knows how many of the frames it got."""
    died = Trouble("change", FRAMES, ("the node died: kernel BUG at rxe_recv.c:381!",))
    result = Check((PASSED, PASSED), "", {}, {}, (10_000, 0), (died,))
    assert result.sentence.endswith(
        "; hostile frames: change: the node died: kernel BUG at rxe_recv.c:381!"
    )


def test_output() -> None:
    """A test that differs and a complaint are printed in 80 columns; JSON has all of both."""
    long = Trouble("change", FRAMES, (*SPLAT, *(f" frame_{n}+0x1/0x2" for n in range(40))))
    raced = {"tests.test_cq.CQTest.test_resize_cq": ("fail", "pass")}
    result = check(long, differing={TEST: ("pass", "crash")}, unsteady=raced)
    answer = Answer("icount", 2, (), ((), ()), ())
    with console.out().capture() as printed:
        console.out().print(ab_tables.render(answer, "instrumented", "./mine", (), result))
    text = printed.get()
    assert max(map(len, text.splitlines())) <= 80
    assert f"{TEST} " in text
    assert "crash" in text
    assert "change, hostile frames:" in text
    assert "frame_17" in text
    assert "frame_18" not in text
    assert "rdma-core's tests, base: 90 pass, 40 skip; change: 90 pass, 40 skip" in text
    once = "equal in a later try: tests.test_cq.CQTest.test_resize_cq, at first fail on base"
    assert once in " ".join(text.split())
    document = json.loads(json.dumps(result.document()))
    assert document["good"] is False
    (unsteady,) = document["unsteady"]
    assert (unsteady["base"], unsteady["change"]) == ("fail", "pass")
    assert document["differing"] == [{"test": TEST, "base": "pass", "change": "crash"}]
    assert document["frames"] == {"base": 10_000, "change": 10_000}
    assert len(document["troubles"][0]["lines"]) == 42


def test_why_no_tests_ran() -> None:
    result = check(not_run="The node image of kernel line 6.1 has no rdma-core tests.")
    answer = Answer("icount", 2, (), ((), ()), ())
    with console.out().capture() as printed:
        console.out().print(ab_tables.render(answer, "line:6.1", "./mine", (), result))
    assert "The node image of kernel line 6.1 has no rdma-core tests." in printed.get()
    assert result.document()["tests"] is None
