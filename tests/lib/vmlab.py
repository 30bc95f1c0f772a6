# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot nodes for tests, prepare them, and watch their kernel logs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import complaints
import kernel_log
from requirements import missing
from rocelab import artifacts
from rocelab.errors import MissingError
from rocelab.node import Node
from rocelab.node.prepare import prepare
from rocelab.provider.qemu import testbed as qemu

LINE_CHOSEN = "ROCELAB_TEST_LINE" in os.environ
"""Whether somebody wants one kernel line in particular."""
LINE = os.environ.get("ROCELAB_TEST_LINE", "6.12")
"""The kernel line of the nodes (`make test-kernels` goes through all)."""
PATIENCE = float(os.environ.get("ROCELAB_TEST_PATIENCE", "1"))
"""What time limits are multiplied by: a kernel that checks itself is slow (`make test-debug`)."""
MTU = 4200

Boot = Callable[..., AbstractContextManager[qemu.QemuTestbed]]


@contextmanager
def boot(
    *, name: str, prepared: bool, line: str = LINE, last_line: str = ""
) -> Iterator[qemu.QemuTestbed]:
    """Two nodes for as long as the context lasts, or until this process ends."""
    try:
        testbed = qemu.up(
            f"{name}-{os.getpid()}",
            line=line,
            mtu=MTU,
            last_line=last_line,
            memory_mb=qemu.MEMORY_MB if PATIENCE == 1 else 2 * qemu.MEMORY_MB,
            lifeline=True,
            patience=PATIENCE,
        )
    except MissingError as error:
        missing(f"{error.what}: {error.action}")
    try:
        if prepared:
            for node in testbed.nodes:
                complaints.list_modules(node, artifacts.image(line))
            prepare(testbed.nodes, artifacts.driver(line), artifacts.probes(line))
        yield testbed
        for node in testbed.nodes:
            complaints.check(node)
    finally:
        testbed.down()


@contextmanager
def healthy(nodes: Sequence[Node], name: str) -> Iterator[None]:
    """Fail if a node's kernel log has a complaint from in here."""
    marks = [kernel_log.mark(node, name) for node in nodes]
    yield
    complaints = [
        f"{node.name}: {line}"
        for node, mark in zip(nodes, marks, strict=True)
        for line in kernel_log.upset_since(node, mark)
    ]
    assert not complaints, "the kernel complained:\n" + "\n".join(complaints)
