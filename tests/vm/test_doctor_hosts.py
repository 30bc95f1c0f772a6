# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab doctor --hosts`: what is wrong with two hosts is found, and said with a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from command_line import rocelab
from rocelab.errors import RocelabError
from rocelab.measure import host_checks
from rocelab.plans.catalog import TRANSPORTS
from rocelab.testbed.node import Node
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rocelab.testbed.ssh import inventory

_DROPPED = "protocol ip flower ip_proto {} action drop"
_TOO_LARGE = "matchall action police mtu 2000 conform-exceed drop/pipe"


@contextmanager
def arriving(node: Node, netdev: str, rule: str) -> Iterator[None]:
    """Let a filter see what arrives at an interface."""
    node.run(["tc", "qdisc", "add", "dev", netdev, "clsact"])
    try:
        node.run(["tc", "filter", "add", "dev", netdev, "ingress", *rule.split()])
        yield
    finally:
        node.run(["tc", "qdisc", "del", "dev", netdev, "clsact"])


def test_hosts_with_nothing_wrong(foreign_hosts: Path) -> None:
    """As a user asks: each check passes, the last with MPI over rxe.

    But for the clocks: that of an emulated machine falls behind.
    """
    done = rocelab("doctor", "--hosts", "--inventory", str(foreign_hosts), timeout=600)
    lines = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    wrong = [line for line in lines if not line.startswith("ok ") and "clocks: " not in line]
    assert not wrong, done.stdout
    assert done.returncode == (0 if "ok       clocks" in done.stdout else 3)
    names = [
        line.removeprefix("ok").removeprefix("wrong").strip().partition(":")[0] for line in lines
    ]
    assert names == [
        *("login alpha", "login beta", "clocks", "driver", "probes", "data network"),
        *("MTU end to end", "capture", "Open MPI", "MTU", "pml ucx", "locked memory", "GID"),
        *("control network", "control addresses", "verbs exchange", "MPI exchange"),
    ]


@pytest.mark.long
def test_each_fault_is_named(testbed: QemuTestbed, foreign_hosts: Path) -> None:
    """The fault, between which hosts, and the command that fixes it."""
    second = testbed.nodes[1]
    faults = [
        ("MTU end to end", "data0", _TOO_LARGE,
         "packets of 4200 bytes do not get from alpha to beta", "ip link set data0 mtu"),
        ("data network", "data0", _DROPPED.format("icmp"),
         "alpha gets no answer from beta at 10.44.0.2 by data0", "ping -I data0 10.44.0.2"),
        ("control network", "peer0", _DROPPED.format("tcp tcp_flags 0x2/0x12"),
         "alpha does not reach beta at 172.31.0.2 (peer0)", "ping 172.31.0.2"),
        ("verbs exchange", "data0", _DROPPED.format("udp dst_port 4791"),
         "beta receives none of the RoCE packets that alpha sends", "--dport 4791 -j ACCEPT"),
    ]  # fmt: skip
    with host_checks.open_checks(inventory.load(foreign_hosts), TRANSPORTS["rxe-v2"]) as checks:
        by_name = {check.name: check for check in checks}
        for name, netdev, rule, what, action in faults:
            with arriving(second, netdev, rule), pytest.raises(RocelabError) as caught:
                by_name[name].run()
            assert what in caught.value.what
            assert action in caught.value.action


def test_a_host_that_does_not_let_us_in(
    testbed: QemuTestbed, foreign_hosts: Path, tmp_path: Path
) -> None:
    """The other is looked at all the same; what needs both is left out."""
    unknown = tmp_path / "known_hosts"
    unknown.write_text("")
    text = foreign_hosts.read_text()
    foreign_hosts.write_text(
        text.replace(str(testbed.nodes[0].target.known_hosts), str(unknown), 1)
    )
    done = rocelab("doctor", "--hosts", "--inventory", str(foreign_hosts), timeout=300)
    assert done.returncode == 3
    assert "wrong    login alpha: alpha (127.0.0.1) refuses the SSH login" in done.stdout
    assert "ok       login beta: as root" in done.stdout
    assert "ok       driver: rocelab-" in done.stdout
    assert "data network" not in done.stdout
