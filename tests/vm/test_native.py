# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider veth on the machine itself, with a node as the user's machine."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import rocelab
import vethlab
import vmlab
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import DEVICE, remove_device
from rocelab.testbed.veth import pair_setup
from sample_plan import three_transports

PLAN = three_transports("native", 'provider = "veth"\nnative = true')
HERE = Path(__file__).parent
PACKAGE = "/tmp/rocelab"
CELLS = "/tmp/native_cells.py"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A machine with the driver, the probes and rocelab, and without a pair."""
    package = tmp_path_factory.mktemp("native") / "rocelab.zip"
    root = Path(rocelab.__file__).parent
    with zipfile.ZipFile(package, "w") as archive:
        for path in (
            *root.rglob("*.py"),
            *root.glob("_core*.so"),
            *(root / "tables").glob("*.csv"),
        ):
            archive.write(path, path.relative_to(root.parent))
    with vethlab.boot(name="native", icount=False) as testbed:
        node = testbed.nodes[0].machine
        for end in testbed.nodes:
            remove_device(end)
        pair_setup.remove(node)
        node.put(package, f"{PACKAGE}.zip")
        # a compiled module is not imported from a zip file
        node.run(["python3", "-m", "zipfile", "-e", f"{PACKAGE}.zip", PACKAGE])
        node.put(HERE / "native_cells.py", CELLS)
        with vmlab.healthy([node], "native"):
            yield node


def state(node: Node) -> str:
    """Return the state of everything that the provider may change."""
    return node.run(["sh", "-c", "ip rule; ip route show table all; ip -br addr; rdma link"]).stdout


def run(node: Node, *words: str):
    argv = ["env", f"PYTHONPATH={PACKAGE}", "python3", CELLS, *words]
    return node.run(argv, timeout=300, check=False)


def test_cells_with_both_ends_on_the_machine_itself(machine: Node) -> None:
    """Driver and wire prove each transport; the machine is restored, even after a kill.

    The node is emulated, and rocelab notices that.
    """
    before = state(machine)
    assert run(machine, "--killed").returncode == 9
    assert "rocelab1" in state(machine)
    machine.run(["tee", "/tmp/native.toml"], stdin=PLAN)
    done = run(machine, "/tmp/native.toml")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["environment"]["native"] is True
    assert told["environment"]["accelerator"] == "tcg"
    cells = {cell["transport"]: cell for cell in told["cells"]}
    assert {name: cell["error"] for name, cell in cells.items()} == {
        "rxe-v1": None,
        "rxe-v2": None,
        "tcp": None,
    }
    for name, kind in (("rxe-v1", "roce_v1"), ("rxe-v2", "roce_v2")):
        (step,) = cells[name]["steps"]
        assert step["proof"]["ok"]
        assert step["frames"][kind] == sum(c["rxe"]["sent_pkts"] for c in step["counters"].values())
        assert {check["check"] for check in step["probe"]} >= {"n1 tx packets in rxestat"}
    assert state(machine) == before


def test_a_device_of_that_name_is_left_alone(machine: Node) -> None:
    """Assert that nothing else is left behind."""
    machine.run(["ip", "link", "add", "mine", "type", "veth", "peer", "name", "mine2"])
    machine.run(["ip", "link", "set", "mine", "up"])
    machine.run(["rdma", "link", "add", DEVICE, "type", "rxe", "netdev", "mine"])
    try:
        before = state(machine)
        machine.run(["tee", "/tmp/native.toml"], stdin=PLAN)
        done = run(machine, "/tmp/native.toml")
        assert f"this machine already has a verbs device {DEVICE}" in done.stderr
        assert state(machine) == before
    finally:
        machine.run(["ip", "link", "delete", "mine"])
