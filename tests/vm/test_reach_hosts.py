# SPDX-License-Identifier: GPL-2.0-or-later
"""The ways by which SSH reaches a user's hosts, each with an MPI job: both machines are behind a
jump host, and are known by names or addresses that only ~/.ssh/config makes sense of.

here ─ n1 (jump host) ┬ n1: first
                      └ data0 or peer0 ─ n2: second
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import hosts_compared
from command_line import rocelab
from polling import wait_until
from requirements import missing
from rocelab.errors import ExitCode, TestbedError
from rocelab.measure import runner, testbed_for_plan
from rocelab.measure.transport_proof import RENDEZVOUS_BYTES
from rocelab.plans import plan_file
from rocelab.plans.catalog import TRANSPORTS
from rocelab.report import build
from rocelab.testbed import artifacts, linktap
from rocelab.testbed.node import Node
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.prepare_node import install_probes
from rocelab.testbed.qemu.machine_spec import PEER
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rocelab.testbed.ssh import inventory, ssh_testbed
from vmlab import LINE

PLAN = """
[plan]
name = "reach"
repetitions = 1
probes = []
transports = ["{transport}"]
[testbed]
provider = "ssh"
[[benchmark]]
tool = "mpibench"
test = "latency"
sizes = [4, 4096]
iterations = 10
timeout = 240
"""
_PORT = 2222
_USER = "lab"
# Without PAM, sshd takes an account without a password for a locked one, and reads no limits.conf.
_SECOND_SSHD = f"""
useradd -m -p '*' -s /bin/bash {_USER}
[ ! "$1" ] || echo "{_USER} $1" > /etc/sudoers.d/{_USER}
cp /run/rocelab/authorized_keys /run/lab_keys && chmod 644 /run/lab_keys
ulimit -l unlimited
exec /usr/sbin/sshd -p {_PORT} -o AuthorizedKeysFile=/run/lab_keys -o PidFile=/run/lab.pid
"""
_END_SSHD = f"""
kill "$(cat /run/lab.pid)"; pkill -KILL -u {_USER}
while pgrep -u {_USER} >/dev/null; do sleep 0.1; done
userdel -r {_USER} 2>/dev/null; rm -f /etc/sudoers.d/{_USER} /run/lab_keys
"""

# an Open MPI in a site folder that differs between hosts; its log shows that it ran
_SITE_MPI = """
mkdir -p "$1"
for name in mpirun prted orted; do
    real=$(command -v "$name") || continue
    printf '#!/bin/sh\\necho %s >>$HOME/used\\nexec %s "$@"\\n' "$name" "$real" >"$1/$name"
    chmod 755 "$1/$name"
done
"""


@pytest.fixture
def ssh_config(testbed: QemuTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's configuration; an `ssh` on the PATH reads it, as ssh(1) takes no other home."""
    for node in testbed.nodes:
        install_probes(node, [artifacts.mpibench(LINE), artifacts.probe(linktap.TAP, LINE)])
    target = testbed.nodes[0].target
    assert target.known_hosts is not None
    key = target.known_hosts.read_text().partition(" ")[2]
    (tmp_path / "known_hosts").write_text(f"* {key}")
    config = tmp_path / "config"
    config.write_text(f"""
Host gate
  HostName 127.0.0.1
  Port {target.port}
  User root
Host first
  HostName {testbed.nodes[0].link.ipv4}
Host second
  HostName {testbed.nodes[1].link.ipv4}
Host first second fd00:*
  ProxyJump gate
Host *
  IdentityFile {target.identity}
  IdentitiesOnly yes
  UserKnownHostsFile {tmp_path / "known_hosts"}
""")
    program = tmp_path / "bin/ssh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {config} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    return config


@contextmanager
def a_user(nodes: list[Node], *, sudo: str = "") -> Iterator[None]:
    """A user who is not root, and an SSH server for them on another port.

    `sudo` says what the user may do with it, as in sudoers(5).
    """
    if any(node.run(["test", "-x", "/usr/bin/sudo"], check=False).returncode for node in nodes):
        missing("the node image has no sudo; run `make image`")
    at_once(lambda node: node.run(["sh", "-c", _SECOND_SSHD, "sh", sudo]), nodes)
    try:
        yield
    finally:
        at_once(lambda node: node.run(["sh", "-c", _END_SSHD]), nodes)


