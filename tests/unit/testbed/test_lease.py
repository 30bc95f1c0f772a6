# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine's lease, in namespaces of its own: what a killed run leaves there, and who holds it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

import namespaced_machine
from namespaced_machine import Inside
from polling import wait_until
from rocelab.cli import hosts
from rocelab.errors import TestbedError
from rocelab.testbed import lease
from rocelab.testbed.hosts import prepare_host, restore_host
from rocelab.testbed.node.command_node import CommandNode
from rocelab.testbed.ssh import connect

pytestmark = pytest.mark.slow


@pytest.fixture
def machine() -> Iterator[CommandNode]:
    """A machine on which rocelab is root."""
    with namespaced_machine.running() as node:
        yield node


_UID = 4242


class PlainNode(CommandNode):
    """The machine as a user knows it who cannot become root."""

    @property
    def has_root(self) -> bool:
        return False


@dataclass(frozen=True)
class InsideAsUser(Inside):
    """The same as a user without root, whose home is /tmp/home."""

    def command(self, argv: Sequence[str]) -> list[str]:
        user = ("setpriv", "--reuid", str(_UID), "--regid", str(_UID), "--clear-groups")
        return super().command([*user, "env", "HOME=/tmp/home", *argv])


@pytest.fixture
def plain(machine: CommandNode) -> CommandNode:
    """The machine as a plain user."""
    assert isinstance(machine.connection, Inside)
    machine.run(["sh", "-c", f"chmod 1777 /tmp; mkdir /tmp/home; chown {_UID} /tmp/home"])
    return PlainNode("n1", machine.link, InsideAsUser(machine.connection.pid))


def succeeds(machine: CommandNode, *argv: str) -> bool:
    return machine.run(argv, check=False).returncode == 0


LEFT = (
    "/tmp/rocelab-wire-abcdef.pcap",
    "/tmp/rocelab-probe.abcdef/n1.pcapng",
    "/tmp/rocelab-check.abcdef/verbs_target",
    "/tmp/rocelab-mpi.abcdef/rank",
    "/run/rocelab-file.abcdef/source/file",
    "/run/undone",
)
"""Files of a run, in its folders, and one that `at_end` removes."""
OTHERS = "/tmp/rocelab-0/default/spec.json"

# what a run does on a machine, until it is killed
HOLD = """
import signal, sys
sys.path[:0] = sys.argv[2:]
from rocelab.testbed import lease
from namespaced_machine import node
from test_lease import LEFT, OTHERS
from rocelab.testbed.node.interface import mark
machine = node(int(sys.argv[1]))
with lease.hold([machine]):
    for path in (*LEFT, OTHERS):
        machine.run(["sh", "-c", 'mkdir -p "${1%/*}" && echo x >"$1"', "sh", path])
    lease.at_end(machine, ["rm", "/run/undone"])
    # like timeout(1), mpirun(1) and its ranks: a child, and a child in a session of its own
    started = machine.start(["sh", "-c", "sleep 611 & setsid sleep 612 & echo on; wait"])
    started.wait_for_line("on", timeout=30)
    machine.start(["sh", "-c", "trap '' INT TERM HUP; sleep 613; sleep 613"])
    print("held", flush=True)
    machine.run(mark(["sleep", "614"]), timeout=700)
"""


def holder(machine: CommandNode) -> subprocess.Popen[str]:
    assert isinstance(machine.connection, Inside)
    path = [str(Path(__file__).parent), *sys.path]
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(machine.connection.pid), *path],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    wait_until("the run's processes", lambda: all(running(machine).values()))
    return process


def running(machine: CommandNode) -> dict[str, bool]:
    sleeps = ("611", "612", "613", "614")
    return {s: succeeds(machine, "pgrep", "-fx", f"sleep {s}") for s in sleeps}


def assert_clean(machine: CommandNode) -> None:
    assert not any(running(machine).values())
    for path in LEFT:
        assert not succeeds(machine, "test", "-e", path), path
    assert succeeds(machine, "test", "-e", OTHERS)
    assert not succeeds(machine, "test", "-e", lease.FOLDER)


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_killed_leaves_nothing(machine: CommandNode, by: signal.Signals) -> None:
    with holder(machine) as run:
        run.send_signal(by)
    wait_until("the lease ends", lambda: not succeeds(machine, "test", "-e", lease.FOLDER))
    assert_clean(machine)


