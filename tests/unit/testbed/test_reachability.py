# SPDX-License-Identifier: GPL-2.0-or-later
"""Who reaches whom by TCP, between network namespaces of this machine.

asker ─ there (10.66.6.2)      elsewhere (10.66.6.2, too, but on no link)
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier

import pytest

from requirements import missing, need_program
from rocelab.testbed import reachability
from rocelab.testbed.node import DataLink
from rocelab.testbed.node.command_node import CommandNode
from rocelab.testbed.node.local import LocalConnection

pytestmark = pytest.mark.slow
ADDRESS, ADDRESS6 = "10.66.6.2", "fd66:6::2"
SETUP = f"""
asker=$1 there=$2 elsewhere=$3
ip link add a0 netns "$asker" type veth peer name t0 netns "$there"
up() {{ nsenter -t "$1" -n ip addr add "$3" dev "$2" $4; nsenter -t "$1" -n ip link set "$2" up; }}
up "$asker" a0 10.66.6.1/24
up "$asker" a0 fd66:6::1/64 nodad
up "$there" t0 {ADDRESS}/24
up "$there" t0 {ADDRESS6}/64 nodad
nsenter -t "$elsewhere" -n ip link add e0 type veth peer name e1
up "$elsewhere" e0 {ADDRESS}/24
"""


@dataclass(frozen=True)
class Inside(LocalConnection):
    """Commands here, in the network of a process."""

    pid: int = 0
    path: str = ""

    def command(self, argv: Sequence[str]) -> list[str]:
        path = ("env", f"PATH={self.path}") if self.path else ()
        return ["nsenter", "-t", str(self.pid), "-n", "--", *path, *argv]


@dataclass(frozen=True)
class Together(Inside):
    """The same; a command begins when as many have come as the barrier has parties."""

    meeting: Barrier = field(default_factory=lambda: Barrier(1))

    def command(self, argv: Sequence[str]) -> list[str]:
        self.meeting.wait()
        return super().command(argv)


@contextmanager
def network() -> Iterator[int]:
    """The PID of a process with a network of its own."""
    argv = ["unshare", "--net", "sh", "-c", "echo ready; exec sleep 600"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as own:
        assert own.stdout is not None
        try:
            if own.stdout.readline() != "ready\n":
                missing("namespaces need root")
            yield own.pid
        finally:
            own.kill()


@pytest.fixture
def pids() -> Iterator[list[int]]:
    for program in ("unshare", "nsenter", "ip", "perl", "bash"):
        need_program(program)
    with ExitStack() as stack:
        pids = [stack.enter_context(network()) for _ in range(3)]
        subprocess.run(["sh", "-ec", SETUP, "sh", *map(str, pids)], check=True)
        yield pids


def at(pid: int, path: str = "") -> CommandNode:
    return CommandNode(f"p{pid}", DataLink("", "", "", 0), Inside(True, pid, path))


@pytest.mark.parametrize("address", [ADDRESS, ADDRESS6])
def test_bytes_that_get_through(pids: list[int], address: str) -> None:
    asker, there, _ = map(at, pids)
    assert reachability.reaches([asker, asker], there, address) == ["", ""]


def test_a_reset_is_no_proof(pids: list[int]) -> None:
    """Here it is another machine's that has the address, too; a firewall may send the same."""
    asker, _, elsewhere = map(at, pids)
    (said,) = reachability.reaches([asker], elsewhere, ADDRESS)
    assert "Connection refused" in said


def test_silence(pids: list[int]) -> None:
    """Each of several waits, and all of them at the same time."""
    there = at(pids[1])
    asker = CommandNode("asker", there.link, Together(True, pids[0], "", Barrier(8, timeout=300)))
    there.run(["ip", "link", "set", "t0", "arp", "off"])
    for said in reachability.reaches([asker] * 8, there, ADDRESS):
        assert "no answer" in said or "No route" in said


def test_an_address_that_the_host_does_not_have(pids: list[int]) -> None:
    asker, there, _ = map(at, pids)
    (said,) = reachability.reaches([asker], there, "10.66.6.9")
    assert "Cannot assign requested address" in said


def test_a_host_without_perl(pids: list[int], tmp_path: Path) -> None:
    """There a reset has to do."""
    for name in ("sh", "echo", "env", "bash", "timeout", "kill"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    asker, there = at(pids[0]), at(pids[1], str(tmp_path))
    assert reachability.reaches([asker], there, ADDRESS) == [""]


def test_a_slow_bashrc_is_not_run(pids: list[int], tmp_path: Path) -> None:
    """Debian's bash runs it where SSH started it: for three seconds nobody would be reached."""
    (tmp_path / ".bashrc").write_text("sleep 30\n")
    there = at(pids[1])
    asker = at(pids[0])
    over_ssh = CommandNode("ssh", asker.link, OverSsh(True, pids[0], "", str(tmp_path)))
    assert reachability.reaches([over_ssh], there, ADDRESS) == [""]


@dataclass(frozen=True)
class OverSsh(Inside):
    """The same with the environment that sshd(8) makes."""

    home: str = ""

    def command(self, argv: Sequence[str]) -> list[str]:
        variables = ("SSH_CLIENT=192.0.2.1 50000 22", f"HOME={self.home}", "PATH=/usr/bin:/bin")
        return super().command(["env", "-u", "SHLVL", *variables, *argv])
