# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot nodes for tests, prepare them, and watch their kernel logs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import complaints
from requirements import missing
from rocelab import kernel_lines
from rocelab.errors import MissingError, TestbedError
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node, kernel_log
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.prepare_node import install_driver
from rocelab.testbed.preparation import Payload, Preparation, digest
from rocelab.testbed.qemu import bring_up
from rocelab.testbed.qemu import qemu_testbed as qemu
from rocelab.testbed.qemu.machine_spec import MEMORY_MB

LINE_CHOSEN = "ROCELAB_TEST_LINE" in os.environ
"""Whether somebody wants one kernel line in particular."""
LINE = os.environ.get("ROCELAB_TEST_LINE", kernel_lines.DEFAULT_LINE)
"""The kernel line of the nodes (`make test-kernels` goes through all)."""
PATIENCE = float(os.environ.get("ROCELAB_TEST_PATIENCE", "1"))
"""Factor for time limits: a debug kernel is slow (`make test-debug`)."""
MTU = 4200

Boot = Callable[..., AbstractContextManager[qemu.QemuTestbed]]


@contextmanager
def boot(
    *, name: str, prepared: bool, line: str = LINE, **options: Any
) -> Iterator[qemu.QemuTestbed]:
    """Two nodes for as long as the context lasts, or until this process ends.

    `options` are those of rocelab.testbed.qemu.qemu_testbed.up, such as `nodes`.
    """
    testbed = _up(name, line, _preparation(line) if prepared else None, **options)
    try:
        if prepared:
            testbed.state.mark_prepared()
        with explain_death(testbed):
            yield testbed
            at_once(complaints.check, testbed.nodes)
    finally:
        testbed.down()


def _preparation(line: str, *, alone: bool = False) -> Preparation:
    """What is on the machines of tests: driver and probes; `alone`: only the driver, no device."""
    driver, image = artifacts.driver(line), artifacts.image(line)
    payload = Payload(driver, () if alone else tuple(artifacts.probes(line)))

    def apply(nodes: Sequence[Node]) -> None:
        at_once(lambda node: complaints.list_modules(node, image), nodes)
        if alone:
            at_once(lambda node: install_driver(node, driver), nodes)
        else:
            payload.install(nodes)

    listings = [path.read_bytes() for path in sorted((image / "modules").glob("*"))]
    return Preparation(
        payload.text, digest([str(alone).encode(), *payload.contents(), *listings]), apply
    )


@contextmanager
def explain_death(testbed: qemu.QemuTestbed) -> Iterator[None]:
    """If a machine died, say that instead of what failed because of it, and what it said last."""
    try:
        yield
    except TestbedError:
        testbed.alive()
        raise


@contextmanager
def boot_alone(*, name: str, vcpus: int, line: str = LINE) -> Iterator[Node]:
    """One machine with that many processors, our driver loaded, no link and no device."""
    node_preparation = _preparation(line, alone=True)
    testbed = _up(name, line, node_preparation, provider="veth", vcpus=vcpus)
    try:
        (machine,) = testbed.nodes
        assert int(machine.run(["nproc"]).stdout) == vcpus
        with explain_death(testbed):
            yield machine
            complaints.check(machine)
    finally:
        testbed.down()


def _up(name: str, line: str, preparation: Preparation | None, **options: Any) -> qemu.QemuTestbed:
    """Bring up what a test asks for; the test is skipped if this machine cannot.

    A machine that counts takes a second or more for a billion instructions of a busy loop: its
    clock is real time instead.
    """
    try:
        return bring_up.up(
            f"{name}-{os.getpid()}",
            line=line,
            mtu=MTU,
            lifeline=True,
            patience=PATIENCE,
            preparation=preparation,
            **{
                "emulation": "tcg",
                "memory_mb": MEMORY_MB if PATIENCE == 1 else 2 * MEMORY_MB,
                **options,
            },
        )
    except MissingError as error:
        missing(f"{error.what}: {error.action}")


@contextmanager
def healthy(nodes: Sequence[Node], name: str) -> Iterator[None]:
    """Fail if a node's kernel log has a complaint from in here."""
    marks = at_once(lambda node: kernel_log.mark(node, name), nodes)
    yield
    upset = at_once(
        lambda marked: kernel_log.upset_since(*marked), list(zip(nodes, marks, strict=True))
    )
    _refuse({node.name: lines for node, lines in zip(nodes, upset, strict=True)})


@contextmanager
def silent_consoles(testbed: qemu.QemuTestbed) -> Iterator[None]:
    """Fail if a node's console has a complaint from in here. This takes nothing of the nodes."""
    names = [node.name for node in testbed.nodes]
    before = {name: len(testbed.state.console(name)) for name in names}
    yield
    _refuse(
        {name: kernel_log.complaints(testbed.state.console(name)[before[name] :]) for name in names}
    )


def _refuse(complaints_of: Mapping[str, Sequence[str]]) -> None:
    lines_of_all = [f"{name}: {line}" for name, lines in complaints_of.items() for line in lines]
    assert not lines_of_all, "the kernel complained:\n" + "\n".join(lines_of_all)
