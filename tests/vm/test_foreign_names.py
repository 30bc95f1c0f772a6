# SPDX-License-Identifier: GPL-2.0-or-later
"""Two and four machines under names that are not their own: demo, quick study, transfer.

alpha (n1) ┐
beta  (n2) ├ switch: the data link and a common network; SSH reaches each by its own network
gamma (n3) ┤
delta (n4) ┘
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import slurm_machines
import ssh_inventory
import vmlab
from command_line import rocelab
from rocelab.testbed import artifacts, linktap
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.prepare_node import install_probes
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from slurm_machines import NAMES

pytestmark = pytest.mark.long
ROCELAB = (sys.executable, "-m", "rocelab")
TRANSFER = """
[plan]
name = "transfer"
repetitions = 1
transports = ["tcp", "rxe-v2"]
[testbed]
nodes = {machines}
switches = 1
[[benchmark]]
tool = "rcopy"
test = "put"
sizes = [300000]
[[benchmark]]
tool = "rcopy"
test = "get"
sizes = [300000]
"""
_HOUR = 3600
Run = Callable[..., "subprocess.CompletedProcess[str]"]
"""Run `rocelab` with these words, with an inventory of that many machines."""


@contextmanager
def four(line: str) -> Iterator[QemuTestbed]:
    with vmlab.boot(name="foreign", prepared=True, line=line, nodes=4, switches=1) as testbed:
        programs = [artifacts.mpibench(line), artifacts.probe(linktap.TAP, line)]
        at_once(lambda node: install_probes(node, programs), testbed.nodes)
        with vmlab.healthy(testbed.nodes, "foreign"):
            yield testbed


@contextmanager
def by_ssh(folder: Path) -> Iterator[Run]:
    with four(vmlab.LINE) as testbed:

        def run(machines: int, *words: str) -> subprocess.CompletedProcess[str]:
            named = dict(list(zip(NAMES, testbed.nodes, strict=True))[:machines])
            # the last ones first: the demo takes another pair of four than of two
            hosts = ssh_inventory.write(folder / "hosts.toml", dict(reversed(named.items())))
            by = () if words[0] == "doctor" else ("--provider", "ssh")
            return rocelab(*words, *by, "--inventory", str(hosts), timeout=_HOUR)

        yield run


@contextmanager
def by_slurm(folder: Path) -> Iterator[Run]:
    line = slurm_machines.line()
    with four(line) as testbed, slurm_machines.running(testbed.nodes) as cluster:

        def run(machines: int, *words: str) -> subprocess.CompletedProcess[str]:
            named = ",".join(NAMES[:machines])
            allocated = ("salloc", "--quiet", f"--nodes={machines}", f"--nodelist={named}")
            hosts = folder / "hosts.toml"
            listed = cluster.run(*allocated, *ROCELAB, "hosts", "slurm", "--netdev", "data0")
            hosts.write_text(listed.stdout)
            argv = (*words, "--provider", "slurm", "--inventory", str(hosts))
            return cluster.run(*allocated, *ROCELAB, *argv, timeout=_HOUR)

        yield run


@pytest.fixture(scope="module", params=[by_ssh, by_slurm], ids=["ssh", "slurm"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with request.param(tmp_path_factory.mktemp("foreign")) as hosts:
        yield hosts


def proven(out: Path, done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The steps of the one run in a folder: each is proven, frames were captured."""
    assert done.returncode == 0, done.stderr[-4000:]
    cells = [json.loads(path.read_text()) for path in out.glob("*/cells/*/cell.json")]
    print(*(line for line in done.stderr.splitlines() if "cell " in line), sep="\n")
    assert cells
    assert {cell["status"] for cell in cells} == {"ok"}
    steps = [step for cell in cells for step in cell["steps"]]
    for step in steps:
        assert step["proof"]["ok"]
        assert step["frames"]["frames"] > 0
        assert set(step["ends"]) <= set(NAMES)
    return steps


@pytest.mark.parametrize("machines", [2, 4])
class TestMachines:
    def test_doctor(self, run: Run, machines: int) -> None:
        """Finds nothing wrong, but for the clocks: those of emulated machines fall behind."""
        if run.__qualname__.startswith("by_slurm"):
            pytest.skip("doctor logs in by SSH")
        began = time.monotonic()
        done = run(machines, "doctor", "--hosts")
        print(f"doctor --hosts, {machines} machines: {time.monotonic() - began:.1f} s")
        lines = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
        assert f"MPI exchange: {machines} ranks over rxe-v2" in lines[-1]
        assert not [each for each in lines if each[:3] != "ok " and "clocks: " not in each]

    def test_transfer(self, run: Run, machines: int, tmp_path: Path) -> None:
        plan = tmp_path / "plan.toml"
        plan.write_text(TRANSFER.format(machines=machines))
        steps = proven(tmp_path, run(machines, "run", str(plan), "--out", str(tmp_path)))
        over = [step["proof"]["transport"] for step in steps]
        assert sorted(over) == ["rxe-v2", "rxe-v2", "tcp", "tcp"]

    def test_quick_study(self, run: Run, machines: int, tmp_path: Path) -> None:
        """Its collectives take all machines, its pairs two."""
        names = ",".join(NAMES[:machines])
        words = ("study", "run", "zeng2021", "--quick", "--transports", "rxe-v2")
        done = run(machines, *words, "--nodes", names, "--out", str(tmp_path))
        steps = proven(tmp_path, done)
        assert {len(step["ends"]) for step in steps} == {2, machines}

    def test_demo(self, run: Run, machines: int, tmp_path: Path) -> None:
        steps = proven(tmp_path, run(machines, "run", "demo", "--out", str(tmp_path)))
        assert len({step["proof"]["transport"] for step in steps if "mpi" in step}) == 2
