# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider ssh and `rocelab hosts` on two machines that are known only as SSH hosts.

One is Debian 12 with its kernel 6.1, the other Debian 13 with 6.12, where both are built.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import ssh_inventory
import vmlab
from command_line import rocelab
from polling import wait_until
from requirements import missing
from rocelab.errors import MissingError
from rocelab.record import results_table
from rocelab.testbed import artifacts
from rocelab.testbed.node.interface import MARK
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from sample_plan import three_transports

PLAN = three_transports("hosts", 'provider = "ssh"')
# everything that preparing and running may touch
_STATE = """
modinfo -n rdma_rxe; cat /sys/module/rdma_rxe/srcversion 2>/dev/null
rdma link; ip -br addr; ip rule
grep -rhs "" /sys/class/infiniband/*/ports/1/gid_attrs/types | sort
find /usr/local /var/lib/rocelab "/lib/modules/$(uname -r)/updates" /tmp -type f 2>/dev/null | sort
"""


BUILD_THERE = bool(os.environ.get("ROCELAB_TEST_BUILD_ON_HOSTS"))
"""Build as on a host with another kernel than our images': ten minutes under emulation."""

# The squashfs of Debian's 6.1 can leave bytes behind the end of a file that is mapped, and clang
# reads up to the zero that belongs there: a copy in memory has one.
_COPY_HEADERS = "find /usr/include/bpf -type f -exec touch {} +"


def older_line() -> str:
    """The first host's kernel line."""
    try:
        artifacts.image("6.1")
        artifacts.driver("6.1")
        artifacts.programs("6.1")
    except MissingError as error:
        if os.environ.get("CI") == "true":
            missing(error.action)
        return vmlab.LINE
    return "6.1"


@dataclass
class Hosts:
    """Two machines, and the inventory that names them."""

    testbed: QemuTestbed
    inventory: Path
    older: str
    """The kernel line of the first one."""

    def state(self) -> list[str]:
        return [node.run(["sh", "-c", _STATE]).stdout for node in self.testbed.nodes]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """One has its stock driver loaded, and a device; the other has not."""
    older = older_line()
    with vmlab.boot(name="hosts", prepared=False, line=older, last_line=vmlab.LINE) as testbed:
        named = dict(zip(("left", "right"), testbed.nodes, strict=True))
        path = tmp_path_factory.mktemp("hosts") / "hosts.toml"
        inventory = ssh_inventory.write(path, named)
        first = testbed.nodes[0]
        first.run(["rdma", "link", "add", "mine", "type", "rxe", "netdev", first.link.netdev])
        with vmlab.healthy(testbed.nodes, "hosts"):
            yield Hosts(testbed, inventory, older)


