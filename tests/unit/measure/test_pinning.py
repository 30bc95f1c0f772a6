# SPDX-License-Identifier: GPL-2.0-or-later
"""Which processors are near an adapter, by folders like those of sysfs, and who keeps to them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from rocelab.measure import pinning
from rocelab.measure.mpi import launch
from rocelab.plans import plan_file
from rocelab.plans.benchmarks.mpi import recipe
from rocelab.plans.benchmarks.mpi.recipe import Place
from rocelab.plans.catalog import TRANSPORTS

PCI = "devices/pci0000:80/0000:80:02.0/0000:81:00.0"


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """Two NUMA nodes of four processors; an mlx5 port on the second, a virtio card on the first."""
    for folder, near in ((PCI, "4-7"), ("devices/pci0000:00/0000:00:03.0", "0-3")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "local_cpulist").write_text(f"{near}\n")
    (tmp_path / "devices/system/cpu").mkdir(parents=True)
    (tmp_path / "devices/system/cpu/online").write_text("0-7\n")
    (tmp_path / "devices/pci0000:00/0000:00:03.0/virtio0").mkdir()
    (tmp_path / "devices/virtual/net/vlan0").mkdir(parents=True)
    for kind, name, device in (
        ("infiniband", "mlx5_0", PCI),
        ("net", "enp129s0", PCI),
        ("net", "data0", "devices/pci0000:00/0000:00:03.0/virtio0"),
        ("net", "vlan0", ""),
        ("net", "lo", ""),
    ):
        entry = tmp_path / "class" / kind / name
        entry.mkdir(parents=True)
        if device:
            (entry / "device").symlink_to(tmp_path / device)
    (tmp_path / "class/net/vlan0/lower_enp129s0").symlink_to(tmp_path / "class/net/enp129s0")
    return tmp_path


def _near(sysfs: Path, netdev: str, device: str = "") -> str:
    asked = pinning.command(netdev, device, str(sysfs))
    return pinning.parse(subprocess.run(asked, capture_output=True, text=True, check=False).stdout)


@pytest.mark.parametrize(
    ("netdev", "device", "cpus"),
    [
        ("enp129s0", "", "4-7"),
        ("vlan0", "", "4-7"),
        # the device of a bus of its own is on PCI all the same
        ("data0", "", "0-3"),
        # the verbs device is what carries the traffic
        ("data0", "mlx5_0", "4-7"),
        ("data0", "rxe0", "0-3"),
        ("lo", "", ""),
        ("absent", "", ""),
    ],
)
def test_processors_near_an_adapter(sysfs: Path, netdev: str, device: str, cpus: str) -> None:
    assert _near(sysfs, netdev, device) == cpus


def test_one_numa_node_needs_no_pinning(sysfs: Path) -> None:
    (sysfs / PCI / "local_cpulist").write_text("0-7\n")
    assert _near(sysfs, "enp129s0") == ""


@pytest.mark.parametrize("listing", ["", "4-7\n", "4-7; reboot\n0-7\n", "$(x)\n0-7\n", "\n0-7\n"])
def test_what_is_no_list_pins_nothing(listing: str) -> None:
    assert pinning.parse(listing) == ""


def _allowed(argv: Sequence[str], **environment: str) -> str:
    done = subprocess.run(
        argv, capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return done.stdout.split()[-1]


def test_a_process_keeps_to_its_processors() -> None:
    one = str(min(os.sched_getaffinity(0)))
    ask = ("grep", "Cpus_allowed_list", "/proc/self/status")
    assert _allowed((*pinning.on(one), *ask)) == one
    assert pinning.on("") == ()


def test_a_rank_keeps_to_its_processors(tmp_path: Path) -> None:
    """The script that starts a rank, with the settings of its node."""
    one = str(min(os.sched_getaffinity(0)))
    script = tmp_path / "rank"
    script.write_text(launch._RANK)
    places = [Place("n1", "data0", cpus=one), Place("n2", "data0")]
    for i, place in enumerate(places):
        settings = recipe.for_node(TRANSPORTS["tcp"], place, one_machine=False)
        (tmp_path / f"node.{i}").write_text(recipe.as_file(settings))
    ask = ("grep", "Cpus_allowed_list", "/proc/self/status")
    rank = ("sh", str(script), "1", str(tmp_path), *ask)
    assert _allowed(rank, OMPI_COMM_WORLD_RANK="0") == one
    assert _allowed(rank, OMPI_COMM_WORLD_RANK="1") == _allowed(ask)


@pytest.mark.parametrize(
    ("testbed", "pinned"),
    [
        ("", False),
        ('provider = "ssh"', True),
        ('provider = "ssh"\npin.numa = false', False),
        ('provider = "veth"\npin.numa = true', True),
    ],
)
def test_hosts_are_pinned_by_default(testbed: str, pinned: bool) -> None:
    text = (
        f'[plan]\nname = "p"\ntransports = ["tcp"]\n[testbed]\n{testbed}\n'
        '[[benchmark]]\ntool = "qperf"\ntest = "tcp_lat"\nsizes = [64]\n'
    )
    plan = plan_file.from_toml(text, "p.toml")
    assert plan.testbed.is_pinned is pinned
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
