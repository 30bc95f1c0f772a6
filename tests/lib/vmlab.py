# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot nodes for tests, prepare them, and watch their kernel logs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import complaints
from requirements import missing
from rocelab import kernel_lines
from rocelab.errors import MissingError, TestbedError
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node, kernel_log
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.prepare_node import install_driver, prepare
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
    testbed = _up(name, line, **options)
    try:
        if prepared:
            image = artifacts.image(line)
            at_once(lambda node: complaints.list_modules(node, image), testbed.nodes)
            prepare(testbed.nodes, artifacts.driver(line), artifacts.probes(line))
            testbed.state.mark_prepared()
        with explained(testbed):
            yield testbed
            at_once(complaints.check, testbed.nodes)
    finally:
        testbed.down()


@contextmanager
def explained(testbed: qemu.QemuTestbed) -> Iterator[None]:
    """If a machine died, say that instead of what failed because of it, and what it said last."""
    try:
        yield
    except TestbedError:
        testbed.alive()
        raise


@contextmanager
def boot_alone(*, name: str, vcpus: int, line: str = LINE) -> Iterator[Node]:
    """One machine with that many processors, our driver loaded, no link and no device."""
    testbed = _up(name, line, provider="veth", vcpus=vcpus)
    try:
        (machine,) = testbed.nodes
        with explained(testbed):
            complaints.list_modules(machine, artifacts.image(line))
            install_driver(machine, artifacts.driver(line))
            yield machine
            complaints.check(machine)
    finally:
        testbed.down()


def _up(name: str, line: str, **options: Any) -> qemu.QemuTestbed:
    """Boot what a test asks for; the test is skipped if this machine cannot.

    A machine that counts takes a second or more for a billion instructions of a busy loop: its
    clock is real time instead.
    """
    try:
        return qemu.up(
            f"{name}-{os.getpid()}",
            line=line,
            mtu=MTU,
            lifeline=True,
            patience=PATIENCE,
            emulation="tcg",
            **{"memory_mb": MEMORY_MB if PATIENCE == 1 else 2 * MEMORY_MB, **options},
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
    found = [
        f"{node.name}: {line}" for node, lines in zip(nodes, upset, strict=True) for line in lines
    ]
    assert not found, "the kernel complained:\n" + "\n".join(found)
