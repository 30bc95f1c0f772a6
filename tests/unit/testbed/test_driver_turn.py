# SPDX-License-Identifier: GPL-2.0-or-later
"""Another driver on a host for a while: in namespaces, with programs that note what is loaded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import namespaced_machine
from namespaced_machine import Inside
from polling import wait_until
from rocelab.errors import TestbedError, UsageError
from rocelab.testbed import lease
from rocelab.testbed.hosts import driver_exchange, driver_turn, loaded_driver
from rocelab.testbed.hosts.driver_turn import Placed
from rocelab.testbed.hosts.loaded_driver import Device, LoadedDriver
from rocelab.testbed.node.command_node import CommandNode

pytestmark = pytest.mark.slow

LOAD = """
load() {
    mkdir -p /sys/module/rdma_rxe/parameters
    cd /sys/module/rdma_rxe
    echo "$1" >srcversion
    echo 0 >refcnt
    echo N >parameters/roce_v1
    echo 1 >parameters/stamp_one_of
    echo "7 3" >parameters/stamp_clock
    chmod 444 parameters/stamp_clock
}
"""
# a module's file holds its srcversion; the one of modprobe is A1
PROGRAMS = {
    "modprobe": f"{LOAD}\n[ $1 = -a ] || [ -d /sys/module/rdma_rxe ] || load A1",
    "modinfo": """[ $3 != rdma_rxe ] || { echo A1; exit; }
[ $2 = depends ] && echo ib_core,ib_uverbs || cat "$3" """,
    "insmod": f"""{LOAD}
[ ! -d /sys/module/rdma_rxe ] || exit 17
[ "$(cat "$1")" != BAD ] || {{ echo 'Key was rejected by service' >&2; exit 1; }}
load "$(cat "$1")"
shift
for each; do
    case $each in delay_ns=*) echo "${{each#*=}}" >parameters/delay_ns;; esac
done""",
    # /run/busy: how often it fails
    "rmmod": """n=$(cat /run/busy 2>/dev/null || echo 0)
[ "$n" -eq 0 ] || { echo $((n - 1)) >/run/busy; echo 'Module rdma_rxe is in use' >&2; exit 1; }
rm -r /sys/module/rdma_rxe""",
    "rdma": """devices=/sys/class/infiniband
case "$1 $2" in
"link delete") rm -r $devices/"$3" ;;
"link add")
    mkdir -p $devices/"$3"/ports/1/gid_attrs/types
    echo "$7" >$devices/"$3"/parent
    echo RoCE v2 >$devices/"$3"/ports/1/gid_attrs/types/0
    grep -q N /sys/module/rdma_rxe/parameters/roce_v1 ||
        echo IB/RoCE v1 >$devices/"$3"/ports/1/gid_attrs/types/1 ;;
