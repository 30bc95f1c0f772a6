# SPDX-License-Identifier: GPL-2.0-or-later
"""Other projects' tests of rxe give the same results on the instrumented driver as on stock.

Stock is the same source, built the same way without the patches. One node runs the instrumented
driver while its peer runs stock.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from rocelab.measure import rdma_core_tests
from rocelab.testbed import artifacts, gid
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import (
    DEVICE,
    add_device,
    install_driver,
    install_probes,
    offer_roce_v1,
)
from vmlab import LINE, Boot, healthy

RECIPE = Path(__file__).parents[2] / f"tools/node/lines/{LINE}.toml"
pytestmark = pytest.mark.skipif(
    not tomllib.loads(RECIPE.read_text())["rdma_core_tests"],
    reason=f"the image of line {LINE} has no rdma-core tests ({RECIPE.name} says why)",
)


def prepare(node: Node, variant: str) -> None:
    """Load a variant of the driver."""
    install_driver(node, artifacts.driver(LINE, variant))
    add_device(node)


@contextmanager
def traced(node: Node) -> Iterator[None]:
    """Trace every packet while the context lasts."""
    install_probes(node, [artifacts.probe("rxestat", LINE)])
    tracing = node.start(["rxestat", "--json", "-o", "/tmp/peers.json"])
    try:
        tracing.wait_for_line("rxestat: ready", timeout=120)
        yield
        tracing.interrupt()
        assert tracing.wait(timeout=120).returncode == 0
    finally:
        tracing.kill()


def compare(nodes: Sequence[Node], transports: tuple[str, str], names: tuple[str, str]) -> None:
    """Run the tests on both nodes at once, each over its transport; assert equal outcomes."""
    comparison = rdma_core_tests.compare((nodes[0], nodes[1]), (LINE, LINE), transports)
    first, second = comparison.counts
    print(f"{names[0]}: {dict(first)}; {names[1]}: {dict(second)}")
    print(f"{names} that differed only at first: {comparison.unsteady}")
    assert first["pass"] >= 90, f"too few tests ran for a comparison: {dict(first)}"
    assert not comparison.different, f"{names} differ every time: {comparison.different}"


def gid_table(node: Node) -> list[tuple[str, str]]:
    """Return GIDs and their types in order, without the parts of addresses that differ by node."""
    gids = gid.gids_of(node, DEVICE, 1)
    return [(f"{entry.index} {entry.address.exploded[:-1]}", entry.type) for entry in gids]


@pytest.mark.parametrize("transport", ["rxe-v1", pytest.param("rxe-v2", marks=pytest.mark.long)])
def test_rdma_core(boot: Boot, transport: str) -> None:
    """The same tests pass on both drivers, the instrumented one being traced meanwhile.

    Over RoCE v1 on one side and v2 on the other, one run compares versions and drivers at once;
    v2 on both sides tells which of them a difference belongs to.
    """
    with boot(name="peers", prepared=False) as testbed:
        nodes = list(testbed.nodes)
        with ThreadPoolExecutor() as pool:
            list(pool.map(prepare, nodes, ("stock", "instrumented")))
        stock, instrumented = map(gid_table, nodes)
        assert stock == instrumented != []
        if transport == "rxe-v1":
            offer_roce_v1(nodes[1:])
        with healthy(nodes, "rdma-core's tests"), traced(nodes[1]):
            compare(nodes, ("rxe-v2", transport), ("stock", f"instrumented over {transport}"))
