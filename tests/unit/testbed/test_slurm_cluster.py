# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider slurm on a real cluster: a slurmctld and two slurmd on this machine."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

import slurm_cluster
from requirements import missing
from rocelab.testbed.slurm import mpi_ranks
from slurm_cluster import Cluster

PLAN = """
[plan]
name = "slurm"
repetitions = 1
probes = []
transports = ["tcp"]
[testbed]
provider = "slurm"
[[benchmark]]
tool = "qperf"
test = "tcp_lat"
sizes = [64]
seconds = {seconds}
[[benchmark]]
tool = "mpibench"
test = "latency"
sizes = [4, 4096]
iterations = 10
timeout = 120
"""
pytestmark = pytest.mark.slow
ROCELAB = (sys.executable, "-m", "rocelab")
ALLOCATED = ("salloc", "--quiet", "--nodes=2")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with slurm_cluster.running() as started:
        yield started


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.format(seconds=1))
    return path


def cells(out: Path) -> dict[str, dict[str, Any]]:
    """The cells of the one run in a folder, by tool."""
    documents = [json.loads(path.read_text()) for path in out.glob("*-slurm/cells/*/cell.json")]
    return {cell["cell"].partition("-")[0]: cell for cell in documents}


def proven(out: Path, launcher: str) -> None:
    """Both cells are ok and proven by a capture; `launcher` started the ranks."""
    by_tool = cells(out)
    assert set(by_tool) == {"qperf", "mpibench"}
    for cell in by_tool.values():
        assert cell["status"] == "ok", cell["error"]
        (step,) = cell["steps"]
        assert step["proof"]["ok"]
        assert step["frames"]["tcp"] > 0
        assert set(step["ends"]) == {"s1", "s2"}
    assert by_tool["mpibench"]["steps"][0]["mpi"]["launcher"].split()[0] == launcher


