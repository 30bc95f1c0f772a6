# SPDX-License-Identifier: GPL-2.0-or-later
"""What others test rxe with gives on the instrumented driver what it gives on stock.

Stock is the same source, built the same way without the patches; one node runs the one driver,
its peer the other, at the same time.
"""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rocelab import artifacts
from rocelab.bench.catalog import TRANSPORTS
from rocelab.node import Node
from rocelab.node.prepare import DEVICE, add_device, install_driver, install_probes
from rocelab.run import verbs
from vmlab import LINE, Boot, healthy

TESTS = "/usr/src/rdma-core/tests"


def outcomes(node: Node, variant: str) -> dict[str, str]:
    """rdma-core's tests on a driver, while every packet is traced if it has events."""
    install_driver(node, artifacts.driver(LINE, variant))
    add_device(node)
    node.put(Path(__file__).with_name("pyverbs_each.py"), "/tmp/pyverbs_each.py")
    end = verbs.end(node, verbs.find(node), TRANSPORTS["rxe-v2"])
    tracing = None
    if variant == "instrumented":
        install_probes(node, [artifacts.probe("rxestat")])
        tracing = node.start(["rxestat", "--json", "-o", "/tmp/peers.json"])
        tracing.wait_for_line("rxestat: ready", timeout=60)
    command = ["python3", "/tmp/pyverbs_each.py", DEVICE, str(end.gid_index), "60"]
    done = node.run(["env", f"--chdir={TESTS}", *command], timeout=1200)
    if tracing:
        tracing.interrupt()
        tracing.wait(timeout=60)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["test"]: row["outcome"] for row in rows}


def test_rdma_core(boot: Boot) -> None:
    """The same tests pass on both drivers, the instrumented one being traced meanwhile."""
    with boot(name="peers", prepared=False) as testbed:
        nodes = list(testbed.nodes)
        with healthy(nodes, "rdma-core's tests"), ThreadPoolExecutor() as pool:
            runs = pool.map(outcomes, nodes, ("stock", "instrumented"))
            stock, instrumented = runs
    count = Counter(stock.values())
    print(
        f"rdma-core's tests on stock: {dict(count)}; instrumented: {Counter(instrumented.values())}"
    )
    assert count["pass"] >= 90, f"too few tests ran for a comparison: {dict(count)}"
    different = {
        test: (stock.get(test), instrumented.get(test))
        for test in stock.keys() | instrumented.keys()
        if stock.get(test) != instrumented.get(test)
    }
    assert not different, f"(stock, instrumented) differ: {different}"