"-j resource") cat /run/"$4" 2>/dev/null || echo '[]' ;;
esac""",
}
BEFORE = LoadedDriver(
    "A1",
    (("roce_v1", "N"), ("stamp_one_of", "8")),
    (Device("mine", "eth1", roce_v1=True), Device("rxe0", "eth2", roce_v1=False)),
)
OTHER = Placed("/run/other.ko", "B2")


def shell(machine: CommandNode, script: str, *arguments: str) -> None:
    machine.run(["sh", "-c", script, "sh", *arguments])


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandNode]:
    """A host that has BEFORE."""
    monkeypatch.setenv("PATH", "/usr/local/sbin", prepend=":")
    with namespaced_machine.running() as host:
        shell(host, "mount -t tmpfs x /sys && mount -t tmpfs x /usr/local/sbin")
        shell(host, "echo B2 >/run/other.ko; echo BAD >/run/bad.ko; mkdir -p /sys/class/infiniband")
        for name, text in PROGRAMS.items():
            script = 'printf "%s" "$2" >"$1"; chmod 755 "$1"'
            shell(host, script, f"/usr/local/sbin/{name}", f"#!/bin/sh\n{text}\n")
        host.run(["modprobe", "rdma_rxe"])
        host.run(["tee", "/sys/module/rdma_rxe/parameters/roce_v1"], stdin="Y\n")
        host.run(["rdma", "link", "add", "mine", "type", "rxe", "netdev", "eth1"])
        host.run(["tee", "/sys/module/rdma_rxe/parameters/roce_v1"], stdin="N\n")
        host.run(["rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "eth2"])
        host.run(["tee", "/sys/module/rdma_rxe/parameters/stamp_one_of"], stdin="8\n")
        assert loaded_driver.read(host) == BEFORE
        yield host


def test_it_comes_back_with_the_lease(machine: CommandNode) -> None:
    """Driver, devices, their RoCE versions, and parameters; also where rmmod succeeds late."""
    with lease.hold([machine]):
        assert loaded_driver.borrow(machine) == BEFORE
        assert driver_turn.place(machine, OTHER.path) == OTHER
        driver_turn.note(machine, BEFORE)
        for parameters in ((), (("delay_ns", "5"),)):
            driver_turn.exchange(machine, OTHER, BEFORE.devices, parameters)
            now = loaded_driver.read(machine)
            assert now is not None
            assert (now.source, now.devices) == ("B2", BEFORE.devices)
            assert dict(now.parameters).get("delay_ns") == (dict(parameters).get("delay_ns"))
        machine.run(["tee", "/run/busy"], stdin="3\n")
    driver_turn.check_restored(machine, BEFORE)


# what a comparison does on a host, until it is killed
HOLD = """
import sys, time
sys.path[:0] = sys.argv[2:]
import namespaced_machine
from test_driver_turn import BEFORE, OTHER
from rocelab.testbed import lease
from rocelab.testbed.hosts import driver_turn
machine = namespaced_machine.node(int(sys.argv[1]))
with lease.hold([machine]):
    driver_turn.note(machine, BEFORE)
    driver_turn.exchange(machine, OTHER, BEFORE.devices)
    print("held", flush=True)
    time.sleep(600)
"""


def test_it_comes_back_after_a_kill(machine: CommandNode) -> None:
    assert isinstance(machine.connection, Inside)
    path = [str(Path(__file__).parent), *sys.path]
    argv = [sys.executable, "-c", HOLD, str(machine.connection.pid), *path]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert loaded_driver.read(machine) != BEFORE
        process.kill()
    wait_until(
        "the lease ends",
        lambda: machine.run(["test", "-e", lease.FOLDER], check=False).returncode,
        seconds=60,
    )
    driver_turn.check_restored(machine, BEFORE)


@pytest.mark.parametrize(
    ("file", "text"), [("/run/busy", "1000"), ("/sys/module/rdma_rxe/refcnt", "1")]
)
def test_it_cannot_come_back(machine: CommandNode, file: str, text: str) -> None:
    """Somebody uses the other driver: what is wrong is said, and the devices are there."""
    with lease.hold([machine]):
        driver_turn.note(machine, BEFORE)
        driver_turn.exchange(machine, OTHER, BEFORE.devices)
        machine.run(["tee", file], stdin=f"{text}\n")
    with pytest.raises(TestbedError, match="does not have the driver back") as caught:
        driver_turn.check_restored(machine, BEFORE)
    assert "B2" in caught.value.cause
    now = loaded_driver.read(machine)
    assert now is not None
    assert now.devices == BEFORE.devices


def test_a_driver_that_does_not_load(machine: CommandNode) -> None:
    """The host's word for it is in the error, and its own driver comes back."""
    with lease.hold([machine]):
        driver_turn.note(machine, BEFORE)
        with pytest.raises(UsageError, match="the driver has no parameter nonsense"):
            driver_turn.exchange(machine, OTHER, BEFORE.devices, [("nonsense", "1")])
        with pytest.raises(TestbedError) as caught:
            driver_turn.exchange(machine, Placed("/run/bad.ko", "BAD"), BEFORE.devices)
        assert "Key was rejected" in caught.value.cause
    driver_turn.check_restored(machine, BEFORE)


