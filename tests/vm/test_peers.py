# SPDX-License-Identifier: GPL-2.0-or-later
"""Other projects' tests of rxe give the same results on the instrumented driver as on stock.

Stock is the same source, built the same way without the patches. One node runs the instrumented
driver while its peer runs stock.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from rocelab.plans.catalog import TRANSPORTS
from rocelab.testbed import artifacts, gid, verbs, verbs_ports
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import (
    DEVICE,
    add_device,
    install_driver,
    install_probes,
    offer_roce_v1,
)
from vmlab import LINE, Boot, healthy

TESTS = "/usr/src/rdma-core/tests"
RECIPE = Path(__file__).parents[2] / f"tools/node/lines/{LINE}.toml"
pytestmark = pytest.mark.skipif(
    not tomllib.loads(RECIPE.read_text())["rdma_core_tests"],
    reason=f"the image of line {LINE} has no rdma-core tests ({RECIPE.name} says why)",
)

RETRIES = 5
"""Runs of a test whose outcomes differ: some race with the driver's own work queue (test_resize_cq
shrinks a queue while its completions may or may not be in it yet), on any driver."""

Outcomes = dict[str, str]


def outcomes(node: Node, transport: str, tests: Sequence[str] = ()) -> Outcomes:
    """Run rdma-core's tests (all, or those named) on a node, with a GID of the transport."""
    end = verbs.end(node, verbs_ports.find(node), TRANSPORTS[transport])
    command = ["python3", "/tmp/pyverbs_each.py", DEVICE, str(end.gid_index), "60", *tests]
    done = node.run(["env", f"--chdir={TESTS}", *command], timeout=1200)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["test"]: row["outcome"] for row in rows}


def prepare(node: Node, variant: str) -> None:
    """Load a variant of the driver, and copy the test runner."""
    install_driver(node, artifacts.driver(LINE, variant))
    add_device(node)
    node.put(Path(__file__).with_name("pyverbs_each.py"), "/tmp/pyverbs_each.py")


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


def differing(one: Outcomes, other: Outcomes) -> dict[str, tuple[str | None, str | None]]:
    """Return the tests whose outcomes differ, with both outcomes."""
    return {
        test: (one.get(test), other.get(test))
        for test in sorted(one.keys() | other.keys())
        if one.get(test) != other.get(test)
    }


def compare(nodes: Sequence[Node], transports: tuple[str, str], names: tuple[str, str]) -> None:
    """Run the tests on both nodes at once, each over its transport; assert equal outcomes."""
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(outcomes, nodes, transports)
        different = differing(first, second)
        tries = [different]
        while different and len(tries) <= RETRIES:
            again = pool.map(outcomes, nodes, transports, [list(different)] * 2)
            different = differing(*again)
            tries.append(different)
    count = Counter(first.values())
    print(f"{names[0]}: {dict(count)}; {names[1]}: {dict(Counter(second.values()))}")
    print(f"{names} that differed, try by try:", *tries, sep="\n")
    assert count["pass"] >= 90, f"too few tests ran for a comparison: {dict(count)}"
    assert not different, f"{names} differ every time: {different}"


def gid_table(node: Node) -> list[tuple[str, str]]:
    """Return GIDs and their types in order, without the parts of addresses that differ by node."""
    port = f"/sys/class/infiniband/{DEVICE}/ports/1"
    # grep fails on entries without a GID; its output is still complete
    found = gid.parse(
        node.run(["grep", "-rs", "", f"{port}/gids", f"{port}/gid_attrs/types"], check=False).stdout
    )
    return [(f"{entry.index} {entry.address.exploded[:-1]}", entry.type) for entry in found]


def test_rdma_core(boot: Boot) -> None:
    """The same tests pass on both drivers, the instrumented one being traced meanwhile; then the
    same over RoCE v1 as over v2, on the instrumented driver."""
    with boot(name="peers", prepared=False) as testbed:
        nodes = list(testbed.nodes)
        with ThreadPoolExecutor() as pool:
            list(pool.map(prepare, nodes, ("stock", "instrumented")))
        stock, instrumented = map(gid_table, nodes)
        assert stock == instrumented != []
        with healthy(nodes, "rdma-core's tests"), traced(nodes[1]):
            compare(nodes, ("rxe-v2", "rxe-v2"), ("stock", "instrumented"))
        install_driver(nodes[0], artifacts.driver(LINE))
        offer_roce_v1(nodes)
        with healthy(nodes, "rdma-core's tests over v1"):
            compare(nodes, ("rxe-v1", "rxe-v2"), ("v1", "v2"))
