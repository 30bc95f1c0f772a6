# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider slurm over Soft RoCE: the nodes of the job are two virtual machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import slurm_machines
import vmlab
from rocelab.record import results_table
from rocelab.testbed import artifacts, linktap
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.prepare_node import install_probes
from slurm_cluster import Cluster

# the demo's cells, one of each kind, and a file
PLAN = """
[plan]
name = "slurm-rxe"
repetitions = 1
transports = ["rxe-v2"]
probes = ["rxestat", "rxecpu"]
[testbed]
provider = "slurm"
[[benchmark]]
tool = "perftest"
test = "write_lat"
sizes = [1024]
iterations = 100
qp_timeout = 18
[[benchmark]]
tool = "mpibench"
test = "latency"
sizes = [64]
iterations = 20
timeout = 240
[[benchmark]]
tool = "rcopy"
test = "put"
sizes = [300000]
"""
ROCELAB = (sys.executable, "-m", "rocelab")
ALLOCATED = ("salloc", "--quiet", "--nodes=2")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    line = slurm_machines.line()
    with vmlab.boot(name="slurm", prepared=True, line=line) as testbed:
        programs = [artifacts.mpibench(line), artifacts.probe(linktap.TAP, line)]
        at_once(lambda node: install_probes(node, programs), testbed.nodes)
        with vmlab.healthy(testbed.nodes, "slurm"), slurm_machines.running(testbed.nodes) as found:
            yield found


@pytest.mark.long
def test_soft_roce(cluster: Cluster, tmp_path: Path) -> None:
    """Perftest with stages, MPI whose daemons srun starts, and a file, each proven by the wire.

    Not by `srun --mpi=pmix`: on slow machines a rank may then not end (docs/howto/slurm.md).
    """
    plan, hosts = tmp_path / "plan.toml", tmp_path / "hosts.toml"
    plan.write_text(PLAN)
    words = ("run", str(plan), "--out", str(tmp_path))
    unsure = cluster.run(*ALLOCATED, *ROCELAB, *words)
    assert unsure.returncode == 2, unsure.stderr
    assert "10.44.0.0/24 (data0, data0); 172.31.0.0/24 (peer0, peer0)" in unsure.stderr

    hosts.write_text(
        cluster.run(*ALLOCATED, *ROCELAB, "hosts", "slurm", "--netdev", "data0").stdout
    )
    where = ("--inventory", str(hosts))
    done = cluster.run(*ALLOCATED, *ROCELAB, *words, *where, SLURM_MPI_TYPE="none", timeout=1800)
    assert done.returncode == 0, done.stderr + done.stdout
    (run,) = tmp_path.glob("*-slurm-rxe")
    for name in ("perftest-write_lat", "mpibench-latency", "rcopy-put"):
        cell = json.loads((run / f"cells/{name}.rxe-v2.r01/cell.json").read_text())
        (step,) = cell["steps"]
        assert step["proof"]["ok"]
        assert step["frames"]["roce_data"] > 0
        assert set(step["ends"]) == {"alpha", "beta"}
        if "mpi" in step:
            assert step["mpi"]["launcher"] == "mpirun"
    stages = {name for name in results_table.load(run)["metric"] if name.startswith("stage.")}
    assert {"stage.tx.icrc.mean", "stage.rx.icrc.mean"} <= stages
