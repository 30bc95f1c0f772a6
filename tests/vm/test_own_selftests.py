# SPDX-License-Identifier: GPL-2.0-or-later
"""Our selftests for a kernel tree (kernel/selftests): each fails on the stock driver alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from node_program import compile_program
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import install_driver, unload
from vmlab import LINE, PATIENCE, boot_alone, healthy

SOURCES = Path(__file__).parents[2] / "kernel/selftests/rdma"
REMOTE = "/tmp/rdma"
SKIP = 4
STOCK = {
    # before 7.x the module has the sockets
    "rxe_link_exists.sh": "FAIL: port 4791 stays open" if LINE == "7.x" else "SKIP: port 4791",
    "rxe_mcast_mac.sh": "FAIL: the device listens to 33:33:",
    "rxe_mw_bounds.sh": "FAIL: not so: a peer does not reach what is before the window",
    "rxe_odp.sh": "FAIL: not so: with its iova behind its address, a WRITE reaches the region"
    if LINE == "7.x"
    else "SKIP: the driver has no on-demand paging",
    "rxe_priority.sh": "FAIL: 0 of ",
}
"""What each says of the stock driver."""


@pytest.fixture(scope="module")
def machine() -> Iterator[Node]:
    """One machine, without a device of ours."""
    with boot_alone(name="own", vcpus=1) as machine, healthy([machine], "own selftests"):
        machine.run(["mkdir", "-p", REMOTE])
        for path in SOURCES.glob("*.sh"):
            machine.put(path, f"{REMOTE}/{path.name}", mode=0o755)
        for path in SOURCES.glob("*.c"):
            program = compile_program(machine, path, "-libverbs")
            machine.run(["ln", "-s", program, f"{REMOTE}/{path.stem}"])
        yield machine


def outcome(machine: Node, program: str) -> tuple[int, str]:
    """Run one; return its exit code and what it said."""
    done = machine.run([f"{REMOTE}/{program}"], check=False, timeout=120 * PATIENCE)
    return done.returncode, (done.stdout + done.stderr).strip()


@pytest.mark.parametrize(("program", "wanted"), sorted(STOCK.items()))
def test_fails_on_the_stock_driver_alone(machine: Node, program: str, wanted: str) -> None:
    """The fix is what makes it pass."""
    unload(machine)
    install_driver(machine, artifacts.driver(LINE, "stock"))
    code, said = outcome(machine, program)
    assert said.startswith(wanted)
    skips = code == SKIP
    assert skips == wanted.startswith("SKIP")
    assert code
    unload(machine)
    install_driver(machine, artifacts.driver(LINE))
    code, said = outcome(machine, program)
    assert code == (SKIP if skips else 0), said


def test_all_are_in_the_makefile() -> None:
    """A kernel tree runs what its Makefile names, and builds what these need."""
    lines = (SOURCES / "Makefile").read_text().splitlines()
    pairs = (line.split(" := ") for line in lines if " := " in line)
    named = {name: words.split() for name, words in pairs}
    files = sorted(path.name for path in SOURCES.glob("*.sh"))
    assert named["TEST_PROGS"] == [name for name in files if name not in named["TEST_FILES"]]
    assert named["TEST_GEN_FILES"] == sorted(path.stem for path in SOURCES.glob("*.c"))