def refused(done: subprocess.CompletedProcess[str], what: str, action: str) -> None:
    """The command ended with an error in three parts."""
    assert done.returncode in (2, 3, 4), done.stderr
    assert what in done.stderr
    assert "likely cause: " in done.stderr
    assert action in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_in_an_allocation(cluster: Cluster, plan: Path, tmp_path: Path) -> None:
    """Commands and ranks by srun; the data link is found; the capture proves both cells."""
    done = cluster.run(*ALLOCATED, *ROCELAB, "run", str(plan), "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "data link: s1 data0, s2 data0" in done.stderr
    proven(tmp_path, "srun")
    (meta,) = tmp_path.glob("*-slurm/run.json")
    assert json.loads(meta.read_text())["testbed"]["provider"] == "slurm"
    left = cluster.run(*ALLOCATED, "srun", "sh", "-c", "ls -d /tmp/rocelab-* /run/rocelab-lease")
    assert "rocelab" not in left.stdout


@pytest.mark.long
def test_a_user_without_root(cluster: Cluster) -> None:
    """Nothing is captured, counters prove both cells, and nothing is left."""
    plan, out = cluster.home / "plan.toml", cluster.home / "runs"
    plan.write_text(PLAN.format(seconds=1))
    done = cluster.as_user(*ALLOCATED, *ROCELAB, "run", str(plan), "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "nothing captures the link" in done.stderr
    for cell in cells(out).values():
        (step,) = cell["steps"]
        assert step["frames"] is None
        assert step["proof"]["ok"]
        by_check = {check["check"]: check["found"] for check in step["proof"]["checks"]}
        assert by_check["TCP segments sent"] > 0
    assert {path.name for path in cluster.home.iterdir()} == {"plan.toml", "runs"}
    plan.write_text(plan.read_text().replace("probes = []", 'probes = ["rxecpu"]'))
    done = cluster.as_user(*ALLOCATED, *ROCELAB, "run", str(plan), "--out", str(out))
    refused(done, "cannot become root on s1, as needed for rxecpu", "without a password")


def test_wrong_set_ups(cluster: Cluster, plan: Path, tmp_path: Path) -> None:
    run = (*ROCELAB, "run", str(plan), "--out", str(tmp_path))
    done = cluster.run(*run)
    refused(done, "not in a Slurm allocation", "salloc --nodes=2")
    done = cluster.run("salloc", "--quiet", "--nodes=1", *run)
    refused(done, "needs 2 nodes", "salloc --nodes=2")
    done = cluster.run(*run, SLURM_JOB_ID="4711")
    refused(done, "job 4711 has ended", "new allocation")
    done = cluster.run(*run, SLURM_JOB_ID="--help")
    refused(done, "not in a Slurm allocation", "--submit")
    done = cluster.run(*ALLOCATED, "--time=1", *run)
    refused(done, "s left", "longer --time")
    done = cluster.run(*run, PATH="/usr/sbin")
    refused(done, "srun is not installed", "slurm-client")
    done = cluster.run(*run, "--submit", SBATCH_PARTITION="absent")
    refused(done, "Slurm does not take the job", "SBATCH_PARTITION")
    assert not list(tmp_path.glob("*-slurm"))


def batch_plan(cluster: Cluster, seconds: int) -> Path:
    """Write the plan where the nodes see the same files."""
    plan = cluster.here / "batch.toml"
    plan.write_text(PLAN.format(seconds=seconds))
    return plan


def submitted(cluster: Cluster, out: Path, *, seconds: int) -> tuple[str, Path]:
    """Submit the plan as a batch job, with its runs in `out`; returns its number and its log."""
    plan = batch_plan(cluster, seconds)
    done = cluster.run(*ROCELAB, "run", str(plan), "--submit", "--out", str(out))
    assert done.returncode == 0, done.stderr
    job = done.stdout.split()[2]
    log = out / f"slurm-{job}.log"
    assert f"tail -F {log}" in done.stdout
    return job, log


def deaf_to_sigterm(cluster: Cluster, out: Path, *, seconds: int) -> tuple[str, Path]:
    """Submit the plan by a script in which SIGTERM is ignored, as `submitted` does."""
    command = shlex.join((*ROCELAB, "run", str(batch_plan(cluster, seconds)), "--out", str(out)))
    script = cluster.here / "deaf.sh"
    script.write_text(f"#!/bin/sh\ntrap '' TERM\n{command}\n")
    out.mkdir()
    words = ("--parsable", "--nodes=2", "--ntasks-per-node=1", "--exclusive")
    done = cluster.run("sbatch", *words, f"--output={out}/slurm-%j.log", str(script))
    assert done.returncode == 0, done.stderr
    job = done.stdout.strip()
    return job, out / f"slurm-{job}.log"


@contextmanager
def steps_deaf_to_sigterm(cluster: Cluster) -> Iterator[None]:
    """Let the benchmark end only by the SIGKILL that Slurm sends `KillWait` after SIGTERM."""
    deaf = cluster.bin / "qperf"
    deaf.write_text(f"#!/bin/sh\ntrap '' TERM\nexec {shutil.which('qperf')} \"$@\"\n")
    deaf.chmod(0o755)
    try:
        yield
    finally:
        deaf.unlink()


def wait_for_end(cluster: Cluster, job: str) -> None:
    """Wait until a job has left the queue."""
    listing = ("squeue", "--noheader", f"--jobs={job}")
    cluster.wait_until(lambda: not cluster.run(*listing).stdout.strip(), 240)


@pytest.mark.long
def test_a_batch_job(cluster: Cluster) -> None:
    """The job runs the plan; its number and its log are said."""
    out = cluster.here / "a b%j"
    job, log = submitted(cluster, out, seconds=1)
    wait_for_end(cluster, job)
    assert "report.html" in log.read_text()
    proven(out, "srun")


@pytest.mark.long
def test_mpirun_and_an_inventory(cluster: Cluster, plan: Path, tmp_path: Path) -> None:
    """Where srun has no plugin for it, mpirun starts the ranks, and srun its daemons."""
    hosts = tmp_path / "hosts.toml"
    done = cluster.run(*ALLOCATED, *ROCELAB, "hosts", "slurm")
    hosts.write_text(done.stdout)
    assert 'host = "s2"\nnetdev = "data0"' in done.stdout, done.stderr
    words = ("run", str(plan), "--out", str(tmp_path), "--inventory", str(hosts))
    done = cluster.run(*ALLOCATED, *ROCELAB, *words, SLURM_MPI_TYPE="none")
    assert done.returncode == 0, done.stderr
    proven(tmp_path, "mpirun")


LATE = """
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank) {
		sleep(2);
		close(creat(argv[1], 0600));
	}
	MPI_Finalize();
	if (rank)
		puts(access(argv[1], F_OK) ? "alone" : "together");
	return 0;
}
"""


def test_ranks_end_together(cluster: Cluster) -> None:
    """A rank that has ended answers none that still disconnects, which then hangs."""
    source, program = cluster.here / "late.c", cluster.bin / "late"
    source.write_text(LATE)
    subprocess.run(["mpicc", "-o", program, source], check=True, timeout=60)
    offered = cluster.run("srun", "--mpi=list")
    if "pmix" not in offered.stdout + offered.stderr:
        missing("srun has no plugin pmix")
    assert cluster.run("salloc", "--quiet", "--nodes=2", "--no-shell").returncode == 0
    (job,) = cluster.run("squeue", "--noheader", "--format=%i").stdout.split()
    try:
        starter = mpi_ranks.starter(job, ["s1", "s2"], 1, "pmix")
        done = cluster.run(*starter, str(program), str(cluster.here / "other-rank"))
    finally:
        cluster.run("scancel", job)
        cluster.wait_for_idle(2)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "together\n"


def cut_short(cluster: Cluster, tmp_path: Path) -> subprocess.Popen[str]:
    """Start a run whose first cell takes long; return it when that cell runs."""
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(seconds=100))
    run = (*ROCELAB, "run", str(plan), "--out", str(tmp_path), "--verbose")
    process = subprocess.Popen(
        cluster.command(*ALLOCATED, "--no-kill", *run),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "cell 1/2" in line:
            return process
    raise AssertionError("the run ended before its first cell")


@pytest.mark.long
def test_a_job_that_is_cancelled(cluster: Cluster, tmp_path: Path) -> None:
    process = cut_short(cluster, tmp_path)
    (job,) = cluster.run("squeue", "--noheader", "--format=%i").stdout.split()
    cluster.run("scancel", job)
    _, said = process.communicate(timeout=120)
    assert process.returncode
    assert "Traceback" not in said
    error = cells(tmp_path)["qperf"]["error"]
    assert error["what"].startswith(f"Slurm's job {job} has ended")
    assert "--resume" in error["action"]


@pytest.mark.long
def test_a_job_whose_time_is_over(cluster: Cluster, tmp_path: Path) -> None:
    """Slurm looks every half a minute, and ends what is a minute old."""
    process = cut_short(cluster, tmp_path)
    (job,) = cluster.run("squeue", "--noheader", "--format=%i").stdout.split()
    done = cluster.run("scontrol", "update", f"JobId={job}", "TimeLimit=1")
    assert done.returncode == 0, done.stderr
    _, said = process.communicate(timeout=240)
    print(f"ended with {process.returncode}:\n{said}")
    assert process.returncode
    assert "Traceback" not in said
    assert "likely cause: its time limit was 1:00" in said
    assert "to continue: rocelab run --resume" in said
    error = cells(tmp_path)["qperf"]["error"]
    assert error["what"] == f"Slurm's job {job} has ended: its time is over"
    assert "with a longer --time" in error["action"]


@pytest.mark.long
@pytest.mark.parametrize("first", ["either", "step", "rocelab"])
def test_a_batch_job_whose_time_is_over(cluster: Cluster, first: str) -> None:
    """Its log says why and how to go on, whichever of rocelab and its step Slurm ends first."""
    deaf_step = steps_deaf_to_sigterm(cluster) if first == "rocelab" else nullcontext()
    submit = deaf_to_sigterm if first == "step" else submitted
    with deaf_step:
        job, log = submit(cluster, cluster.here / f"late-{first}", seconds=200)
        # wait_until says what the cluster logged if it does not happen
        cluster.wait_until(lambda: log.exists() and "run 2" in log.read_text(), 120)
        cut = cluster.run("scontrol", "update", f"JobId={job}", "TimeLimit=1")
        assert cut.returncode == 0, cut.stderr
        wait_for_end(cluster, job)
    said = log.read_text()
    print(said)
    assert "Traceback" not in said
    assert f"rocelab: Slurm's job {job} has ended: its time is over" in said
    assert "likely cause: its time limit was 1:00" in said
    assert "to continue: rocelab run --resume" in said
    if first == "step":
        assert f"error: Slurm's job {job} has ended" in said
    if first == "rocelab":
        assert "cell 1/2" not in said


@pytest.mark.long
def test_a_node_that_vanishes(tmp_path: Path) -> None:
    """A lost node is told from a failed command, before a run and in it."""
    with slurm_cluster.running() as cluster:
        process = cut_short(cluster, tmp_path)
        cluster.kill_node("s2")
        _, said = process.communicate(timeout=180)
        assert process.returncode
        assert "s2" in said
        assert "Traceback" not in said
