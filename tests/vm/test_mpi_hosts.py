# SPDX-License-Identifier: GPL-2.0-or-later
"""MPI between two machines given as SSH hosts, under names other than their host names.

alpha (n1) ctl0 ─ SSH, a network for each    peer0 ─ common    data0 ─ common, the data link
beta  (n2) ctl0 ─ of them                    peer0 ─           data0 ─
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from command_line import rocelab
from rocelab import accelerators
from rocelab.errors import CellError, ExitCode
from rocelab.measure import runner
from rocelab.plans import plan_file
from rocelab.plans.catalog import TRANSPORTS
from rocelab.testbed.node import Node
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rocelab.testbed.ssh import inventory, ssh_testbed

PLAN = """
[plan]
name = "mpi-hosts"
repetitions = 1
probes = []
transports = {transports}
[testbed]
provider = "ssh"
[[benchmark]]
tool = "mpibench"
test = "latency"
sizes = [4, 4096]
iterations = 10
timeout = 240
"""


@contextmanager
def without(interface: str, nodes: list[Node]) -> Iterator[None]:
    """Take an interface down on some nodes."""
    for node in nodes:
        node.run(["ip", "link", "set", interface, "down"])
    try:
        yield
    finally:
        for node in nodes:
            node.run(["ip", "link", "set", interface, "up"])


@contextmanager
def up(foreign_hosts: Path) -> Iterator[ssh_testbed.SshTestbed]:
    """Log in to the hosts of an inventory."""
    prepared = ssh_testbed.up(inventory.load(foreign_hosts), transports=[TRANSPORTS["rxe-v2"]])
    try:
        yield prepared
    finally:
        prepared.down()


def test_as_a_user_runs_it(foreign_hosts: Path, tmp_path: Path) -> None:
    """Both transports are measured and proven; the daemons connect over the common network."""
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(transports='["tcp", "rxe-v2"]'))
    words = ("run", str(plan), "--inventory", str(foreign_hosts), "--out", str(tmp_path))
    done = rocelab(*words, timeout=600)
    assert done.returncode == 0, done.stderr
    (run,) = tmp_path.glob("*-mpi-hosts")
    for transport in ("tcp", "rxe-v2"):
        cell = json.loads((run / f"cells/mpibench-latency.{transport}.r01/cell.json").read_text())
        (step,) = cell["steps"]
        assert step["proof"]["ok"]
        assert set(step["ends"]) == {"alpha", "beta"}
        assert step["mpi"]["job"]["PRTE_MCA_prte_if_include"] == "peer0"


def test_one_interface_for_control_and_data(
    testbed: QemuTestbed, foreign_hosts: Path, tmp_path: Path
) -> None:
    """The daemons' traffic next to RoCE is counted separately and fails no cell."""
    plan = plan_file.from_toml(PLAN.format(transports='["rxe-v2"]'), "hosts.toml")
    with without("peer0", list(testbed.nodes)), up(foreign_hosts) as two:
        assert {end.netdev for end in two.control} == {"data0"}
        outcome = runner.run(plan, two, tmp_path)
    assert outcome.exit_code is ExitCode.OK, outcome
    (path,) = outcome.path.glob("cells/*/cell.json")
    (step,) = json.loads(path.read_text())["steps"]
    assert step["frames"]["control"] > 0
    assert step["frames"]["control_payload_bytes"] > 0


def test_a_named_network_that_one_host_lacks(testbed: QemuTestbed, foreign_hosts: Path) -> None:
    foreign_hosts.write_text('control = ["172.31.0.0/24"]\n' + foreign_hosts.read_text())
    with (
        without("peer0", [testbed.nodes[1]]),
        up(foreign_hosts) as two,
        pytest.raises(CellError, match=r"beta has no address on the control network"),
    ):
        assert two.control


def test_two_hosts_of_one_name(testbed: QemuTestbed, foreign_hosts: Path, tmp_path: Path) -> None:
    """Open MPI would mistake them for one machine and hang."""
    plan = plan_file.from_toml(PLAN.format(transports='["tcp"]'), "hosts.toml")
    second = testbed.nodes[1]
    second.run(["hostname", "n1.example.org"])
    try:
        with up(foreign_hosts) as two:
            outcome = runner.run(plan, two, tmp_path)
    finally:
        second.run(["hostname", "n2"])
    (path,) = outcome.path.glob("cells/*/cell.json")
    error = json.loads(path.read_text())["error"]
    assert "alpha and beta have the same host name" in error["what"]
    assert "hostnamectl set-hostname" in error["action"]


@pytest.mark.long
def test_a_firewall_between_mpirun_and_its_daemon(
    testbed: QemuTestbed, foreign_hosts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of which the choice of a network knows nothing: the error names hosts, network, command."""
    hasty = replace(accelerators.of("tcg"), mpi_launch_seconds=45)
    monkeypatch.setitem(accelerators.ACCELERATORS, "tcg", hasty)
    plan = plan_file.from_toml(PLAN.format(transports='["tcp"]'), "hosts.toml")
    first = testbed.nodes[0]
    rule = "protocol ip flower ip_proto tcp dst_port 1024-65535 action drop"
    with up(foreign_hosts) as two:
        assert two.control  # chosen before the firewall comes
        first.run(["tc", "qdisc", "add", "dev", "peer0", "clsact"])
        try:
            first.run(["tc", "filter", "add", "dev", "peer0", "ingress", *rule.split()])
            outcome = runner.run(plan, two, tmp_path)
        finally:
            first.run(["tc", "qdisc", "del", "dev", "peer0", "clsact"])
    (path,) = outcome.path.glob("cells/*/cell.json")
    error = json.loads(path.read_text())["error"]
    assert "no MPI rank started within 45 s" in error["what"]
    assert "beta does not reach mpirun on alpha at 172.31.0.1 (peer0)" in error["what"]
    assert "ping 172.31.0.1" in error["action"]
