# SPDX-License-Identifier: GPL-2.0-or-later
"""run_plan uses a testbed that fits, or makes its own and takes it down."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fake_testbed import FakeTestbed
from rocelab.errors import TestbedError, UsageError
from rocelab.measure import run_plan, testbed_for_plan
from rocelab.measure.progress import NullProgress
from rocelab.plans import plan_file
from rocelab.record.folder import RunFolder

PLAN = plan_file.from_toml(
    '[plan]\nname = "p"\nrepetitions = 1\ntransports = ["tcp"]\nprobes = []\n'
    '[[benchmark]]\ntool = "qperf"\ntest = "tcp_lat"\nsizes = [64]\n',
    "p.toml",
)


class Testbed(FakeTestbed):
    """Counts how often it is taken down."""

    __test__ = False
    downs = 0

    def down(self) -> None:
        self.downs += 1


@pytest.mark.parametrize("up", [True, False])
def test_only_its_own_testbed_is_taken_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, up: bool
) -> None:
    testbed = Testbed()
    monkeypatch.setattr(testbed_for_plan, "running", lambda *_: testbed if up else None)
    monkeypatch.setattr(testbed_for_plan, "make", lambda *_: testbed)
    outcome = run_plan.run_plan(PLAN, out=tmp_path, name="default", progress=NullProgress())
    assert (outcome.status, outcome.ok) == ("complete", 1)
    assert testbed.downs == (0 if up else 1)


@pytest.mark.parametrize(("accelerator", "cells"), [("icount", 1), ("kvm", 3)])
def test_counted_instructions_are_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accelerator: str, cells: int
) -> None:
    """The plan may ask for less there; run.json has the numbers that ran."""
    testbed = Testbed(accelerator=accelerator)
    monkeypatch.setattr(testbed_for_plan, "running", lambda *_: testbed)
    benchmark = replace(PLAN.benchmarks[0], iterations=3000, counted_iterations=300)
    plan = replace(PLAN, repetitions=3, counted_repetitions=1, benchmarks=(benchmark,))
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    outcome = run_plan.run_plan(plan, out=tmp_path, name="default", progress=NullProgress())
    assert outcome.ok == cells
    ran = RunFolder.open(outcome.path).plan()
    assert ran.repetitions == cells
    assert ran.benchmarks[0].iterations == (300 if accelerator == "icount" else 3000)


def test_its_testbed_is_taken_down_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed = Testbed()
    monkeypatch.setattr(testbed_for_plan, "running", lambda *_: None)
    monkeypatch.setattr(testbed_for_plan, "make", lambda *_: testbed)

    def fail(*_: object, **__: object) -> None:
        raise TestbedError("it broke")

    monkeypatch.setattr(run_plan.runner, "run", fail)
    with pytest.raises(TestbedError, match="it broke"):
        run_plan.run_plan(PLAN, out=tmp_path, name="default", progress=NullProgress())
    assert testbed.downs == 1


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_that_cannot_be_used_is_refused_before_a_testbed_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resume: bool
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a testbed was made")

    monkeypatch.setattr(testbed_for_plan, "running", fail)
    monkeypatch.setattr(testbed_for_plan, "make", fail)
    where = tmp_path / "file"
    where.write_text("")
    with pytest.raises(UsageError, match="run folder"):
        run_plan.run_plan(
            PLAN,
            out=tmp_path if resume else where / "runs",
            name="default",
            progress=NullProgress(),
            resume=where if resume else None,
        )
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_each_fresh_testbed_is_taken_down_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when one is up that the plan could use, since that one stays up."""
    made: list[Testbed] = []

    def make(*_: object) -> Testbed:
        assert all(each.downs == 1 for each in made)
        made.append(Testbed())
        return made[-1]

    monkeypatch.setattr(testbed_for_plan, "running", lambda *_: None)
    monkeypatch.setattr(testbed_for_plan, "make", make)
    plan = PLAN.with_boots(3)
    outcome = run_plan.run_plan(plan, out=tmp_path, name="default", progress=NullProgress())
    assert (outcome.status, outcome.ok) == ("complete", 3)
    assert [each.downs for each in made] == [1, 1, 1]
