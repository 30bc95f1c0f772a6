# SPDX-License-Identifier: GPL-2.0-or-later
"""Check that two drivers are right: rdma-core's tests, test by test, and hostile frames.

Machines that count instructions are too slow for tests that wait, so these have a clock that
runs. After a complaint a machine is booted again: its kernel is not what it was.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from rocelab.errors import TestbedError
from rocelab.measure import hostile_frames, rdma_core_tests
from rocelab.measure.driver_turns import sysctls
from rocelab.plans.plan import Plan
from rocelab.plans.side import Side
from rocelab.record.driver_check import FRAMES, TESTS, Check, Trouble, Which
from rocelab.testbed import artifacts
from rocelab.testbed.artifacts import Driver
from rocelab.testbed.node import Node, kernel_log
from rocelab.testbed.node.prepare_node import (
    add_device,
    install_driver,
    offer_roce_v1,
    remove_device,
    unload,
)
from rocelab.testbed.qemu import bring_up
from rocelab.testbed.qemu.last_words import last_words
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rocelab.testbed.qemu.state_folder import State

Say = Callable[[str], None]
COUNT = 10_000
"""Hostile frames for each side."""
NAMES: tuple[Which, Which] = ("base", "change")
_CONSOLE_LINES = 200
"""Of a dead machine, in which its last complaint is looked for."""
_DEATH_SECONDS = 10
"""Until the supervisor has noticed that a machine ended."""
_TRANSPORTS = ("rxe-v2", "rxe-v2")


@dataclass(frozen=True)
class _Driven:
    """A side, its driver, and the machines of its kernel line and MTU."""

    which: Which
    side: Side
    driver: Driver
    line: str
    mtu: int


def require_programs(plan: Plan, sides: tuple[Side, Side]) -> None:
    """Raise MissingError unless what sends hostile frames was built for both sides' lines."""
    for line in sorted({side.line or plan.testbed.line for side in sides}):
        artifacts.check_program("frame_fuzz", line)


def check(plan: Plan, sides: tuple[Side, Side], built: Sequence[Driver], say: Say) -> Check:
    """Run the tests on both sides, then send hostile frames to each."""
    where = plan.testbed
    driven = [
        _Driven(name, side, driver, side.line or where.line, side.mtu or where.mtu)
        for name, side, driver in zip(NAMES, sides, built, strict=True)
    ]
    without = sorted({one.line for one in driven if not artifacts.rdma_core_tests(one.line)})
    with _Machines(say) as machines:
        troubles: list[Trouble] = []
        counts, differing, unsteady = None, {}, {}
        if not without:
            compared, troubles = _tests(driven, machines, say)
            if compared:
                counts, differing, unsteady = compared.counts, compared.different, compared.unsteady
        sent = []
        for number, one in enumerate(driven):
            say(f"sending {COUNT:,} hostile frames to {one.which}")
            count, new_troubles = _frames(one, machines, number, plan.seed)
            sent.append(count)
            troubles += new_troubles
    return Check(
        tests=counts,
        not_run=_no_tests(without),
        differing=differing,
        unsteady=unsteady,
        frames=(sent[0], sent[1]),
        troubles=tuple(troubles),
    )


def _no_tests(lines: Sequence[str]) -> str:
    if not lines:
        return ""
    return (
        f"The node image of kernel line {', '.join(lines)} has no rdma-core tests "
        "(tools/node/lines says why). They run if both sides have line:6.12 or line:7.x."
    )


class _Machines:
    """Pairs of machines by kernel line and MTU: one pair for both sides if they share these."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._up: dict[tuple[str, int], QemuTestbed] = {}
        self._locks = ExitStack()
        self._made = 0

    def __enter__(self) -> _Machines:
        return self

    def __exit__(self, *_: object) -> None:
        while self._up:
            self._up.popitem()[1].down()
        self._locks.close()

    def of(self, one: _Driven, number: int) -> tuple[Node, Node]:
        """Return the machine that has a side's driver, and the other of that pair."""
        key = (one.line, one.mtu)
        if key not in self._up:
            name = f"ab-check-{os.getpid()}-{self._made}"
            self._made += 1
            self._locks.enter_context(State(name).hold())
            self._up[key] = bring_up.up(
                name,
                line=one.line,
                mtu=one.mtu,
                emulation="tcg",
                lifeline=True,
                say=self._say,
            )
        nodes = self._up[key].nodes
        return nodes[number], nodes[1 - number]

    def forget(self, one: _Driven) -> None:
        """Boot that pair again before it is next used."""
        testbed = self._up.pop((one.line, one.mtu), None)
        if testbed:
            testbed.down()

    def death(self, node: Node, *, seconds: float = 0) -> tuple[str, ...]:
        """Return what a dead machine's console said last, nothing if it lives after that time."""
        (testbed,) = (one for one in self._up.values() if node in one.nodes)
        deadline = time.monotonic() + seconds
        while node.name not in testbed.state.exit_statuses():
            if time.monotonic() >= deadline:
                return ()
            time.sleep(0.1)
        console = testbed.state.console(node.name)
        complaints = kernel_log.complaints(console[-_CONSOLE_LINES:]) or console[-1:]
        why = "".join(complaints[:1])
        for during in (TESTS, FRAMES):  # which is said anyway
            why = why.removesuffix(f" ({during})")
        return (f"the node died: {why}", *last_words(console))