@contextmanager
def talking(node: Node) -> Iterator[None]:
    """Let a host say more over SSH, all the time, than the rendezvous of a benchmark may."""
    over = Event()

    def talk() -> None:
        while not over.is_set():
            node.run(["head", "-c", str(2 * RENDEZVOUS_BYTES), "/dev/zero"])

    thread = Thread(target=talk)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def measured(two: ssh_testbed.SshTestbed, transport: str, into: Path) -> dict[str, Any]:
    """The one step of the plan over a transport, which must be ok."""
    outcome = runner.run(plan_file.from_toml(PLAN.format(transport=transport), "reach"), two, into)
    (path,) = outcome.path.glob("cells/*/cell.json")
    cell: dict[str, Any] = json.loads(path.read_text())
    assert outcome.exit_code is ExitCode.OK, cell["error"]
    (step,) = cell["steps"]
    assert step["proof"]["ok"]
    return dict(step)


def one_interface(testbed: QemuTestbed) -> tuple[inventory.Host, ...]:
    """The machines as that user's hosts, which have no interface but the data link."""
    return inventory.from_dict(
        {
            # nothing but data0 is for them to choose
            "control": [f"{testbed.nodes[0].link.ipv4.rpartition('.')[0]}.0/24"],
            "host": [
                {"name": name, "host": name, "port": _PORT, "user": _USER, "netdev": "data0"}
                for name in ("first", "second")
            ],
        },
        "hosts.toml",
    )


def test_one_interface_behind_a_jump_host(
    testbed: QemuTestbed, ssh_config: Path, tmp_path: Path
) -> None:
    """SSH has aliases, a jump host, another port, sudo, and no interface but the data link."""
    hosts = one_interface(testbed)
    with a_user(list(testbed.nodes), sudo="ALL=(ALL) NOPASSWD: ALL"):
        two = ssh_testbed.up(hosts, transports=[TRANSPORTS["rxe-v2"]])
        try:
            assert two.control_ports == {_PORT}
            assert {end.netdev for end in two.control} == {"data0"}
            assert two.nodes[0].run(["id", "-un"]).stdout.strip() == _USER
            with talking(two.nodes[1]):
                step = measured(two, "rxe-v2", tmp_path)
        finally:
            two.down()
    assert step["frames"]["control_payload_bytes"] > RENDEZVOUS_BYTES
    assert step["frames"]["tcp_payload_bytes"] <= RENDEZVOUS_BYTES


def wait_for_no_process(node: Node) -> None:
    """Shells end when sshd(8) on the node sees that the connection did."""
    left = ("pgrep", "-x", "-u", _USER, "sh|orted|qperf")
    wait_until("no process left", lambda: node.run(left, check=False).returncode == 1)


def test_a_user_without_root(testbed: QemuTestbed, ssh_config: Path, tmp_path: Path) -> None:
    """TCP runs without a capture, is proven by counters, and leaves nothing; rxe is refused.

    Open MPI is in another folder on each host, which only the inventory knows.
    """
    said = list[str]()
    hosts = [replace(host, path=(f"/opt/site {host.name}/bin",)) for host in one_interface(testbed)]
    for node, host in zip(testbed.nodes, hosts, strict=True):
        node.run(["sh", "-c", _SITE_MPI, "sh", *host.path])
    qperf = '[[benchmark]]\ntool = "qperf"\ntest = "tcp_bw"\nsizes = [65536]\nseconds = 1\n'
    plan = plan_file.from_toml(PLAN.format(transport="tcp") + qperf, "plain")
    rxe = plan_file.from_toml(PLAN.format(transport="rxe-v2"), "rxe")
    with a_user(list(testbed.nodes)):
        with pytest.raises(TestbedError, match="root on first, as needed for rxe-v2"):
            testbed_for_plan.make(rxe, "plain", hosts, said.append)
        two = testbed_for_plan.make(plan, "plain", hosts, said.append)
        assert isinstance(two, ssh_testbed.SshTestbed)
        try:
            outcome = runner.run(plan, two, tmp_path)
        finally:
            two.down()
        used = [node.run(["cat", f"/home/{_USER}/used"]).stdout.split() for node in testbed.nodes]
        for node in testbed.nodes:
            owned = ("find", "/tmp", "/run", f"/home/{_USER}", "-user", _USER, "-name", "*rocelab*")
            assert node.run(owned).stdout == ""
            wait_for_no_process(node)
    assert outcome.exit_code is ExitCode.OK
    assert "mpirun" in used[0]
    assert {"prted", "orted"} & set(used[1])
    assert any("nothing captures the link" in line for line in said)
    cells = [json.loads(path.read_text()) for path in outcome.path.glob("cells/*/cell.json")]
    assert len(cells) == 2
    for step in (step for cell in cells for step in cell["steps"]):
        assert step["frames"] is None
        by_check = {check["check"]: check["found"] for check in step["proof"]["checks"]}
        assert by_check["TCP segments sent"] > 0
        assert step["proof"]["ok"]
    assert not list(outcome.path.rglob("wire.pcap"))
    assert "Nothing captured the link" in build(outcome.path).read_text()


