# SPDX-License-Identifier: GPL-2.0-or-later
"""The qemu provider for its users: privacy, clean-up after failures, and what remains."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import rocelab
from polling import wait_until
from rocelab.errors import TestbedError
from rocelab.testbed.node import Node
from rocelab.testbed.qemu import bring_up
from rocelab.testbed.qemu import qemu_testbed as qemu
from rocelab.testbed.qemu.qmp import execute
from rocelab.testbed.qemu.state_folder import State
from vmlab import LINE, silent_consoles


def processes(word: str) -> list[str]:
    """Return command lines that contain a word."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if word in line:
            lines.append(line)
    return lines


def gone(name: str) -> bool:
    """Assert that nothing of a testbed is left: no QEMU, no supervisor, no folder."""
    return not processes(f"rocelab-{name}-n") and not State(name).path.exists()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    """A unique testbed name; the testbed is always cleaned up."""
    name = f"t{os.getpid()}-{abs(hash(request.node.name)) % 10000}"
    yield name
    if State(name).alive():
        State(name).stop()


def test_up_status_ssh_down(name: str, tmp_path: Path) -> None:
    """Bring a testbed up, use it and take it down, from the command line."""
    up = rocelab("up", "--name", name, "--bare")
    assert up.returncode == 0, up.stderr
    state = State(name)
    spec = state.spec()

    status = rocelab("status")
    assert name in status.stdout
    assert status.stdout.count(" up ") >= 2

    run = rocelab("run", "demo", "--name", name, "--out", str(tmp_path))
    assert run.returncode == 2
    assert f"testbed {name} has no driver and no probes" in run.stderr
    assert "--bare" in run.stderr
    assert not list(tmp_path.iterdir())

    answer = rocelab("ssh", "--name", name, "n2", "--", "sh", "-c", "hostname; exit 7")
    assert (answer.stdout, answer.returncode) == ("n2\n", 7)
    # arguments reach the node as they are; the node's shell does not interpret them
    hostile = "$(touch /tmp/owned); `id` | cat > /tmp/owned"
    assert rocelab("ssh", "--name", name, "n1", "--", "echo", hostile).stdout == hostile + "\n"

    # in a terminal, so is the command; without one, it has none
    there = [sys.executable, "-m", "rocelab", "ssh", "--name", name, "n1", "test", "-t", "1"]
    assert subprocess.run(there, stdin=subprocess.DEVNULL, check=False).returncode == 1
    script = ["script", "--quiet", "--return", "--command", shlex.join(there), "/dev/null"]
    assert subprocess.run(script, check=False).returncode == 0

    assert rocelab("ssh", "--name", name, "n9", "--", "true").returncode == 2
    again = rocelab("up", "--name", name, "--bare")
    assert again.returncode == 2
    assert "already up" in again.stderr

    # folder and keys are private, and SSH listens only on the loopback address
    assert stat.S_IMODE(state.path.stat().st_mode) == 0o700
    for key in ("id_ed25519", "host_key"):
        assert stat.S_IMODE((state.path / key).stat().st_mode) == 0o600
    listening = subprocess.run(["ss", "-Hltn"], capture_output=True, text=True, check=True).stdout
    for node in spec.nodes:
        lines = [line for line in listening.splitlines() if f":{node.ssh_port} " in line]
        assert lines
        assert all(f"127.0.0.1:{node.ssh_port} " in line for line in lines)

    # no password, no other key, no other host key
    port = spec.nodes[0].ssh_port
    common = ["ssh", "-F", "none", "-p", str(port), "-o", "BatchMode=yes"]
    known = ["-o", f"UserKnownHostsFile={state.path}/known_hosts"]
    no_key = ["-o", "IdentityFile=/dev/null", "-o", "IdentitiesOnly=yes"]
    refused = subprocess.run(
        [*common, *known, *no_key, "root@127.0.0.1", "true"], capture_output=True, check=False
    )
    assert refused.returncode == 255
    assert b"Permission denied (publickey)" in refused.stderr
    nobody_known = ["-o", "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=yes"]
    right_key = ["-i", str(state.path / "id_ed25519")]
    stranger = subprocess.run(
        [*common, *right_key, *nobody_known, "root@127.0.0.1", "true"],
        capture_output=True,
        check=False,
    )
    assert stranger.returncode == 255
    assert b"Host key verification failed" in stranger.stderr

    down = rocelab("down", "--name", name)
    assert down.returncode == 0, down.stderr
    wait_until("nothing left", lambda: gone(name))
    assert rocelab("down", "--name", name).returncode == 2


def test_a_killed_rocelab_leaves_nothing(name: str) -> None:
    """SIGKILL of the process that booted the nodes ends them and removes keys and sockets."""
    script = f"""
        import time
        from rocelab.testbed.qemu import bring_up
        bring_up.up({name!r}, line={LINE!r}, mtu=1500, lifeline=True)
        print("ready", flush=True)
        time.sleep(600)
    """
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout
    assert "ready\n" in iter(owner.stdout.readline, "")
    assert len(processes(f"rocelab-{name}-n")) >= 2
    owner.kill()
    owner.wait()
    owner.stdout.close()
    wait_until("nothing left", lambda: gone(name))
    wait_until("no SSH connection left", lambda: not processes(f"/{name}/"))