def test_prepare_run_restore(hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Driver and probes are built on each host, a plan runs there, and all is restored."""
    where = ("--inventory", str(hosts.inventory))
    if BUILD_THERE:
        # a checkout in which nothing was built
        monkeypatch.setenv("ROCELAB_BUILD", str(artifacts.build_dir().with_name("absent")))
        for node in hosts.testbed.nodes:
            node.run(["sh", "-c", _COPY_HEADERS])
    before = hosts.state()
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    refused = rocelab("run", str(plan), "--out", str(tmp_path), *where)
    assert refused.returncode == 4
    assert "left does not run the instrumented rdma_rxe" in refused.stderr

    prepared = rocelab("hosts", "prepare", *where, timeout=1500)
    assert prepared.returncode == 0, prepared.stderr
    assert prepared.stderr.count("built here for") == (0 if BUILD_THERE else 2)
    rows = rocelab("hosts", "status", *where).stdout.splitlines()
    assert [row.split()[0] for row in rows] == ["host", "left", "right"]
    assert all("rocelab-" in row and row.split()[-1] == "yes" for row in rows[1:])
    assert "mine on data0" in rows[1]
    for node in hosts.testbed.nodes:
        assert node.run(["/usr/local/bin/mpibench", "--version"]).stdout.startswith("mpibench")

    prepared_state = hosts.state()
    first = hosts.testbed.nodes[0]
    # without the mark by which a run ends what an earlier one left
    server = first.start(["env", "-u", MARK, "ib_send_lat", "-d", "mine"])
    try:
        shown = ("rdma", "resource", "show", "ctx")
        wait_until("it opens", lambda: "ib_send_lat" in first.run(shown, check=False).stdout)
        refused = rocelab("run", str(plan), "--out", str(tmp_path), *where)
    finally:
        server.kill()
    assert refused.returncode == 4, refused.stderr
    assert "mine on left is in use" in refused.stderr
    assert "ib_send_lat (process" in refused.stderr

    ran = rocelab("run", str(plan), "--out", str(tmp_path), *where, timeout=600)
    assert ran.returncode == 0, ran.stderr
    assert hosts.state() == prepared_state, "the device of before has its GIDs of before"
    (run,) = tmp_path.glob("*-hosts")
    meta = json.loads((run / "run.json").read_text())
    assert (meta["testbed"]["provider"], meta["accelerator"]) == ("ssh", "tcg")
    assert {node["verbs"]["device"] for node in meta["nodes"].values()} == {"mine", "rxe0"}
    values = results_table.load(run)
    assert set(values["transport"]) == {"tcp", "rxe-v1", "rxe-v2"}
    assert "stage.tx.icrc.mean" in set(values["metric"])
    if hosts.older != vmlab.LINE:
        kernels = [node["kernel"].split(".")[:2] for node in meta["nodes"].values()]
        assert kernels == [["6", "1"], ["6", "12"]]
        # the report says that the hosts differ
        page = html.unescape((run / "report.html").read_text())
        (warned,) = re.findall(r"The nodes differ in: ([^<]*)", page)
        assert {"kernel", "rdma_rxe version", "perftest"} <= set(re.split(", | and ", warned))

    restored = rocelab("hosts", "restore", *where, timeout=300)
    assert restored.returncode == 0, restored.stderr
    assert restored.stdout.splitlines() == [
        "left: restored",
        "right: restored",
    ]
    assert hosts.state() == before
    again = rocelab("hosts", "restore", *where)
    assert again.stdout.count("was not prepared: nothing to do") == 2


ADAPTER = """
[plan]
name = "adapter"
repetitions = 1
transports = ["hw-v2"]
[testbed]
provider = "ssh"
[[benchmark]]
tool = "perftest"
test = "send_bw"
events = true
sizes = [1024]
iterations = 60
qp_timeout = 18
"""


def test_a_device_whose_driver_is_not_ours(hosts: Hosts, tmp_path: Path) -> None:
    """As an adapter's: nothing is prepared, no stage is seen, its own counters are the proof."""
    first, second = hosts.testbed.nodes
    plan = tmp_path / "plan.toml"
    plan.write_text(ADAPTER)
    refused = rocelab("run", str(plan), "--inventory", str(hosts.inventory))
    assert refused.returncode == 4
    assert "rocelab hosts prepare" in refused.stderr
    tap = "/usr/local/sbin/linktap"
    first.put(artifacts.probe("linktap", hosts.older), tap, mode=0o755)
    second.run(["rdma", "link", "add", "theirs", "type", "rxe", "netdev", second.link.netdev])
    try:
        where = ("--inventory", str(hosts.inventory), "--out", str(tmp_path))
        ran = rocelab("run", str(plan), *where, timeout=400)
    finally:
        first.run(["rm", tap])
        second.run(["rdma", "link", "delete", "theirs"])
        second.run(["rmmod", "rdma_rxe"])
    assert ran.returncode == 0, ran.stderr
    (run,) = tmp_path.glob("*-adapter")
    (cell,) = run.glob("cells/*/cell.json")
    (step,) = json.loads(cell.read_text())["steps"]
    assert {end["device"] for end in step["ends"].values()} == {"mine", "theirs"}
    assert all(not counted["rxe"] for counted in step["counters"].values())
    values = results_table.load(run)
    assert set(values["transport"]) == {"hw-v2"}
    assert set(values["driver"]) == {"rdma_rxe"}
    metrics = set(values["metric"])
    assert "adapter.hw.sent_pkts" in metrics
    assert not any(metric.startswith("stage.") for metric in metrics)


def test_a_host_key_that_is_not_known(hosts: Hosts, tmp_path: Path) -> None:
    """An unknown host could be anybody: nothing is sent there."""
    unknown = tmp_path / "known_hosts"
    unknown.write_text("")
    text = hosts.inventory.read_text().replace(
        str(hosts.testbed.nodes[0].target.known_hosts), str(unknown)
    )
    other = tmp_path / "hosts.toml"
    other.write_text(text)
    refused = rocelab("hosts", "status", "--inventory", str(other))
    assert refused.returncode == 4
    assert "refuses the SSH login" in refused.stderr
    assert "host key" in refused.stderr.lower()