AB_HOSTS = """
[[host]]
name = "{name}"
host = "{name}"
port = {port}
user = "{user}"
netdev = "data0"
"""


@pytest.mark.long
def test_ab_with_sudo(testbed: QemuTestbed, ssh_config: Path, tmp_path: Path) -> None:
    """A user who becomes root by sudo exchanges the driver, which comes back."""
    plan, hosts = tmp_path / "plan.toml", tmp_path / "hosts.toml"
    plan.write_text(hosts_compared.PLAN)
    named = [AB_HOSTS.format(name=name, port=_PORT, user=_USER) for name in ("first", "second")]
    hosts.write_text("".join(named))
    before = hosts_compared.state(testbed.nodes)
    words = ("ab", "--inventory", str(hosts), "--plan", str(plan), "--out", str(tmp_path))
    sides = ("instrumented", "instrumented+sysctl:net.core.rmem_default=250000")
    with a_user(list(testbed.nodes), sudo="ALL=(ALL) NOPASSWD: ALL"):
        done = rocelab(*words, "--rounds", "1", "--json", *sides, timeout=1200)
        for node in testbed.nodes:
            assert node.run(("find", f"/home/{_USER}", "-name", "*rocelab*")).stdout == ""
    assert done.returncode == ExitCode.OK, done.stderr
    assert hosts_compared.state(testbed.nodes) == before
    document = json.loads(done.stdout)
    assert document["sentence"].startswith("1 round cannot tell")
    assert document["stages"]


def test_control_by_ipv6_alone(testbed: QemuTestbed, ssh_config: Path, tmp_path: Path) -> None:
    """Login and daemons use a network without IPv4."""
    ipv4 = [f"172.31.0.{i}/24" for i in (1, 2)]
    ipv6 = [f"fd00:31::{i}" for i in (1, 2)]
    hosts = inventory.from_dict(
        {
            "host": [
                {"name": name, "host": address, "user": "root", "netdev": "data0"}
                for name, address in zip(("first", "second"), ipv6, strict=True)
            ]
        },
        "hosts.toml",
    )
    try:
        for node, old, new in zip(testbed.nodes, ipv4, ipv6, strict=True):
            node.run(["ip", "addr", "del", old, "dev", PEER])
            node.run(["ip", "addr", "add", f"{new}/64", "dev", PEER, "nodad"])
        two = ssh_testbed.up(hosts, transports=[TRANSPORTS["tcp"]])
        try:
            assert [end.address for end in two.control] == ipv6
            step = measured(two, "tcp", tmp_path)
        finally:
            two.down()
    finally:
        for node, old, new in zip(testbed.nodes, ipv4, ipv6, strict=True):
            node.run(["ip", "addr", "del", f"{new}/64", "dev", PEER])
            node.run(["ip", "addr", "add", old, "dev", PEER])
    assert step["mpi"]["job"]["PRTE_MCA_prte_if_include"] == PEER
    assert step["mpi"]["job"]["PRTE_MCA_prte_disable_ipv6_family"] == "0"
