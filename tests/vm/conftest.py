# SPDX-License-Identifier: GPL-2.0-or-later
"""Virtual machines for tests: one boot for all of them, the kernel log watched around each.

    n1 data0 10.44.0.1 ─── lossless stream, captured outside ─── 10.44.0.2 data0 n2

Both nodes run the instrumented driver with device rxe0 on data0, and have rxestat. A test that
must break a node, or needs another driver, boots its own (`boot`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import vmlab
from rocelab.testbed.node import Node
from rocelab.testbed.qemu import qemu_testbed as qemu


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder boots machines, and what fails has failed: no test runs twice.

    Tests on the shared nodes come last, so that these do not idle while others boot their own.
    """
    for item in items:
        if "/tests/vm/" in str(item.path):
            item.add_marker(pytest.mark.vm)
    items.sort(key=lambda item: "shared_testbed" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def boot() -> vmlab.Boot:
    """`with boot(name="x", prepared=True) as testbed:` boots two nodes of a test's own."""
    return vmlab.boot


@pytest.fixture(scope="session")
def shared_testbed() -> Iterator[qemu.QemuTestbed]:
    """The session's two prepared nodes; use `testbed`, which watches their kernel logs."""
    with vmlab.boot(name="test", prepared=True) as testbed:
        yield testbed


@pytest.fixture
def testbed(
    shared_testbed: qemu.QemuTestbed, request: pytest.FixtureRequest
) -> Iterator[qemu.QemuTestbed]:
    """Two prepared nodes. Leave them as found: driver loaded, rxe0 there, nothing running."""
    with vmlab.healthy(shared_testbed.nodes, request.node.name):
        yield shared_testbed


@pytest.fixture
def n1(testbed: qemu.QemuTestbed) -> Node:
    """The first node."""
    return testbed.nodes[0]


@pytest.fixture
def n2(testbed: qemu.QemuTestbed) -> Node:
    """The second node."""
    return testbed.nodes[1]