def test_interrupt_while_booting(name: str) -> None:
    """Ctrl-C during the boot: exit code 130, one line, nothing left."""
    command = [sys.executable, "-m", "rocelab", "up", "--name", name, "--bare"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_until("QEMU runs", lambda: len(processes(f"rocelab-{name}-n")) >= 2)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in stderr
    assert "Traceback" not in stderr
    wait_until("nothing left", lambda: gone(name))


def test_port_in_use(name: str) -> None:
    """A taken SSH port is reported before anything boots."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        answer = rocelab("up", "--name", name, "--bare", "--ssh-port", str(port))
    assert answer.returncode == 4
    assert f"port {port} on 127.0.0.1 is in use" in answer.stderr
    assert "what to do" in answer.stderr
    assert gone(name)


def test_a_node_that_dies(name: str) -> None:
    """A panic is reported with the console; killing the supervisor ends the nodes."""
    testbed = bring_up.up(name, line=LINE, mtu=1500, lifeline=True)
    first = testbed.nodes[0]
    process = first.start(
        ["sh", "-c", "echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger"]
    )
    wait_until("the death is noticed", lambda: bool(testbed.state.exit_statuses()))
    with pytest.raises(TestbedError) as caught:
        testbed.alive()
    assert "node n1 died" in caught.value.what
    assert "Kernel panic" in caught.value.cause
    with pytest.raises(TestbedError):
        first.run(["true"])
    process.kill()
    assert testbed.nodes[1].run(["hostname"]).stdout == "n2\n"

    os.kill(int((testbed.state.path / "supervisor.pid").read_text()), signal.SIGKILL)
    wait_until("no QEMU left", lambda: not processes(f"rocelab-{name}-n"))
    with pytest.raises(TestbedError, match="is gone"):
        testbed.alive()
    # status says so and deletes nothing
    status = rocelab("status")
    assert name not in status.stdout
    assert f"testbed {name} was killed" in status.stderr
    assert rocelab("down", "--name", name).returncode == 0
    assert gone(name)
    testbed.down()


def test_no_way_out(n1: Node) -> None:
    """A node reaches only its peer: neither the host nor the internet."""
    assert n1.run(["ping", "-c1", "-W5", "10.44.0.2"]).returncode == 0
    n1.run(["ip", "route", "add", "default", "via", "172.30.1.2"], check=False)
    try:
        for address in ("172.30.1.2", "192.0.2.1"):
            script = f"timeout 5 bash -c '</dev/tcp/{address}/22'"
            assert n1.run(["sh", "-c", script], check=False).returncode != 0
    finally:
        n1.run(["ip", "route", "del", "default"], check=False)


def test_capture_sees_every_frame(testbed: qemu.QemuTestbed, tmp_path: Path) -> None:
    """The outside capture has each echo request and reply once, in both directions, complete."""
    n1, n2 = testbed.nodes
    wire = tmp_path / "wire.pcap"
    n1.run(["ping", "-c1", n2.link.ipv4])
    with testbed.capture(wire):
        n1.run(["ping", "-c20", "-i0.01", "-s", "3000", n2.link.ipv4])
    fields = ["-T", "fields", "-e", "icmp.type", "-e", "icmp.seq", "-e", "frame.len"]
    rows = subprocess.run(
        ["tshark", "-r", wire, "-Y", "icmp", *fields], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    # Ethernet, IPv4 and ICMP headers: 14 + 20 + 8 bytes
    # in order, but the next request does not wait for the reply
    for kind in (8, 0):
        of_kind = [row for row in rows if row.startswith(f"{kind}\t")]
        assert of_kind == [f"{kind}\t{seq}\t3042" for seq in range(1, 21)]
    assert len(rows) == 40


def test_a_program_is_translated_once(testbed: qemu.QemuTestbed) -> None:
    """TCG finds the code of a program that has run before: it has the same addresses again."""
    node = testbed.nodes[0]
    monitor = testbed.state.path / f"{node.name}.qmp"

    def run_true(times: int) -> int:
        """Run a program; return the number of blocks that QEMU has translated so far."""
        node.run(["sh", "-c", f"for i in $(seq {times}); do /bin/true; done"])
        command = {"command-line": "info jit"}
        text = str(execute(monitor, "human-monitor-command", command))
        blocks = re.search(r"TB count +(\d+)", text)
        assert blocks, text
        return int(blocks[1])

    before = run_true(20)
    assert run_true(20) - before < 20 * 500


def test_a_complaint_of_the_kernel_is_seen(shared_testbed: qemu.QemuTestbed) -> None:
    """The fixture `testbed` reads consoles: what a kernel warns of is there at once."""
    node = shared_testbed.nodes[1]
    with (
        pytest.raises(AssertionError, match="n2: WARNING: made up"),
        silent_consoles(shared_testbed),
    ):
        node.run(["tee", "/dev/kmsg"], stdin="<4>WARNING: made up\n")
    with silent_consoles(shared_testbed):
        node.run(["tee", "/dev/kmsg"], stdin="<4>something else\n")
