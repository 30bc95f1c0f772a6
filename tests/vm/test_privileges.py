# SPDX-License-Identifier: GPL-2.0-or-later
"""An ordinary user can run the probes with the capabilities that their pages name.

Once a probe counts, it keeps only those that its end needs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

import traffic
from rocelab.testbed.node import Node
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rxecpu_watch import check_sums, share

NOBODY = "65534"
MESSAGES = 40
SETS = ("CapInh", "CapPrm", "CapEff", "CapAmb")
CAPABILITIES = {"dac_override": 1, "fowner": 3, "sys_ptrace": 19, "syslog": 34}
_PARAMETER = "/sys/module/rdma_rxe/parameters/stamp_one_of"
_FOREIGN = "/tmp/of_nobody"
_PREPARE = f"""
rm -rf {_FOREIGN} /tmp/stacks.txt
mkdir {_FOREIGN}
chown {NOBODY} {_FOREIGN}
"""


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


def mask(*names: str) -> int:
    """The kernel's number for a set of capabilities."""
    return sum(1 << CAPABILITIES[name] for name in names)


def status_of(text: str) -> dict[str, str]:
    """Return the lines of /proc/PID/status by their names."""
    return dict(re.findall(r"^(\w+):\s*(.*)$", text, re.MULTILINE))


@contextmanager
def counting(node: Node, command: Sequence[str], probe: str) -> Iterator[dict[str, str]]:
    """Run a probe until the context ends; yield its status while it counts."""
    process = node.start(command)
    try:
        process.wait_for_line(f"{probe}: ready", timeout=180)
        yield status_of(node.run(["sh", "-c", f"cat /proc/$(pidof {probe})/status"]).stdout)
        process.interrupt()
        done = process.wait(timeout=120)
        assert done.returncode == 0, done.stderr
    finally:
        process.kill()


@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("rxestat --xmit --group netns", 0),
        (f"rxestat -o {_FOREIGN}/rxestat.txt", mask("dac_override", "fowner")),
        (f"rxedump -w {_FOREIGN}/rxedump.pcapng", 0),
        (f"rxedump -w {_FOREIGN}/series.pcapng -C 1", mask("dac_override", "fowner")),
        ("rxecpu", 0),
        ("rxecpu --stacks /tmp/stacks.txt", mask("syslog", "sys_ptrace")),
        ("rxetop --batch", 0),
        ("rxetop --batch --group netns", mask("sys_ptrace")),
    ],
)
def test_what_is_kept(n1: Node, user: str, command: str, kept: int) -> None:
    """Nothing but what the end needs, of what it had; nor by what it would execute."""
    n1.run(["sh", "-c", _PREPARE])
    words = command.split()
    probe = words[0]
    if user == "nobody":
        words = [*as_nobody(["sys_admin", "syslog"]), *words]
        kept &= mask("syslog")
    with counting(n1, words, probe) as status:
        held = {name: int(status[name], 16) for name in SETS}
        assert held == {"CapInh": 0, "CapPrm": kept, "CapEff": kept, "CapAmb": 0}
        assert status["NoNewPrivs"] == "1"
    if user == "root" and command.startswith("rxestat -o"):
        n1.run(["test", "-s", f"{_FOREIGN}/rxestat.txt"])


def test_the_command_keeps_what_it_had(n1: Node) -> None:
    """What a probe gives up is its own."""
    show = ["cat", "/proc/self/status"]
    alone, within = (status_of(n1.run([*before, *show]).stdout) for before in ([], ["rxestat"]))
    assert [within[name] for name in SETS] == [alone[name] for name in SETS]
    assert within["NoNewPrivs"] == "0"


def test_the_driver_takes_all_packets_again(n1: Node) -> None:
    """The end of --sample writes a parameter for which the user had a capability."""
    words = [*as_nobody(["sys_admin", "dac_override"]), "rxestat", "--sample", "4"]
    with counting(n1, words, "rxestat"):
        assert n1.run(["cat", _PARAMETER]).stdout == "4\n"
    assert n1.run(["cat", _PARAMETER]).stdout == "1\n"
