# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider slurm over Soft RoCE: the nodes of the job are two virtual machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pingpong_command
import slurm_machines
import vmlab
from rocelab.record import results_table
from rocelab.testbed import artifacts, linktap
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.prepare_node import install_probes
from slurm_cluster import Cluster

HEAD = """
[plan]
name = "slurm-rxe"
repetitions = 1
transports = ["rxe-v2"]
probes = ["rxestat", "rxecpu"]
[testbed]
provider = "slurm"
"""
# three launches
MPI = """
[[benchmark]]
tool = "mpibench"
test = "latency"
sizes = [64, 512, 2048]
iterations = 20
timeout = 240
[benchmark.mpi]
sweep = false
"""
# the demo's other cell, and a file
PAIRS = """
[[benchmark]]
tool = "perftest"
test = "write_lat"
sizes = [1024]
iterations = 100
qp_timeout = 18
[[benchmark]]
tool = "rcopy"
test = "put"
sizes = [300000]
"""
ROCELAB = (sys.executable, "-m", "rocelab")
ALLOCATED = ("salloc", "--quiet", "--nodes=2")


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    line = slurm_machines.line()
    with vmlab.boot(name="slurm", prepared=True, line=line) as testbed:
        programs = [artifacts.mpibench(line), artifacts.probe(linktap.TAP, line)]
        at_once(lambda node: install_probes(node, programs), testbed.nodes)
        with (
            vmlab.healthy(testbed.nodes, "slurm"),
            slurm_machines.running(testbed.nodes) as started,
        ):
            yield started


def steps(cluster: Cluster, plan: str, folder: Path, **environment: str) -> list[dict[str, Any]]:
    """The steps of a plan, which must be proven."""
    path, hosts = folder / "plan.toml", folder / "hosts.toml"
    path.write_text(plan)
    listed = cluster.run(*ALLOCATED, *ROCELAB, "hosts", "slurm", "--netdev", "data0")
    hosts.write_text(listed.stdout)
    words = ("run", str(path), "--out", str(folder), "--inventory", str(hosts), "--commands")
    done = cluster.run(*ALLOCATED, *ROCELAB, *words, **environment, timeout=1800)
    assert done.returncode == 0, done.stderr + done.stdout
    cells = [json.loads(path.read_text()) for path in folder.glob("*/cells/*/cell.json")]
    all_steps = [step for cell in cells for step in cell["steps"]]
    for step in all_steps:
        assert step["proof"]["ok"]
        assert step["frames"]["roce_data"] > 0
        assert set(step["ends"]) == {"alpha", "beta"}
    return all_steps


def test_soft_roce(cluster: Cluster, tmp_path: Path) -> None:
    """Perftest, MPI by `srun --mpi=pmix`, a file, and a command, each proven by the wire."""
    measured = steps(cluster, HEAD + PAIRS + pingpong_command.BENCHMARK + MPI, tmp_path)
    launchers = [step["mpi"]["launcher"].split()[0] for step in measured if "mpi" in step]
    assert launchers == ["srun"] * 3
    assert len(measured) == 6
    (run,) = tmp_path.glob("*-slurm-rxe")
    stages = {name for name in results_table.load(run)["metric"] if name.startswith("stage.")}
    assert {"stage.tx.icrc.mean", "stage.rx.icrc.mean"} <= stages


def test_mpirun(cluster: Cluster, tmp_path: Path) -> None:
    """Srun starts the daemons of mpirun."""
    measured = steps(cluster, HEAD + MPI, tmp_path, SLURM_MPI_TYPE="none")
    assert [step["mpi"]["launcher"] for step in measured] == ["mpirun"] * 3


def test_which_network_is_not_clear(cluster: Cluster, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(HEAD + PAIRS)
    unsure = cluster.run(*ALLOCATED, *ROCELAB, "run", str(plan), "--out", str(tmp_path))
    assert unsure.returncode == 2, unsure.stderr
    assert "10.44.0.0/24 (data0, data0); 172.31.0.0/24 (peer0, peer0)" in unsure.stderr
