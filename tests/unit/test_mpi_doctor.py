# SPDX-License-Identifier: GPL-2.0-or-later
"""What `rocelab doctor --mpi` says of nodes that lack something, and of what mpirun said.

openmpi-5-*.err: recorded of Open MPI 5.0.7 and UCX in the node image, the fault planted (a device,
a GID and an interface that are not there; ud-timeout: four ranks on two nodes of a busy machine).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rocelab.bench.catalog import TRANSPORTS
from rocelab.bench.mpi.diagnosis import diagnose
from rocelab.errors import CellError
from rocelab.node import Completed, DataLink
from rocelab.run.mpi import doctor
from rocelab.run.rig import Rig
from rocelab.run.verbs import Ports, VerbsPort

HERE = Path(__file__).parent / "data"
V2 = TRANSPORTS["rxe-v2"]
LOCKED = "sh -c ulimit -l; grep CapEff /proc/self/status"
GOOD = {
    "mpirun --version": "mpirun (Open MPI) 5.0.7\n\nReport bugs to …\n",
    "ompi_info --parsable": 'mca:pml:ucx:version:"mca:2.1.0"\nmca:btl:tcp:version:1\n',
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
    control: str | None = "172.31.0.0/24"


def addresses(*local: str) -> str:
    return json.dumps([{"ifname": "x", "addr_info": [{"local": each} for each in local]}])


def look(name: str, n1: dict[str, str], n2: dict[str, str] | None = None) -> str:
    nodes = [StubNode("n1", n1), StubNode("n2", n1 if n2 is None else n2)]
    ports = Ports(VerbsPort("rxe0", 1))
    rig = Rig(StubTestbed(nodes), (nodes[0], nodes[1]), (ports, ports), iter(range(9)))  # type: ignore[arg-type]
    (found,) = (each for each in doctor.looks(rig, V2) if each.name == name)
    return found.found()


def test_a_healthy_pair() -> None:
    assert look("Open MPI", {}) == "Open MPI 5.0.7"
    assert look("pml ucx", {}) == "there"
    assert look("locked memory", {}) == "unlimited"
    root = {LOCKED: "8192\nCapEff:\t000001ffffffffff\n"}
    assert look("locked memory", root) == "no limit (CAP_IPC_LOCK)"
    assert look("MTU", {}) == "4200 bytes"
    ip = "ip -j -4 addr show"
    assert (
        look(
            "control network",
            {ip: addresses("172.31.0.1", "172.30.1.15")},
            {ip: addresses("172.31.0.2", "172.30.1.15")},
        )
        == "n1 172.31.0.1, n2 172.31.0.2"
    )


@pytest.mark.parametrize(
    ("name", "n1", "n2", "what", "action"),
    [
        ("Open MPI", {"mpirun --version": ""}, {}, "n1 has no mpirun", "apt-get install openmpi"),
        (
            "pml ucx",
            {},
            {"ompi_info --parsable": "mca:pml:ob1:version:1\n"},
            "Open MPI on n2 has no pml ucx",
            "Open MPI with UCX",
        ),
        (
            "locked memory",
            {},
            {LOCKED: "8192\nCapEff:\t0000000000000000\n"},
            "n2 lets a process lock '8192' KiB",
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
            {"ip -j -4 addr show": addresses("172.31.0.15")},
            {"ip -j -4 addr show": addresses("172.31.0.15")},
            "n1 and n2 share the control address 172.31.0.15",
            "Give n2 another address",
        ),
        (
            "control network",
            {"ip -j -4 addr show": addresses("172.31.0.1")},
            {"ip -j -4 addr show": addresses("10.0.2.15")},
            "n2 has no address on the control network 172.31.0.0/24",
            "ip addr",
        ),
        ("GID", {}, {}, "n1 has no RoCE v2 GID for a link-local address", "rdma link"),
    ],
)
def test_what_is_lacking_is_named(
    name: str, n1: dict[str, str], n2: dict[str, str], what: str, action: str
) -> None:
    with pytest.raises(CellError) as caught:
        look(name, n1, n2)
    assert what in caught.value.what
    assert action in caught.value.action


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("ud-timeout", "UCX_IB_GID_INDEX"),
        ("no-device", "UCX_NET_DEVICES"),
        ("no-gid", "UCX_IB_GID_INDEX"),
        ("no-pml", "pml ucx"),
        ("no-interface", "btl_tcp_if_include"),
    ],
)
def test_what_mpirun_said_leads_to_a_setting(name: str, setting: str) -> None:
    advice = diagnose((HERE / f"openmpi-5-{name}.err").read_text())
    assert advice is not None
    assert setting in advice.action


def test_what_is_not_known_is_not_guessed() -> None:
    assert diagnose("mpirun noticed that process rank 1 exited on signal 11") is None
