# SPDX-License-Identifier: GPL-2.0-or-later
"""What `rocelab doctor --mpi` reports when a node lacks something or mpirun fails.

openmpi-5-*.err were recorded from Open MPI 5.0.7 and UCX in the node image, each with an injected
fault: a device, a GID or an interface that does not exist; ud-timeout: four ranks on two nodes of
a busy machine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rocelab.errors import CellError
from rocelab.measure.mpi import launch_check
from rocelab.measure.rig import Rig
from rocelab.plans.benchmarks.mpi.diagnosis import diagnose
from rocelab.plans.catalog import TRANSPORTS
from rocelab.testbed.control_network import ControlEnd
from rocelab.testbed.node import Completed, DataLink
from rocelab.testbed.verbs_ports import Ports, VerbsPort

HERE = Path(__file__).parents[1] / "data"
V2 = TRANSPORTS["rxe-v2"]
OMPI_INFO = "sh -c command -v mpirun >/dev/null && exec ompi_info --parsable"
LOCKED = "sh -c ulimit -l; grep CapEff /proc/self/status"
GOOD = {
    OMPI_INFO: 'ompi:version:full:5.0.7\nmca:pml:ucx:version:"mca:2.1.0"\n',
    LOCKED: "unlimited\nCapEff:\t0000000000000000\n",
    "cat /sys/class/net/data0/mtu": "4200\n",
}


@dataclass
class StubNode:
    """Answers from a table."""

    name: str
    answers: dict[str, str] = field(default_factory=dict)
    link: DataLink = field(default=DataLink("data0", "10.44.0.1", "02:00:00:00:00:01", 4200))

    def run(self, argv: Sequence[str], **_: Any) -> Completed:
        text = {**GOOD, **self.answers}.get(" ".join(argv))
        return Completed(tuple(argv), 1 if text is None else 0, text or "", "")


@dataclass
class StubTestbed:
    nodes: list[StubNode]
    control: tuple[ControlEnd, ...] = (
        ControlEnd("peer0", "172.31.0.1"),
        ControlEnd("peer0", "172.31.0.2"),
    )


def addresses(*local: str) -> str:
    info = [{"local": each, "prefixlen": 24, "scope": "global"} for each in local]
    return json.dumps([{"ifname": "peer0", "flags": ["UP"], "addr_info": info}])


def check(name: str, n1: dict[str, str], n2: dict[str, str] | None = None) -> str:
    nodes = [StubNode("n1", n1), StubNode("n2", n1 if n2 is None else n2)]
    ports = Ports(VerbsPort("rxe0", 1, "Ethernet"))
    rig = Rig(StubTestbed(nodes), (nodes[0], nodes[1]), (ports, ports), iter(range(9)))  # type: ignore[arg-type]
    (chosen,) = (each for each in launch_check.launch_checks(rig, V2) if each.name == name)
    return chosen.run()


def test_healthy_nodes_pass() -> None:
    assert check("Open MPI", {}) == "Open MPI 5.0.7"
    assert check("pml ucx", {}) == "available"
    assert check("locked memory", {}) == "unlimited"
    root = {LOCKED: "8192\nCapEff:\t000001ffffffffff\n"}
    assert check("locked memory", root) == "no limit (CAP_IPC_LOCK)"
    assert check("MTU", {}) == "4200 bytes"
    ip = "ip -j addr show up"
    assert (
        check(
            "control network",
            {ip: addresses("172.31.0.1", "172.30.1.15")},
            {ip: addresses("172.31.0.2", "172.30.1.15")},
        )
        == "n1 172.31.0.1, n2 172.31.0.2"
    )


@pytest.mark.parametrize(
    ("name", "n1", "n2", "what", "action"),
    [
        ("Open MPI", {OMPI_INFO: ""}, {}, "n1 has no Open MPI", "apt-get install openmpi"),
        (
            "pml ucx",
            {},
            {OMPI_INFO: "mca:pml:ob1:version:1\n"},
            "Open MPI on n2 has no pml ucx",
            "Open MPI built with UCX",
        ),
        (
            "locked memory",
            {},
            {LOCKED: "8192\nCapEff:\t0000000000000000\n"},
            "a process on n2 may lock only '8192' KiB",
            "memlock unlimited",
        ),
        (
            "MTU",
            {},
            {"cat /sys/class/net/data0/mtu": "1500\n"},
            "the MTUs of the data interfaces differ (n1: 4200, n2: 1500)",
            "ip link set",
        ),
        (
            "control network",
            {"ip -j addr show up": addresses("172.31.0.1")},
            {"ip -j addr show up": addresses("10.0.2.15")},
            "n2 does not have its control address 172.31.0.2",
            "ip addr",
        ),
        ("GID", {}, {}, "n1 has no RoCE v2 GID for 10.44.0.1", "rdma link"),
    ],
)
def test_an_error_names_what_a_node_lacks(
    name: str, n1: dict[str, str], n2: dict[str, str], what: str, action: str
) -> None:
    with pytest.raises(CellError) as caught:
        check(name, n1, n2)
    assert what in caught.value.what
    assert action in caught.value.action


@pytest.mark.parametrize("hosts", [2, 5, 100])
def test_each_host_runs_a_rank(hosts: int) -> None:
    benchmark = launch_check.exchange_cell(V2, hosts).benchmark
    assert benchmark.nodes == hosts
    assert benchmark.test == "alltoall"


def test_two_nodes_with_one_control_address() -> None:
    same = (ControlEnd("peer0", "172.31.0.15"),) * 2
    here = {"ip -j addr show up": addresses("172.31.0.15")}
    nodes = [StubNode(name, here) for name in ("n1", "n2")]
    ports = Ports(VerbsPort("rxe0", 1, "Ethernet"))
    rig = Rig(StubTestbed(nodes, same), (nodes[0], nodes[1]), (ports, ports), iter(range(9)))
    (chosen,) = (x for x in launch_check.launch_checks(rig, V2) if x.name == "control network")
    with pytest.raises(CellError, match=r"n1 and n2 share the control address 172\.31\.0\.15"):
        chosen.run()


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("ud-timeout", "UCX_UD_ETH_DGID_CHECK=n"),
        ("no-device", "UCX_NET_DEVICES"),
        ("no-gid", "UCX_IB_GID_INDEX"),
        ("no-pml", "pml ucx"),
        ("no-interface", "btl_tcp_if_include"),
    ],
)
def test_known_mpirun_errors_lead_to_a_setting(name: str, setting: str) -> None:
    advice = diagnose((HERE / f"openmpi-5-{name}.err").read_text())
    assert advice is not None
    assert setting in advice.action


def test_unknown_mpirun_errors_get_no_advice() -> None:
    assert diagnose("mpirun noticed that process rank 1 exited on signal 11") is None
