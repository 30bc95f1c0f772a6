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
from rocelab.node.parallel import at_once
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
            image = artifacts.image(line)
            at_once(lambda node: complaints.list_modules(node, image), testbed.nodes)
            prepare(testbed.nodes, artifacts.driver(line), artifacts.probes(line))
        yield testbed
        at_once(complaints.check, testbed.nodes)
    finally:
        testbed.down()


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
