# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab ab` on hosts: what it refuses, in which order it measures, what it says at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fake_testbed import FakeTestbed
from rocelab.errors import ExitCode, TestbedError, UsageError
from rocelab.measure import driver_turns, host_turns
from rocelab.measure.progress import NullProgress
from rocelab.plans import plan_file, side
from rocelab.plans.catalog import Provider
from rocelab.plans.plan import Plan
from rocelab.plans.side import Side
from rocelab.testbed.hosts import driver_turn
from rocelab.testbed.node import Completed, Node
from rocelab.testbed.ssh.inventory import Host

PLAN = plan_file.from_toml(
    '[plan]\nname = "p"\nrepetitions = 6\nseed = 1\ntransports = ["rxe-v2"]\n'
    'probes = ["rxestat"]\n[testbed]\nprovider = "ssh"\n'
    '[[benchmark]]\ntool = "perftest"\ntest = "send_bw"\nsizes = [64]\n',
    "p.toml",
)
SIDES = (side.parse("instrumented"), side.parse("delay"))
HOSTS = (Host("alpha", "a", "eth1"), Host("beta", "b", "eth1"))


@pytest.mark.parametrize(
    ("text", "what"),
    [("instrumented+mtu:1500", "another MTU"), ("line:7.x", "another kernel")],
)
def test_sides_that_hosts_cannot_have(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        host_turns.check(PLAN, (SIDES[0], side.parse(text)))


def test_plans_that_hosts_cannot_have() -> None:
    host_turns.check(PLAN, SIDES)
    slurm = replace(PLAN, testbed=replace(PLAN.testbed, provider=Provider.SLURM))
    with pytest.raises(UsageError, match="hosts by SSH"):
        host_turns.check(slurm, SIDES)
    with pytest.raises(UsageError, match="no stages"):
        host_turns.check(replace(PLAN, probes=()), SIDES)
    with pytest.raises(UsageError, match="the plan needs 2 hosts"):
        host_turns.Hosts(PLAN, HOSTS[:1], lambda _: None)


def host(name: str, kernel: str) -> Node:
    def run(argv: Sequence[str], **_: object) -> Completed:
        return Completed(tuple(argv), 0, kernel, "")

    return cast("Node", SimpleNamespace(name=name, run=run))


def test_hosts_with_different_kernels() -> None:
    """The same release of another build is another kernel."""
    one = "6.12.1-amd64 #1 SMP Debian 6.12.1-1 (2026-01-01) x86_64\n"
    host_turns.check_alike([host("alpha", one), host("beta", one)])
    with pytest.raises(TestbedError, match="alpha and beta run different kernels"):
        host_turns.check_alike([host("alpha", one), host("beta", one.replace("01-01", "02-02"))])


class Recorded:
    """Machines that note which side they carry (…driver_turns.Turns)."""

    def __init__(self, accelerator: str = "native") -> None:
        self.accelerator = accelerator
        self.carried: list[str] = []
        self.up = True

    def drivers(self, sides: Sequence[Side]) -> list[str]:
        return [one.text for one in sides]

    def begin(self, side: Side) -> None:
        del side

    @contextmanager
    def carrying(self, side: Side, driver: str) -> Iterator[FakeTestbed]:
        assert driver == side.text
        self.carried.append(driver)
        yield FakeTestbed(accelerator=self.accelerator)

    def down(self) -> None:
        self.up = False


def test_each_round_has_both_sides_in_seeded_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same seed gives the same order, and neither side is always the first."""
    monkeypatch.setattr(driver_turns, "_once", lambda *words: tmp_path / f"{words[2]}-{words[1]}")
    orders = []
    for _ in range(2):
        made = Recorded()
        runs = driver_turns.measure(
            *(PLAN, SIDES, made.drivers(SIDES), made),
            out=tmp_path,
            rounds=None,
            progress=NullProgress(),
        )
        assert [path.name for path in runs.base] == [f"{n}-base" for n in range(1, 7)]
        assert [path.name for path in runs.change] == [f"{n}-change" for n in range(1, 7)]
        orders.append(made.carried)
    assert orders[0] == orders[1]
    rounds = [tuple(orders[0][n : n + 2]) for n in range(0, 12, 2)]
    assert {tuple(sorted(each)) for each in rounds} == {("delay", "instrumented")}
    assert len(set(rounds)) == 2


@pytest.mark.parametrize(
    ("accelerator", "iterations"), [("native", 3000), ("tcg", 3000), ("icount", 300)]
)
def test_fewer_messages_where_instructions_are_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, accelerator: str, iterations: int
) -> None:
    """As the plan says; in real time what starts and ends a benchmark weighs less."""
    benchmark = replace(PLAN.benchmarks[0], iterations=3000, counted_iterations=300)
    plan = replace(PLAN, benchmarks=(benchmark,))
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    ran: list[Plan] = []

    def run(plan: Plan, *_: object, **__: object) -> SimpleNamespace:
        ran.append(plan)
        return SimpleNamespace(ended_by="", error=None, exit_code=ExitCode.OK, path=tmp_path)

    monkeypatch.setattr(driver_turns.runner, "run", run)
    made = Recorded(accelerator)
    driver_turns.measure(
        *(plan, SIDES, made.drivers(SIDES), made), out=tmp_path, rounds=1, progress=NullProgress()
    )
    assert [each.benchmarks[0].iterations for each in ran] == [iterations] * 2


@pytest.fixture
def borrowed(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], host_turns.Hosts]:
    """Hosts of which one does not get its driver back."""

    def check(node: str, owed: object) -> None:
        if node == "beta":
            raise TestbedError("beta lacks it", cause=str(owed), action="do this")

    def made(said: list[str]) -> host_turns.Hosts:
        turns = host_turns.Hosts(PLAN, HOSTS, said.append)
        there: Any = SimpleNamespace(nodes=("alpha", "beta"), owed=(1, 2), each=lambda: [0, 1])
        turns._borrowed = there
        return turns

    monkeypatch.setattr(driver_turn, "check_restored", check)
    return made


def test_a_driver_that_did_not_come_back_is_an_error(
    borrowed: Callable[[list[str]], host_turns.Hosts],
) -> None:
    said: list[str] = []
    with pytest.raises(TestbedError, match="beta lacks it"):
        borrowed(said).down()
    assert not said


def test_what_went_wrong_first_stays_the_error(
    borrowed: Callable[[list[str]], host_turns.Hosts],
) -> None:
    """As the command leaves its machines."""
    said: list[str] = []
    hosts = borrowed(said)

    class Command:
        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            hosts.down()

    with pytest.raises(UsageError, match="first"), Command():
        raise UsageError("first")
    assert said == ["beta lacks it: 2. do this"]