def test_what_is_not_borrowed(machine: CommandNode) -> None:
    """A driver that is in use, by whom, and one that modprobe would not load again."""
    qps = '[{"ifname":"rxe0","lqpn":1,"type":"GSI","comm":"ib_core"},'
    used = '{"ifname":"rxe0","lqpn":17,"type":"RC","pid":4711,"comm":"ib_send_bw"}]'
    machine.run(["tee", "/run/qp"], stdin=qps + used)
    with pytest.raises(TestbedError, match="in use") as caught:
        loaded_driver.borrow(machine)
    assert "ib_send_bw (process 4711)" in caught.value.cause
    machine.run(["rm", "/run/qp"])
    opened = '[{"ifname":"rxe0","ctxn":2,"pid":4712,"comm":"ib_write_bw"}]'
    machine.run(["tee", "/run/ctx"], stdin=opened)
    with pytest.raises(TestbedError, match="in use") as caught:
        loaded_driver.borrow(machine)
    assert "ib_write_bw (process 4712)" in caught.value.cause
    machine.run(["rm", "/run/ctx"])
    machine.run(["tee", "/sys/module/rdma_rxe/refcnt"], stdin="1\n")
    with pytest.raises(TestbedError, match="in use") as caught:
        loaded_driver.borrow(machine)
    assert "programs that have a device" in caught.value.cause
    machine.run(["tee", "/sys/module/rdma_rxe/refcnt"], stdin="0\n")
    machine.run(["tee", "/sys/module/rdma_rxe/srcversion"], stdin="C3\n")
    with pytest.raises(TestbedError, match="could not be brought back"):
        loaded_driver.borrow(machine)


def test_who_comes_in_between_keeps_the_device(machine: CommandNode) -> None:
    """A program that began to use it after the first look."""
    with lease.hold([machine]):
        driver_turn.note(machine, BEFORE)
        machine.run(["tee", "/sys/module/rdma_rxe/refcnt"], stdin="1\n")
        with pytest.raises(TestbedError, match="cannot be unloaded") as caught:
            driver_turn.exchange(machine, OTHER, BEFORE.devices)
        assert loaded_driver.read(machine) == BEFORE
    assert "a program that started since" in caught.value.cause
    driver_turn.check_restored(machine, BEFORE)


def test_preparing_a_host_whose_driver_is_in_use(machine: CommandNode) -> None:
    """It keeps its devices."""
    machine.run(["tee", "/run/busy"], stdin="1\n")
    with pytest.raises(TestbedError, match="cannot be unloaded"):
        driver_exchange.unload(machine)
    now = loaded_driver.read(machine)
    assert now is not None
    assert [device.name for device in now.devices] == ["mine", "rxe0"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('[{"ifname":"other","type":"RC","pid":1,"comm":"x"}]', []),
        ('[{"ifname":"rxe0","type":"RC","comm":"nvmet_rdma"}]', ["the kernel's nvmet_rdma"]),
        ('[{"ifname":"rxe0","pid":"1","comm":"a\\u001b[2J"}]', ["the kernel's a?[2J"]),
        ("[3, null]", []),
        ("", []),
        ("{}", ["somebody that `rdma resource show` does not name"]),
        ("[", ["somebody that `rdma resource show` does not name"]),
    ],
)
def test_owners(said: str, expected: list[str]) -> None:
    assert list(loaded_driver.owners(said, {"rxe0"})) == expected


def test_a_note_of_the_lease_is_one_line(machine: CommandNode) -> None:
    """Each line is a command of root's."""
    with pytest.raises(ValueError, match="one line"):
        lease.at_end(machine, ("sysctl", "-w", "x=1\nreboot"))
