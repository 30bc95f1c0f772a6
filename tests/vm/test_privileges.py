# SPDX-License-Identifier: GPL-2.0-or-later
"""An ordinary user can run the probes with the capabilities that their pages name."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

import traffic
from rocelab.testbed.node import Node
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rxecpu_watch import check_sums, share

NOBODY = "65534"
MESSAGES = 40


def as_nobody(capabilities: Sequence[str]) -> list[str]:
    """The words before a command that it runs with, as an ordinary user."""
    chosen = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    user = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
    caps = ["--inh-caps", chosen, "--ambient-caps", chosen, "--bounding-set", chosen]
    return ["setpriv", *user, *caps]


@pytest.mark.parametrize(
    ("probe", "capabilities", "missing"),
    [
        ("rxestat", (), "cap_sys_admin"),
        ("rxestat", ("bpf", "perfmon"), "cap_sys_admin"),
        ("rxedump", ("bpf", "perfmon", "syslog"), "cap_sys_admin"),
        ("rxecpu", (), "cap_bpf,cap_perfmon"),
        ("rxecpu", ("bpf",), "cap_perfmon"),
        ("rxecpu", ("perfmon",), "cap_bpf"),
    ],
)
def test_what_is_missing_is_named(
    n1: Node, probe: str, capabilities: tuple[str, ...], missing: str
) -> None:
    """An error of three parts, before anything is loaded."""
    done = n1.run([*as_nobody(capabilities), probe, "true"], check=False)
    assert done.returncode == 3
    first, cause, action = done.stderr.splitlines()
    assert first == f"{probe}: BPF programs need capabilities that it lacks: {missing}"
    assert cause.startswith("  likely cause: an ordinary user runs it")
    assert f"setcap {missing}=ep" in action


def test_with_the_capabilities_that_they_name(testbed: QemuTestbed) -> None:
    """All three at once, as an ordinary user: the packets that were sent."""
    n1, n2 = testbed.nodes
    commands = {
        "rxestat": [*as_nobody(["sys_admin"]), "rxestat", "--json", "--xmit"],
        "rxedump": [*as_nobody(["sys_admin"]), "rxedump", "-O", "RC_SEND_ONLY", "-D", "tx"],
        "rxecpu": [*as_nobody(["bpf", "perfmon"]), "rxecpu", "--json", "--comm", "ib_send_lat"],
        "whole": [*as_nobody(["sys_admin", "syslog"]), "rxecpu", "--json"],
    }
    running = {name: n1.start(command) for name, command in commands.items()}
    try:
        for process in running.values():
            process.wait_for_line(": ready", timeout=180)
        traffic.perftest("ib_send_lat", n1, n2, size=64, iterations=MESSAGES)
        ended = {}
        for name, process in running.items():
            process.interrupt()
            ended[name] = process.wait(timeout=120)
    finally:
        for process in running.values():
            process.kill()
    assert {name: done.returncode for name, done in ended.items()} == dict.fromkeys(commands, 0)
    (row,) = (
        row
        for row in json.loads(ended["rxestat"].stdout)["packets"]
        if (row["opcode_class"], row["event"]) == ("SEND", "tx")
    )
    assert row["count"] == MESSAGES
    assert len(ended["rxedump"].stdout.splitlines()) == MESSAGES
    partly, whole = (json.loads(ended[name].stdout) for name in ("rxecpu", "whole"))
    check_sums(partly)
    assert partly["missing"] == ["rxe.tasks", "rxe.receive"]
    assert "without cap_sys_admin" in ended["rxecpu"].stderr
    assert (share(partly, owner="rxe"), share(partly, owner="benchmark") > 0) == (0, True)
    check_sums(whole)
    assert whole["missing"] == []
    assert share(whole, owner="rxe") > 0