@contextmanager
def _carrying(one: _Driven, node: Node) -> Iterator[None]:
    """Give a node a side's driver, device and settings."""
    install_driver(node, one.driver, one.side.parameters)
    add_device(node)
    with sysctls(node, one.side.sysctls):
        yield


@contextmanager
def _watch(
    sides: Sequence[tuple[_Driven, Node]], during: str, machines: _Machines, troubles: list[Trouble]
) -> Iterator[None]:
    """Add to `troubles` what the nodes complain about, that they die, or what else goes wrong.

    An error that could be either side's is raised.
    """
    marks = [kernel_log.mark(node, during) for _, node in sides]
    error: TestbedError | None = None
    try:
        yield
    except TestbedError as raised:
        error = raised
    before = len(troubles)
    for (one, node), mark in zip(sides, marks, strict=True):
        complaints = machines.death(node, seconds=_DEATH_SECONDS if error else 0)
        if not complaints:
            try:
                complaints = tuple(kernel_log.upset_since(node, mark))
            except TestbedError as silent:
                complaints = machines.death(node, seconds=_DEATH_SECONDS) or _error_lines(silent)
        if complaints:
            troubles.append(Trouble(one.which, during, complaints))
    if error and len(troubles) == before:
        if len(sides) > 1:
            raise error
        troubles.append(Trouble(sides[0][0].which, during, _error_lines(error)))


def _error_lines(error: TestbedError) -> tuple[str, ...]:
    return (error.what, *error.cause.splitlines())


def _tests(
    driven: Sequence[_Driven], machines: _Machines, say: Say
) -> tuple[rdma_core_tests.Compared | None, list[Trouble]]:
    nodes = [machines.of(one, number)[0] for number, one in enumerate(driven)]
    say("running rdma-core's tests on base and change")
    troubles: list[Trouble] = []
    compared: rdma_core_tests.Compared | None = None
    pairs = list(zip(driven, nodes, strict=True))
    with ExitStack() as stack:
        stack.enter_context(_watch(pairs, TESTS, machines, troubles))
        for one, node in pairs:
            stack.enter_context(_carrying(one, node))
        compared = rdma_core_tests.compare(
            (nodes[0], nodes[1]), (driven[0].line, driven[1].line), _TRANSPORTS
        )
    if troubles:
        for one in driven:
            machines.forget(one)
    return compared, troubles


def _frames(one: _Driven, machines: _Machines, number: int, seed: int) -> tuple[int, list[Trouble]]:
    victim, attacker = machines.of(one, number)
    sent = 0
    troubles: list[Trouble] = []
    with ExitStack() as stack:
        stack.enter_context(_watch([(one, victim)], FRAMES, machines, troubles))
        stack.enter_context(_carrying(one, victim))
        offer_roce_v1([victim])
        remove_device(attacker)  # it could answer
        victim.run(["ip", "link", "set", victim.link.netdev, "promisc", "on"])
        target, _ = stack.enter_context(hostile_frames.install(victim, one.line))
        _, fuzz = stack.enter_context(hostile_frames.install(attacker, one.line))
        with hostile_frames.targets(victim, target, attacker.link.ipv4) as on:
            for version in hostile_frames.KINDS:
                sent += hostile_frames.attack(
                    *(version, victim, attacker, on),
                    program=fuzz,
                    count=COUNT // len(hostile_frames.KINDS),
                    seed=seed,
                )
        # deleting the device waits for its last reference: a leaked one is found here
        remove_device(victim)
        unload(victim)
    if troubles:
        machines.forget(one)
    return sent, troubles
