# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider slurm without a cluster: command lines, and what Slurm 22.05 says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from rocelab.errors import MissingError, TestbedError, UsageError
from rocelab.testbed.control_network import addresses
from rocelab.testbed.node.local import LocalConnection
from rocelab.testbed.slurm import allocation, data_network, mpi_ranks, slurm_testbed, submit
from rocelab.testbed.slurm.job_step import JobStep
from rocelab.testbed.ssh import inventory
from rocelab.testbed.ssh.inventory import Host

STEP = JobStep(job="7", node="s2")
ENDED = "srun: error: s2: task 0: Exited with exit code 3"
REMARK = "srun: cluster configuration lacks support for cpu binding"
NO_FOLDER = "slurmstepd-s1: error: Unable to return to working directory"


def test_a_command_is_words_and_never_shell_text() -> None:
    words = STEP.command(["echo", "$(id); rm -rf /"])
    assert words[0] == "srun"
    assert "--overlap" in words
    assert "--nodelist=s2" in words
    assert words[-2:] == ["echo", "$(id); rm -rf /"]


def test_root_by_sudo() -> None:
    assert JobStep(job="7", node="s2", is_root=False).as_root().command(["true"])[-4:] == [
        *("sudo", "-n", "--", "true"),
    ]


@pytest.mark.parametrize(
    ("said", "status", "lost"),
    [
        ("", 0, False),
        (f"{REMARK}\n", 0, False),
        (f"{REMARK}\n{ENDED}\n", 3, False),
        (f"{NO_FOLDER}\n{ENDED}\n", 1, False),
        ("srun: error: s2: task 0: Killed\n", 137, False),
        ("grep: no such file\nsrun: error: s2: task 0: Exited with exit code 2\n", 2, False),
        (
            "srun: error: Unable to confirm allocation for job 7: Invalid job id specified\n",
            1,
            True,
        ),
        ("srun: error: Node failure on s2\n", 143, True),
        (
            "slurmstepd-s2: error: *** STEP 7.1 ON s2 CANCELLED AT 2026-11-24T23:36:54 ***\n"
            "srun: error: s2: task 0: Terminated\n",
            143,
            True,
        ),
    ],
)
def test_slurms_failure_is_told_from_the_commands(said: str, status: int, lost: bool) -> None:
    assert STEP.is_lost(subprocess.CompletedProcess([], status, b"", said.encode())) is lost


def test_only_remarks_are_left_out() -> None:
    assert STEP.noise(ENDED)
    assert STEP.noise(REMARK)
    assert STEP.noise(NO_FOLDER)
    assert not STEP.noise("srun: error: Node failure on s2")
    assert not STEP.noise("a command's own words")
    assert not LocalConnection(is_root=True).noise(REMARK)


@pytest.mark.parametrize(
    ("left", "seconds"),
    [("57", None), ("0:57", 57), ("1:02:03", 3723), ("2-00:00:00", 172800), ("UNLIMITED", None)],
)
def test_the_time_left(left: str, seconds: int | None) -> None:
    assert allocation._seconds(left) == seconds


