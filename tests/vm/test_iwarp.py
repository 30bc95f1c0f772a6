# SPDX-License-Identifier: GPL-2.0-or-later
"""Soft iWARP (siw): a verbs device that is not rxe, measured and proven as an adapter's is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import vmlab
from command_line import rocelab
from requirements import missing
from rocelab.errors import CellError
from rocelab.measure.rig import Rig
from rocelab.plans.catalog import TRANSPORTS
from rocelab.record import results_table
from rocelab.testbed import artifacts
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.prepare_node import add_device, remove_device
from rocelab.testbed.node.ssh_node import SshNode
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rocelab.testbed.ssh import inventory, ssh_testbed

PLAN = """
[plan]
name = "iwarp"
repetitions = 1
probes = []
transports = ["{transport}"]
[testbed]
provider = "ssh"
[[benchmark]]
tool = "perftest"
test = "write_lat"
sizes = [64]
iterations = 20
[[benchmark]]
tool = "perftest"
test = "send_lat"
sizes = [4096]
iterations = 20
"""
# as docs/howto/hosts.md says it
_ADD = """
cd /run && modprobe -a rdma_ucm $(modinfo -F depends ./siw.ko | tr , ' ') && insmod siw.ko &&
rdma link add siw0 type siw netdev data0
"""
_REMOVE = "rdma link delete siw0; rmmod siw; rm /run/siw.ko"


@contextmanager
def soft_iwarp(testbed: QemuTestbed) -> Iterator[None]:
    """Have a siw device on each node's data interface in place of rxe's."""
    module = artifacts.build_dir() / "siw" / vmlab.LINE / "siw.ko"
    if not module.exists():
        missing(f"{module} is missing: run `make siw LINE={vmlab.LINE}`")

    def add(node: SshNode) -> None:
        remove_device(node)
        node.root.put(module, "/run/siw.ko")
        node.root.run(("sh", "-c", _ADD))

    def remove(node: SshNode) -> None:
        node.root.run(("sh", "-c", _REMOVE), check=False)
        add_device(node)

    try:
        at_once(add, testbed.nodes)
        yield
    finally:
        at_once(remove, testbed.nodes)


def cells(run: Path) -> dict[str, Any]:
    return {
        path.parent.name: json.loads(path.read_text()) for path in run.glob("cells/*/cell.json")
    }


def test_iwarp_is_measured_and_is_not_roce(
    testbed: QemuTestbed, foreign_hosts: Path, tmp_path: Path
) -> None:
    """Both tests are proven by MPA's connections; hw-v2 refuses the device, for what it is."""
    plan = tmp_path / "plan.toml"
    where = ("--inventory", str(foreign_hosts), "--out", str(tmp_path))
    with soft_iwarp(testbed):
        plan.write_text(PLAN.format(transport="iwarp"))
        ran = rocelab("run", str(plan), *where, timeout=400)
        assert ran.returncode == 0, ran.stderr + ran.stdout
        prepared = ssh_testbed.up(inventory.load(foreign_hosts), transports=[TRANSPORTS["hw-v2"]])
        try:
            rig = Rig.on(prepared)
            for name in ("hw-v1", "hw-v2", "ib"):
                with pytest.raises(CellError, match=r"siw0 on alpha .* link layer is iWARP") as no:
                    rig.ends(TRANSPORTS[name])
                assert f"transport.{name} = " in no.value.action
        finally:
            prepared.down()
    (run,) = tmp_path.glob("*-iwarp")
    assert set(cells(run)) == {"perftest-write_lat.iwarp.r01", "perftest-send_lat.iwarp.r01"}
    for cell in cells(run).values():
        (step,) = cell["steps"]
        assert step["proof"]["ok"]
        assert "-R" in step["client"]
        assert {end["device"] for end in step["ends"].values()} == {"siw0"}
        seen = step["frames"]
        assert (seen["roce_v1"], seen["roce_v2"], seen["tcp_payload_bytes"]) == (0, 0, 0)
        assert seen["iwarp_payload_bytes"] >= 2 * 20 * (step["size"] + 20)
        assert all(counted["tcp"]["OutSegs"] > 0 for counted in step["counters"].values())
    values = results_table.load(run)
    assert set(values["transport"]) == {"iwarp"}
    assert set(values["driver"]) == {"siw"}


def test_roce_under_the_name_of_iwarp_is_an_error(
    testbed: QemuTestbed, foreign_hosts: Path, tmp_path: Path
) -> None:
    """A device that is named, but is rxe's."""
    foreign_hosts.write_text(
        foreign_hosts.read_text().replace("netdev =", 'verbs = "rxe0"\nnetdev =')
    )
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(transport="iwarp"))
    where = ("--inventory", str(foreign_hosts), "--out", str(tmp_path))
    ran = rocelab("run", str(plan), *where, timeout=300)
    assert ran.returncode != 0
    (run,) = tmp_path.glob("*-iwarp")
    for cell in cells(run).values():
        assert "rxe0 on alpha is no port for iwarp" in cell["error"]["what"]
        assert "link layer is Ethernet, not iWARP" in cell["error"]["what"]
