# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's selftests of rxe give the same results on the instrumented driver as on stock.

One node runs the instrumented driver, its peer the stock one, at the same time; each test runs in
namespaces of its node. Only later kernels have such tests; `make test-kernels` runs them.
"""

from __future__ import annotations

import re
import tarfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from requirements import missing
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import install_driver
from vmlab import LINE, LINE_CHOSEN, Boot, healthy

REMOTE = "/tmp/selftests"
PROGRAMS = f"{REMOTE}/rdma"
TRIES = 4
"""Retries of a test whose outcomes differ: these tests use fixed delays, and nodes are slow."""
STATUS = {0: "pass", 4: "skip"}


@pytest.fixture
def programs() -> Path:
    """Return the folder of the line's selftests."""
    if not LINE_CHOSEN:
        pytest.skip("`make test-kernels` runs the kernels' own tests, on the lines that have them")
    folder = artifacts.build_dir() / "selftests" / LINE
    if not (folder / ".version").exists():
        missing(f"{folder} is missing: run `make selftests LINE={LINE}`")
    programs = folder / "tools/testing/selftests"
    if not (programs / "rdma").exists():
        pytest.skip(f"the kernel of line {LINE} has no rxe selftests")
    return programs


def push(node: Node, programs: Path, archive: Path) -> None:
    """Copy the tests to a node."""
    with tarfile.open(archive, "w") as tar:
        tar.add(programs, arcname=".")
    node.put(archive, f"{REMOTE}.tar")
    node.run(["mkdir", "-p", REMOTE])
    node.run(["tar", "-xf", f"{REMOTE}.tar", "-C", REMOTE])


def outcome(node: Node, program: str) -> str:
    """Return the exit code by kselftest's convention, and the results that it printed."""
    done = node.run(["bash", f"{PROGRAMS}/{program}"], check=False, timeout=300)
    single = re.findall(r"^((?:not )?ok \d+) ?-? ?(.*)$", done.stdout, re.MULTILINE)
    return "; ".join([STATUS.get(done.returncode, "fail"), *(" ".join(row) for row in single)])


def test_equal_to_stock(
    programs: Path, boot: Boot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every test of the kernel's list has the same outcome on both drivers; some pass."""
    listing = (programs / "rdma/Makefile").read_text()
    outcomes: dict[str, list[str]] = {}
    with boot(name="selftests", prepared=False) as testbed, ThreadPoolExecutor() as pool:
        nodes = testbed.nodes
        drivers = [artifacts.driver(LINE, variant) for variant in ("stock", "instrumented")]
        list(pool.map(install_driver, nodes, drivers))
        for node in nodes:
            push(node, programs, tmp_path / f"{node.name}.tar")
        with healthy(nodes, "selftests"):
            for program in re.findall(r"\brxe_\w+\.sh\b", listing):
                for _ in range(TRIES):
                    outcomes[program] = list(pool.map(outcome, nodes, [program] * 2))
                    if len(set(outcomes[program])) == 1:
                        break
    with capsys.disabled():
        print()
        for program, pair in outcomes.items():
            print(program, *dict.fromkeys(pair), sep=": ")
    different = {program: pair for program, pair in outcomes.items() if len(set(pair)) != 1}
    assert not different
    assert Counter(pair[0].split(";")[0] for pair in outcomes.values())["pass"] >= 1
