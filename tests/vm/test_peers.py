# SPDX-License-Identifier: GPL-2.0-or-later
"""What others test rxe with gives on the instrumented driver what it gives on stock.

Stock is the same source, built the same way without the patches; one node runs the one driver,
its peer the other, at the same time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from rocelab import artifacts
from rocelab.bench.catalog import TRANSPORTS
from rocelab.node import Node
from rocelab.node.prepare import DEVICE, add_device, install_driver, install_probes
from rocelab.run import verbs
from vmlab import LINE, Boot, healthy

TESTS = "/usr/src/rdma-core/tests"


RETRIES = 5
"""Runs of a test whose outcomes differ: some race with the driver's own work queue (test_resize_cq
shrinks a queue while its completions may or may not be in it yet), on any driver."""

Outcomes = dict[str, str]


def outcomes(node: Node, tests: Sequence[str] = ()) -> Outcomes:
    """What rdma-core's tests (all, or those named) give on a node."""
    end = verbs.end(node, verbs.find(node), TRANSPORTS["rxe-v2"])
    command = ["python3", "/tmp/pyverbs_each.py", DEVICE, str(end.gid_index), "60", *tests]
    done = node.run(["env", f"--chdir={TESTS}", *command], timeout=1200)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["test"]: row["outcome"] for row in rows}


def prepare(node: Node, variant: str) -> None:
    """Load a variant of the driver, and bring what runs the tests."""
    install_driver(node, artifacts.driver(LINE, variant))
    add_device(node)
    node.put(Path(__file__).with_name("pyverbs_each.py"), "/tmp/pyverbs_each.py")


@contextmanager
def traced(node: Node) -> Iterator[None]:
    """Every packet is traced meanwhile."""
    install_probes(node, [artifacts.probe("rxestat", LINE)])
    tracing = node.start(["rxestat", "--json", "-o", "/tmp/peers.json"])
    try:
        tracing.wait_for_line("rxestat: ready", timeout=120)
        yield
        tracing.interrupt()
        assert tracing.wait(timeout=120).returncode == 0
    finally:
        tracing.kill()


def differing(stock: Outcomes, instrumented: Outcomes) -> dict[str, tuple[str | None, str | None]]:
    """The tests whose outcomes differ, with both."""
    return {
        test: (stock.get(test), instrumented.get(test))
        for test in sorted(stock.keys() | instrumented.keys())
        if stock.get(test) != instrumented.get(test)
    }


def test_rdma_core(boot: Boot) -> None:
    """The same tests pass on both drivers, the instrumented one being traced meanwhile."""
    with boot(name="peers", prepared=False) as testbed, ThreadPoolExecutor() as pool:
        nodes = list(testbed.nodes)
        list(pool.map(prepare, nodes, ("stock", "instrumented")))
        with healthy(nodes, "rdma-core's tests"), traced(nodes[1]):
            stock, instrumented = pool.map(outcomes, nodes)
            different = differing(stock, instrumented)
            tries = [different]
            while different and len(tries) <= RETRIES:
                again = pool.map(outcomes, nodes, [list(different)] * 2)
                different = differing(*again)
                tries.append(different)
    count = Counter(stock.values())
    print(f"stock: {dict(count)}; instrumented: {dict(Counter(instrumented.values()))}")
    print("(stock, instrumented) that differed, try by try:", *tries, sep="\n")
    assert count["pass"] >= 90, f"too few tests ran for a comparison: {dict(count)}"
    assert not different, f"(stock, instrumented) differ every time: {different}"