@pytest.mark.parametrize(
    ("said", "status", "what", "cause", "action"),
    [
        (
            "COMPLETING|TimeLimit|1:00|INVALID|s[1-2]",
            0,
            "its time is over",
            "1:00",
            "longer --time",
        ),
        ("TIMEOUT|TimeLimit|1:00|INVALID|s[1-2]", 0, "time is over", "1:00", "longer --time"),
        ("CANCELLED|None|1:00|0:56|s[1-2]", 0, "it is 'CANCELLED'", "cancelled", "--resume"),
        ("NODE_FAIL|NodeDown|1:00|0:56|s1", 0, "it is 'NODE_FAIL'", "--no-kill", "--resume"),
        ("\x1b[31m|||", 0, r"it is '\x1b[31m'", "cancelled", "--resume"),
        ("", 0, "has ended", "cancelled", "--resume"),
        ("", 1, "has ended", "Invalid job id", "--resume"),
    ],
)
def test_why_a_job_does_not_run(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    said: str,
    status: int,
    what: str,
    cause: str,
    action: str,
) -> None:
    """What squeue 22.05 says of jobs that have ended."""
    squeue = tmp_path / "squeue"
    complaint = "slurm_load_jobs error: Invalid job id specified"
    error = f"echo {complaint} >&2" if status else ":"
    squeue.write_text(f"#!/bin/sh\n{error}\ncat <<'END'\n{said}\nEND\nexit {status}\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(TestbedError) as caught:
        allocation.check_running("7")
    assert caught.value.what.startswith("Slurm's job 7 has ended")
    assert what in caught.value.what
    assert cause in caught.value.cause
    assert action in caught.value.action


def test_a_job_that_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\necho 'RUNNING|None|UNLIMITED|UNLIMITED|s[1-2]'\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    allocation.check_running("7")


def test_ranks_run_on_the_nodes_that_the_benchmark_has() -> None:
    """Not on all that the plan has."""
    testbed = slurm_testbed.SlurmTestbed.__new__(slurm_testbed.SlurmTestbed)
    testbed.job, testbed.slurm_names, testbed.plugin = "7", ("s1", "s2", "s3"), "pmix"
    starter = testbed.rank_starter(2, 2)
    assert starter is not None
    _, words = starter
    assert {"--nodes=2", "--ntasks=4", "--nodelist=s1,s2", "--mpi=pmix"} <= set(words)


HOSTS = (Host("alpha", "s1", "ib0"), Host("gamma", "s3", "ib0"))


def test_named_hosts_of_an_allocation() -> None:
    """Those that the inventory lists, in Slurm's order."""
    named = slurm_testbed._hosts_of_job
    assert named(HOSTS, ("s1", "s2", "s3"), 2) == HOSTS
    assert named(HOSTS[::-1], ("s1", "s2", "s3"), 1) == HOSTS[:1]
    with pytest.raises(UsageError, match="does not list s2"):
        named(HOSTS, ("s1", "s2"), 2)


def test_no_slurm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="srun is not installed"):
        allocation.current({"SLURM_JOB_ID": "7"})
    with pytest.raises(MissingError, match="sbatch is not installed"):
        submit.submit(["true"], nodes=2, log=tmp_path)


def _listing(*pairs: tuple[str, str]) -> data_network.Interfaces:
    return addresses(
        json.dumps([
            {
                "ifname": netdev,
                "flags": ["UP"],
                "addr_info": [{"local": ip, "prefixlen": 24, "scope": "global"}],
            }
            for netdev, ip in pairs
        ])
    )  # fmt: skip


def test_networks_that_all_nodes_share() -> None:
    listed = [
        _listing(("eth0", "10.0.0.1"), ("ib0", "10.1.0.1"), ("docker0", "172.17.0.1")),
        _listing(("ens1", "10.0.0.2"), ("ib1", "10.1.0.2"), ("docker0", "172.17.0.1")),
    ]
    assert data_network.networks_of_all(listed) == {
        "10.0.0.0/24": ["eth0", "ens1"],
        "10.1.0.0/24": ["ib0", "ib1"],
    }


@pytest.mark.parametrize(
    ("offered", "ompi_info", "plugin"),
    [
        (["pmix", "pmi2", "pmix_v4"], 'mca:pmix:ext3x:version:"component:4.1.4"\n', "pmix"),
        (["pmi2"], 'mca:pmix:ext3x:version:"component:4.1.4"\n', ""),
        (["pmi2"], 'mca:pmix:s2:version:"component:4.1.4"\n', "pmi2"),
        (["pmix"], "ompi:version:full:5.0.7\n", "pmix"),
        (["pmix"], "", ""),
    ],
)
def test_which_plugin_starts_ranks(offered: list[str], ompi_info: str, plugin: str) -> None:
    assert mpi_ranks.chosen(offered, ompi_info) == plugin


def test_an_inventory_can_be_read_again(tmp_path: Path) -> None:
    hosts = (Host("s1", "s1.example", "ib0"), Host("n2", "S_2", "ib0"))
    path = tmp_path / "hosts.toml"
    path.write_text(inventory.inventory_text(hosts))
    assert inventory.load(path) == hosts
    with pytest.raises(UsageError):
        inventory.inventory_text((Host("s1", "s1", "ib0 --help"),))
