# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab exec` as a user calls it: programs of others between two nodes that are up."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from polling import wait_until
from rocelab import capture
from rocelab.record import read
from rocelab.testbed.node import Node
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rocelab.testing import Nodes, assert_no_findings

PINGPONG = ("ibv_rc_pingpong", "-d", "{device}", "-g", "{gid}", "-n", "10")
RPING = ("rping", "-c", "-v", "-C", "3", "-a", "{peer}")


class Exec:
    """`rocelab exec` on one testbed, in a folder that is never copied."""

    def __init__(self, testbed: QemuTestbed) -> None:
        self._nodes = Nodes(testbed.spec.name)
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        self.started.append(
            subprocess.Popen(
                [*self._nodes.words()[:-1], *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
            )
        )
        return self.started[-1]

    def run(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """`words`: the options, `--` and the command."""
        options, argv = words[: words.index("--")], words[words.index("--") + 1 :]
        return self._nodes.exec(*argv, options=options, stdin=stdin, timeout=300, cwd=Path("/"))


@pytest.fixture
def rexec(testbed: QemuTestbed) -> Iterator[Exec]:
    """The command; afterwards nothing of it is left on a node: no process and no folder."""
    made = Exec(testbed)
    yield made
    for process in made.started:
        process.kill()
        process.communicate()
    script = "ls -d /tmp/rocelab-exec.* 2>/dev/null; grep -lsz ^ROCELAB_EXEC= /proc/*/environ; true"
    leftovers = at_once(lambda node: node.run(("sh", "-c", script)).stdout, testbed.nodes)
    assert leftovers == ["", ""]


def test_status_streams_and_words(rexec: Exec) -> None:
    """A waiting shell, sshd and ssh(1) change nothing."""
    word = b"it's \xff {x} $HOME\n;"
    script = 'cat; printf %s "$1"; printf "%s" "$1" >&2; exit 255'
    text = bytes(range(256)) * 100
    done = rexec.run("--", "sh", "-c", script, "sh", os.fsdecode(word), stdin=text)
    assert (done.returncode, done.stdout, done.stderr) == (255, text + word, word)


def test_a_terminal(rexec: Exec, testbed: QemuTestbed) -> None:
    """Only if there is one here."""
    words = [sys.executable, "-m", "rocelab", "exec", "--name", testbed.spec.name, "--no-folder"]
    there = shlex.join([*words, "-t", "--", "sh", "-c", "test -t 0 && test -t 1; exit $?"])
    script = ["script", "--quiet", "--return", "--command", there, "/dev/null"]
    assert subprocess.run(script, check=False).returncode == 0
    done = rexec.run("-t", "--", "true")
    assert (done.returncode, b"--tty needs a terminal" in done.stderr) == (2, True)


def test_a_signal_and_what_it_leaves(rexec: Exec, n2: Node) -> None:
    process = rexec.start("--on", "n2", "--", "sh", "-c", "trap 'exit 9' INT; sleep 1000 & wait")
    wait_until("it runs", lambda: not n2.run(("pgrep", "-x", "sleep"), check=False).returncode)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == 9


def test_a_killed_rocelab_leaves_nothing(rexec: Exec, n1: Node) -> None:
    process = rexec.start("--", "sh", "-c", "trap '' HUP INT TERM PIPE; setsid sleep 1000")
    wait_until("it runs", lambda: not n1.run(("pgrep", "-x", "sleep"), check=False).returncode)
    process.kill()
    process.communicate(timeout=60)
    wait_until("it is gone", lambda: n1.run(("pgrep", "-x", "sleep"), check=False).returncode)
    gone = ("sh", "-c", "ls -d /tmp/rocelab-exec.*")
    wait_until("its folder is gone", lambda: n1.run(gone, check=False).returncode)


@pytest.mark.parametrize("megabytes", [5, pytest.param(200, marks=pytest.mark.long)])
def test_much_output(rexec: Exec, megabytes: int) -> None:
    with rexec.start("--", "head", "-c", f"{megabytes}M", "/dev/zero") as process:
        assert process.stdout is not None
        size = 0
        while data := process.stdout.read(1 << 20):
            size += len(data)
            resident = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096
            assert resident < 200e6
    assert (process.returncode, size) == (0, megabytes << 20)


# the first of them finds rdma_cm not loaded, which rxe-v1 sets up
@pytest.mark.parametrize(
    ("program", "transport"),
    [
        ("rping", "rxe-v1"),
        ("pingpong", "rxe-v2"),
        pytest.param("rping", "rxe-v2", marks=pytest.mark.long),
        pytest.param("pingpong", "rxe-v1", marks=pytest.mark.long),
    ],
)
def test_programs_of_others(rexec: Exec, tmp_path: Path, transport: str, program: str) -> None:
    """Both ends work, over the version of RoCE that was asked for, which the wire shows."""
    server, client = {
        "rping": (("rping", "-s", "-C", "3"), RPING),
        "pingpong": (PINGPONG, (*PINGPONG, "{peer}")),
    }[program]
    wire = tmp_path / "wire.pcap"
    options = ("--transport", transport, "--capture", str(wire), "--server", " ".join(server))
    done = rexec.run(*options, "--", *client)
    assert done.returncode == 0, done.stderr
    assert (b"n1: ping data: rdma-ping-2" if program == "rping" else b"n1: 10 iters") in done.stdout
    assert_no_findings(wire)
    counted = capture.analyze([str(wire)]).result["roce"]
    assert counted["packets"] > 0
    assert counted["v1"] == (counted["packets"] if transport == "rxe-v1" else 0)


@pytest.mark.long  # tests/unit/measure/test_command.py has the same on one machine
def test_servers_and_clients_that_fail(rexec: Exec) -> None:
    """Each error names the command, its node, and what it did last."""
    cases: Sequence[tuple[tuple[str, ...], int, str]] = (
        (("--timeout", "2", "--server", "sleep 1000"), 125, "`sleep` on n2 never listened"),
        (("--server", "ibv_rc_pingpong -d nosuch"), 125, "ended with 1 before it listened"),
    )
    for words, code, says in cases:
        done = rexec.run(*words, "--", "true")
        assert (done.returncode, done.stdout) == (code, b""), done.stderr
        assert says in done.stderr.decode()
    server = ("--server", "sh -c 'echo up; sleep 1001'", "--ready", "line:up")
    done = rexec.run("--timeout", "5", *server, "--", "sleep", "1000")
    said = done.stderr.decode()
    assert (done.returncode, done.stdout) == (124, b"n2: up\n"), said
    for text in ("did not end within 5 s", "sleep 1000", "sleep 1001", "n2 printed: up"):
        assert text in said


_PROGRAM = """
#include <infiniband/verbs.h>
#include <stdio.h>
int main(void)
{
	int count = 0;
	struct ibv_device **devices = ibv_get_device_list(&count);

	printf("%d %s\\n", count, count ? ibv_get_device_name(devices[0]) : "");
	return 42;
}
"""


@pytest.mark.long
def test_a_program_built_on_the_node(rexec: Exec, tmp_path: Path) -> None:
    (tmp_path / "devices.c").write_text(_PROGRAM)
    (tmp_path / "Makefile").write_text("devices: LDLIBS = -libverbs\n")
    folder = ("--folder", str(tmp_path))
    done = rexec.run(*folder, "--rw", "--", "make", "CC=gcc", "devices")
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    done = rexec.run(*folder, "--", "./devices")
    assert (done.returncode, done.stdout) == (42, b"1 rxe0\n"), done.stderr


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc here")
def test_a_program_built_here(rexec: Exec, tmp_path: Path) -> None:
    (tmp_path / "here.c").write_text("int main(void) { return 43; }")
    subprocess.run(["gcc", "-o", tmp_path / "here", tmp_path / "here.c"], check=True)
    here = tmp_path / "here"
    assert rexec.run("--no-folder", "--copy", f"{here}:a b", "--", "./a b").returncode == 43


@pytest.mark.long
def test_python_with_verbs(rexec: Exec, tmp_path: Path) -> None:
    """And its result comes here."""
    script = "import pyverbs.device as d, sys; print(d.get_device_list()[0].name.decode())"
    got = tmp_path / "out.txt"
    words = ("sh", "-c", 'python3 -c "$1" >out.txt', "sh", script)
    done = rexec.run("--no-folder", "--get", f"out.txt:{got}", "--", *words)
    assert (done.returncode, got.read_text()) == (0, "rxe0\n"), done.stderr


def test_two_commands_at_once(rexec: Exec, testbed: QemuTestbed) -> None:
    """They share the testbed; what would change it under them has to wait."""
    script = "echo begun; until [ -e ../go ]; do sleep 0.1; done"
    both = [rexec.start("--on", node.name, "--", "sh", "-c", script) for node in testbed.nodes]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
    refused = rexec.run("--transport", "rxe-v1", "--", "true")
    assert refused.returncode == 2
    assert b"is in use by" in refused.stderr
    go = ("sh", "-c", "for folder in /tmp/rocelab-exec.*; do touch $folder/go; done")
    at_once(lambda node: node.run(go), testbed.nodes)
    assert [process.communicate(timeout=60) for process in both] == [(b"", b"")] * 2
    assert [process.returncode for process in both] == [0, 0]


_FAULTS = """
[lost]
action = "drop"
message = 3
[busy]
action = "rnr_nak"
message = 6
"""


def test_what_a_command_survives_and_costs(rexec: Exec, tmp_path: Path) -> None:
    """Findings come first; its status and its output are its own, and a run folder is left."""
    (tmp_path / "faults.toml").write_text(_FAULTS)
    server = ("--server", " ".join(PINGPONG), "--faults", str(tmp_path / "faults.toml"))
    client = ("sh", "-c", '"$@"; exit 3', "sh", *PINGPONG, "{peer}")
    done = rexec.run("--watch", *server, "--out", str(tmp_path / "runs"), "--", *client)
    said = done.stderr.decode()
    assert done.returncode == 3, said
    assert b"n1: 10 iters" in done.stdout
    # on a busy host the requester's timer may be faster than the NAK
    losses = ("warning loss packet", "warning timeout ambiguous packet")
    texts = [
        next((loss for loss in losses if loss in said), losses[0]),
        "warning rnr packet",
        "RoCE messages",
        "sent again: client",
        "after_rnr",
        "faults that met no packet: none",
        "proven: rxe-v2 carried it",
        "Inside the driver: command time over rxe-v2",
        "Processors, by whose work",
    ]
    places = [said.find(text) for text in texts]
    assert -1 not in places, said
    assert places == sorted(places), said
    [run] = (tmp_path / "runs").iterdir()
    assert (run / "report.html").stat().st_size
    assert f"report: {run}" in said.replace("\n", "")


_PLAN = """
[plan]
name = "mine"
repetitions = 1
transports = ["rxe-v1", "rxe-v2"]
probes = ["rxestat", "rxecpu"]
[[benchmark]]
tool = "command"
test = "latency"
sizes = [64]
[benchmark.parameters]
n = [20, 40]
[benchmark.command]
server = ["ibv_rc_pingpong", "-d", "{device}", "-g", "{gid}", "-n", "{n}", "-p", "{tcp_port}"]
client = ["sh", "run", "{device}", "{gid}", "{n}", "{tcp_port}", "{size}", "{peer}"]
folder = "FOLDER"
regex = '= (?P<value>[0-9.]+) usec/iter'
unit = "us"
[[benchmark]]
tool = "command"
test = "time"
[benchmark.command]
server = ["rping", "-s", "-C", "3"]
client = ["rping", "-c", "-C", "3", "-a", "{peer}"]
"""


@pytest.mark.long
def test_commands_in_a_plan(testbed: QemuTestbed, tmp_path: Path) -> None:
    """Over both versions of RoCE, by rdma_cm as well; each has stages and proof."""
    folder = tmp_path / "with"
    folder.mkdir()
    (folder / "run").write_text('exec ibv_rc_pingpong -d "$1" -g "$2" -n "$3" -p "$4" "$6"\n')
    plan = tmp_path / "mine.toml"
    plan.write_text(_PLAN.replace("FOLDER", "with"))
    words = ["run", "--name", testbed.spec.name, "--out", str(tmp_path / "runs"), str(plan)]
    done = subprocess.run(
        [sys.executable, "-m", "rocelab", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,  # a plan's folder is below the current one
    )
    assert done.returncode == 0, done.stderr
    [run] = (tmp_path / "runs").iterdir()
    table = read.results(run)
    for transport in ("rxe-v1", "rxe-v2"):
        of = table.filter(transport=transport)
        for test in ("latency-n20", "latency-n40"):
            [latency] = of.filter(test=test, metric="latency.mean")["value"]
            assert 1e4 < latency < 1e9
            assert not of.filter(test=test, metric="stage.tx.icrc.mean", kind="SEND").is_empty()
        [took] = of.filter(test="time", metric="application.time")["value"]
        assert 1e6 < took < 1e11


@pytest.mark.long
def test_commands_of_a_plan_on_hosts(foreign_hosts: Path, tmp_path: Path) -> None:
    """With permission only; its words have the host's device and addresses."""
    folder = tmp_path / "with"
    folder.mkdir()
    (folder / "run").write_text('exec ibv_rc_pingpong -d "$1" -g "$2" -n "$3" -p "$4" "$6"\n')
    plan = tmp_path / "mine.toml"
    text = _PLAN.replace("FOLDER", "with").replace("[20, 40]", "[20]")
    plan.write_text(text.replace('["rxe-v1", "rxe-v2"]', '["rxe-v2"]'))
    by = ["--provider", "ssh", "--inventory", str(foreign_hosts), "--out", str(tmp_path / "runs")]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "rocelab", "run", *by, *more, str(plan)]
        return subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert "commands of its own" in run().stderr
    done = run("--commands")
    assert done.returncode == 0, done.stderr
    [made] = (tmp_path / "runs").iterdir()
    table = read.results(made)
    assert len(table.filter(metric="application.time")) == 1
    assert len(table.filter(metric="latency.mean")) == 1
