# SPDX-License-Identifier: GPL-2.0-or-later
"""A command's status is its own; files come from a node as a stream, whole or not at all."""

from __future__ import annotations

import os
import random
import resource
import stat
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from polling import wait_until
from rocelab import limits
from rocelab.errors import TestbedError
from rocelab.testbed.node import DataLink, command_node
from rocelab.testbed.node.command_node import CommandNode
from rocelab.testbed.node.interface import MARK
from rocelab.testbed.node.local import LocalConnection
from rocelab.testbed.node.ssh_node import SshNode, SshTarget

LINK = DataLink("", "", "", 0)


def test_a_file_comes_whole(tmp_path: Path) -> None:
    remote, local = tmp_path / "remote", tmp_path / "local"
    remote.write_bytes(random.Random(3).randbytes(3 << 20))
    CommandNode("here", LINK, LocalConnection(is_root=False)).get(str(remote), local)
    assert local.read_bytes() == remote.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["local", "remote"]


def test_a_missing_file_leaves_nothing(tmp_path: Path) -> None:
    node = CommandNode("here", LINK, LocalConnection(is_root=False))
    with pytest.raises(TestbedError, match="cannot read here:/absent") as caught:
        node.get("/absent", tmp_path / "local")
    assert "No such file" in caught.value.cause
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_is_said_once_and_leaves_nothing(tmp_path: Path) -> None:
    """By the caller's thread: another one would print a traceback."""
    remote = tmp_path / "remote"
    remote.write_bytes(bytes(1 << 20))
    node = CommandNode("here", LINK, LocalConnection(is_root=False))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            node.get(str(remote), tmp_path / "local")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == ["remote"]


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes may print 4 MiB."""
    monkeypatch.setattr(limits, "MAX_PRINTED_BYTES", 4 << 20)


@pytest.mark.slow
@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("flood", ["exec yes", "exec cat /dev/zero", "exec yes >&2"])
def test_a_node_that_prints_without_end(flood: str) -> None:
    """In lines or not, on either stream: it is given up, and its command ended."""
    node = CommandNode("here", LINK, LocalConnection(is_root=False))
    with pytest.raises(TestbedError, match="on here printed over 4 MiB"):
        node.run(["sh", "-c", flood])
    process = node.start(["sh", "-c", flood])
    done = process.wait(timeout=60)
    assert done.returncode
    assert done.stderr.endswith("it printed over 4 MiB\n")
    assert len(done.stdout) + len(done.stderr) < 9 << 20


@dataclass(frozen=True)
class Hanging(LocalConnection):
    """A connection over which nothing comes."""

    def command(self, argv: Sequence[str]) -> list[str]:
        return ["sleep", "60"]


def test_a_copy_that_stands_still_is_given_up(tmp_path: Path) -> None:
    node = CommandNode("here", LINK, Hanging(is_root=True), patience=0.001)
    with pytest.raises(TestbedError, match="no byte of it"):
        node.get("/any", tmp_path / "local")
    assert not list(tmp_path.iterdir())


def test_advice_for_hosts_logs_in_there(tmp_path: Path) -> None:
    """`rocelab ssh` knows virtual machines only."""
    target = SshTarget("h 1", tmp_path, port=2222, user="me", identity=Path("/k y"))
    node = SshNode("n1", LINK, target)
    assert node.login == "ssh -l me -p 2222 -i '/k y' -- 'h 1'"
    assert CommandNode("here", LINK, LocalConnection(is_root=True)).login == "sh"


def test_a_copy_takes_no_foreseen_name(tmp_path: Path) -> None:
    """Where folders are shared, others prepare links; and an own file may have any name."""
    node = CommandNode("here", LINK, LocalConnection(is_root=True))
    (tmp_path / "there").write_text("content")
    shared = tmp_path / "shared"
    shared.mkdir()
    (tmp_path / "mine").write_text("mine")
    (shared / "got.part").symlink_to(tmp_path / "mine")
    long = "x" * 255
    for name in ("got", long):
        node.get(str(tmp_path / "there"), shared / name)
        assert (shared / name).read_text() == "content"
    with pytest.raises(TestbedError):
        node.get(str(tmp_path / "missing"), shared / "no")
    assert (tmp_path / "mine").read_text() == "mine"
    assert {path.name for path in shared.iterdir()} == {"got", "got.part", long}


def test_a_command_is_marked_before_it_says_its_pid() -> None:
    """It cannot say it once rocelab is dead; a lease that ends finds those that could."""
    reader, writer = os.pipe2(os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    argv = ("sh", "-c", command_node._PRINT_PID, "sh", "sleep", "60")
    environment = {"PATH": os.environ["PATH"]}
    with subprocess.Popen(argv, stderr=writer, env=environment) as process:
        try:
            os.close(writer)
            here = Path(f"/proc/{process.pid}")
            # it waits until somebody reads
            wait_until("it waits", lambda: "\nState:\tS" in (here / "status").read_text())
            assert f"{MARK}=1\0" in (here / "environ").read_text()
            os.close(reader)
            assert process.wait(10) != 0
        finally:
            process.kill()


_SSH = """#!/bin/sh
# as ssh(1): the last word is a command line for a shell; without a network its status is 255
[ ! -e "$0.cut" ] || { echo "Connection closed by remote host" >&2; exit 255; }
for last; do :; done
exec sh -c "$last"
"""


@pytest.fixture
def over_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SshNode:
    """This machine, through a program that does what ssh(1) does with a command line."""
    ssh = tmp_path / "ssh"
    ssh.write_text(_SSH)
    ssh.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return SshNode("n1", LINK, SshTarget(host="here", control_path=tmp_path / "control"))


def test_a_program_that_exits_with_255_is_no_lost_node(over_ssh: SshNode) -> None:
    done = over_ssh.run(["sh", "-c", "echo said; echo complained >&2; exit 255"], check=False)
    assert (done.returncode, done.stdout, done.stderr) == (255, "said\n", "complained\n")
    with pytest.raises(TestbedError, match="exited with 255"):
        over_ssh.run(["sh", "-c", "exit 255"])


def test_a_lost_connection_is_one(over_ssh: SshNode, tmp_path: Path) -> None:
    (tmp_path / "ssh.cut").touch()
    with pytest.raises(TestbedError, match="n1 does not answer") as caught:
        over_ssh.run(["true"], check=False)
    assert caught.value.cause == "Connection closed by remote host"
    assert "`ssh -- here`" in caught.value.action


@pytest.mark.parametrize("status", [0, 1, 124, 137, 254])
def test_other_statuses_stay(over_ssh: SshNode, status: int) -> None:
    done = over_ssh.run(["sh", "-c", f"exit {status}"], check=False)
    assert (done.returncode, done.stderr) == (status, "")


@dataclass(frozen=True)
class Forging(LocalConnection):
    """A host that prints a line before each command's."""

    line: str = ""

    def command(self, argv: Sequence[str]) -> list[str]:
        return ["sh", "-c", 'printf "%s\\n" "$0" >&2; exec "$@"', self.line, *argv]


@pytest.mark.parametrize("pid", ["x", "", "-1", "0", "9" * 5000])
def test_a_pid_that_is_none_is_a_line_like_others(pid: str) -> None:
    """The reader goes on: the command's own PID comes next."""
    node = CommandNode("n", LINK, Forging(is_root=False, line=f"rocelab-pid {pid}"))
    process = node.start(["sh", "-c", "echo ready; exec sleep 60"])
    try:
        process.wait_for_line("ready", timeout=5)
    finally:
        process.interrupt()  # needs the PID
        done = process.wait(timeout=5)
    assert f"rocelab-pid {pid}" in done.stderr
