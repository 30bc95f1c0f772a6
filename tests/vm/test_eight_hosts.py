# SPDX-License-Identifier: GPL-2.0-or-later
"""Eight machines as SSH hosts: prepared together, and collectives over all of them, counted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import ssh_inventory
import vmlab
from command_line import rocelab

pytestmark = pytest.mark.long
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
PLAN = """
[plan]
name = "eight"
repetitions = 1
probes = []
transports = ["tcp", "rxe-v2"]
[testbed]
provider = "ssh"
nodes = 8
switches = 1
[[benchmark]]
tool = "mpibench"
test = "allreduce"
sizes = [8, 1024]
iterations = 10
timeout = 900
[benchmark.mpi]
ranks = 8
[[benchmark]]
tool = "mpibench"
test = "alltoall"
sizes = [8, 1024]
iterations = 10
timeout = 900
[benchmark.mpi]
ranks = 8
"""


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with vmlab.boot(name="eight", prepared=False, nodes=8, switches=1, memory_mb=768) as testbed:
        path = tmp_path_factory.mktemp("eight") / "hosts.toml"
        with vmlab.healthy(testbed.nodes, "eight"):
            yield ssh_inventory.write(path, dict(zip(NAMES, testbed.nodes, strict=True)))


def test_prepared_together(inventory: Path) -> None:
    """One is begun before another has ended. It says how long one and eight took."""
    where = ("--inventory", str(inventory))
    seconds = []
    for hosts in (NAMES[:1], NAMES):
        began = time.monotonic()
        done = rocelab("hosts", "prepare", *hosts, *where, timeout=1800)
        seconds.append(time.monotonic() - began)
        assert done.returncode == 0, done.stderr
        lines = done.stderr.splitlines()
        begun = [i for i, line in enumerate(lines) if "built here for" in line]
        ended = [i for i, line in enumerate(lines) if "probes in /usr/local/sbin" in line]
        assert len(begun) == len(ended) == len(hosts)
        if len(hosts) > 1:
            assert begun[1] < ended[0]
        if hosts != NAMES:
            restored = rocelab("hosts", "restore", *hosts, *where, timeout=600)
            assert restored.returncode == 0, restored.stderr
    print(f"prepared one in {seconds[0]:.1f} s, eight in {seconds[1]:.1f} s")
    rows = rocelab("hosts", "status", *where).stdout.splitlines()[1:]
    assert [row.split()[-1] for row in rows] == ["yes"] * 8


def test_doctor(inventory: Path) -> None:
    """Its MPI exchange has a rank on each host."""
    began = time.monotonic()
    done = rocelab("doctor", "--hosts", "--inventory", str(inventory), timeout=900)
    print(f"doctor --hosts, 8 machines: {time.monotonic() - began:.1f} s")
    assert "ok       MPI exchange: 8 ranks over rxe-v2, proven by the wire" in done.stdout


def test_collectives(inventory: Path, tmp_path: Path) -> None:
    """Captures on eight hosts together have as many RoCE packets as the drivers have sent."""
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    words = ("run", str(plan), "--inventory", str(inventory), "--out", str(tmp_path))
    done = rocelab(*words, timeout=3600)
    assert done.returncode == 0, done.stderr
    print(*(line for line in done.stderr.splitlines() if "cell " in line), sep="\n")
    cells = [json.loads(path.read_text()) for path in tmp_path.glob("*-eight/cells/*/cell.json")]
    assert len(cells) == 4
    for cell in cells:
        (step,) = cell["steps"]
        assert step["proof"]["ok"]
        assert set(step["ends"]) == set(NAMES)
        sent = [counted["rxe"].get("sent_pkts", 0) for counted in step["counters"].values()]
        assert step["frames"]["roce_v2"] == sum(sent)
        assert all(sent) == (cell["transport"] == "rxe-v2")
