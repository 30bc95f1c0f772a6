# SPDX-License-Identifier: GPL-2.0-or-later
"""Virtual machines for tests: each file has a fresh pair, and each test checks the kernel log.

    n1 data0 10.44.0.1 ─── lossless stream, captured outside ─── 10.44.0.2 data0 n2

Both nodes run the instrumented driver with device rxe0 on data0, and have the probes. They are
restored from a snapshot, which takes a few seconds: a test that must break a node, or needs another
driver, takes nodes of its own (`boot`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import ssh_inventory
import vmlab
from rocelab.testbed import artifacts, linktap
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import install_probes
from rocelab.testbed.qemu import qemu_testbed as qemu

LONGEST = (
    *("message_cost", "kills", "faults", "injected_costs", "hostile_user", "rxe_windows", "mpi"),
    *("peers", "hosts", "run", "driver_events", "rxestat", "snapshots", "reach_hosts", "storage"),
    *("veth", "rxedump", "scripts", "transfer", "icount", "ab_hosts", "driver_delay", "lines"),
    *("privileges", "rxecpu", "v1", "exec", "mpi_hosts", "native"),
)
"""Files that `pytest -n --dist loadfile --no-loadscope-reorder` begins with, the longest first."""


def _begins(item: pytest.Item) -> int:
    """The place of a test's file in that order."""
    name = item.path.stem.removeprefix("test_")
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder `vm`. A failed test is never run again."""
    for item in items:
        if "/tests/vm/" in str(item.path):
            item.add_marker(pytest.mark.vm)
    items.sort(key=_begins)


@pytest.fixture(scope="session")
def boot() -> vmlab.Boot:
    """`with boot(name="x", prepared=True) as testbed:` brings up two nodes for one test."""
    return vmlab.boot


@pytest.fixture(scope="module")
def shared_testbed() -> Iterator[qemu.QemuTestbed]:
    """The file's two prepared nodes; use `testbed`, which watches their kernel logs."""
    with vmlab.boot(name="test", prepared=True) as testbed:
        yield testbed


@pytest.fixture
def testbed(shared_testbed: qemu.QemuTestbed) -> Iterator[qemu.QemuTestbed]:
    """Two prepared nodes. Leave them as found: driver loaded, rxe0 there, nothing running."""
    with vmlab.explain_death(shared_testbed), vmlab.silent_consoles(shared_testbed):
        yield shared_testbed


@pytest.fixture
def foreign_hosts(testbed: qemu.QemuTestbed, tmp_path: Path) -> Path:
    """Return an inventory that calls the nodes alpha and beta, which are not their host names."""
    line = vmlab.LINE
    programs = [artifacts.mpibench(line), artifacts.probe(linktap.TAP, line)]
    for node in testbed.nodes:
        install_probes(node, programs)
    named = dict(zip(("alpha", "beta"), testbed.nodes, strict=True))
    return ssh_inventory.write(tmp_path / "hosts.toml", named)


@pytest.fixture
def n1(testbed: qemu.QemuTestbed) -> Node:
    """The first node."""
    return testbed.nodes[0]


@pytest.fixture
def n2(testbed: qemu.QemuTestbed) -> Node:
    """The second node."""
    return testbed.nodes[1]