def test_what_a_killed_lease_left_is_removed_by_the_next(machine: CommandNode) -> None:
    """The machine lost its lease as well: only the next run can clean it."""
    with holder(machine) as run:
        assert succeeds(machine, "pkill", "-KILL", "-f", lease.FOLDER)
        run.kill()
    assert any(running(machine).values())
    with lease.hold([machine]):
        assert not any(running(machine).values())
        assert not succeeds(machine, "test", "-e", LEFT[0])
    assert_clean(machine)


def test_hosts_keep_their_driver_while_a_run_measures_there(
    machine: CommandNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither `hosts prepare` nor `hosts restore` begins."""
    monkeypatch.setattr(lease, "_WAIT_SECONDS", 1)
    monkeypatch.setattr(hosts, "select_hosts", lambda *_: ())
    monkeypatch.setattr(connect, "connect", lambda _hosts: nullcontext([machine]))
    # it shares this machine's kernel and file system: never let one begin
    monkeypatch.setattr(prepare_host, "prepare", lambda *_: pytest.fail("it began"))
    monkeypatch.setattr(restore_host, "restore", lambda *_: pytest.fail("it began"))
    with holder(machine) as run:
        try:
            for command in (hosts.prepare, hosts.restore):
                with pytest.raises(TestbedError, match=f"n1 is in use by .*process {run.pid},"):
                    command.main([], standalone_mode=False)
            assert all(running(machine).values())
        finally:
            run.kill()


def test_a_second_run_is_told_who_holds_the_machine(
    machine: CommandNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "_WAIT_SECONDS", 1)
    with holder(machine) as run:
        try:
            with pytest.raises(TestbedError, match=f"n1 is in use by .*process {run.pid},"):
                lease.hold([machine]).__enter__()
            assert all(running(machine).values())
            # as the error says
            held_by = machine.run(["cat", f"{lease.FOLDER}/holder"]).stdout.split()[-2]
            machine.run(["kill", held_by])
            wait_until("it ends", lambda: not succeeds(machine, "test", "-e", lease.FOLDER))
            assert_clean(machine)
        finally:
            run.kill()


def test_a_lease_of_a_run_that_ends_well(machine: CommandNode) -> None:
    with lease.hold([machine]):
        assert succeeds(machine, "test", "-e", f"{lease.FOLDER}/lock")
    assert not succeeds(machine, "test", "-e", lease.FOLDER)
    # without a lease there is nothing to note
    lease.at_end(machine, ["touch", "/run/never"])
    assert not succeeds(machine, "test", "-e", "/run/never")


def test_a_plain_user_holds_a_separate_lease(
    machine: CommandNode, plain: CommandNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes that user's processes and files, and nobody else's."""
    others = "/tmp/rocelab-mpi.others"
    machine.run(["mkdir", others])
    kept = machine.start(["sleep", "612"])
    wait_until("another user's process", lambda: running(machine)["612"])
    with lease.hold([plain]):
        assert not succeeds(machine, "test", "-e", lease.FOLDER)
        plain.run(["mkdir", "/tmp/rocelab-mpi.abcdef"])
        ours = plain.start(["sleep", "611"])
        wait_until("a process of the run", lambda: running(machine)["611"])
        monkeypatch.setattr(lease, "_WAIT_SECONDS", 1)
        with pytest.raises(TestbedError, match=r"n1 is in use by .*, process \d"):
            lease.hold([plain]).__enter__()
    assert not running(machine)["611"]
    assert running(machine)["612"]
    for process in (ours, kept):
        process.kill()
    assert not succeeds(machine, "test", "-e", "/tmp/rocelab-mpi.abcdef")
    assert succeeds(machine, "test", "-e", others)
    assert machine.run(["ls", "-A", "/tmp/home"]).stdout == ""


def test_a_plain_user_waits_for_a_run_of_roots(
    machine: CommandNode, plain: CommandNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "_WAIT_SECONDS", 1)
    with (
        lease.hold([machine]),
        pytest.raises(TestbedError, match="n1 is in use by a run by root") as caught,
    ):
        lease.hold([plain]).__enter__()
    assert lease.FOLDER in caught.value.action
    with lease.hold([plain]):
        pass
