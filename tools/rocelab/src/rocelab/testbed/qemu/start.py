# SPDX-License-Identifier: GPL-2.0-or-later
"""Start a testbed's machines, and wait until each has booted or is restored, and can be used."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from rocelab import own_process
from rocelab.errors import RocelabError, TestbedError
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.ssh_node import SshNode
from rocelab.testbed.qemu import identity, snapshot
from rocelab.testbed.qemu.identity import Channel
from rocelab.testbed.qemu.last_words import endless_reports
from rocelab.testbed.qemu.machine_spec import CHANNEL, TestbedSpec, host_names
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rocelab.testbed.qemu.state_folder import State

_START_SECONDS = 60
_BOOT_SECONDS = 240
_LOAD_SECONDS = 120
_LOGIN_SECONDS = 120
_AGAIN_SECONDS = 60
_POLL_SECONDS = 0.02
_RETRY_SECONDS = 0.1
_SLICE_SECONDS = 0.2
# our own session ends when we close its connection
_WAIT_AGAIN = (
    f"rm -f /run/rocelab/{identity.HOST_KEY} /run/rocelab/authorized_keys; "
    "kill $(cat /run/sshd.pid)"
)


def start(state: State, spec: TestbedSpec, *, lifeline: bool, patience: float) -> QemuTestbed:
    """Start QEMU for each machine, which boots or is restored. Raises TestbedError."""
    try:
        state.create(spec)
        return QemuTestbed(state, _supervise(state, lifeline), patience=patience)
    except BaseException:
        _stop(state)
        raise


def _wait_for_qemu(testbed: QemuTestbed) -> None:
    """Wait until each QEMU listens. Raises TestbedError."""
    deadline = time.monotonic() + _START_SECONDS * testbed.patience
    ends = [f"{node.name}.{end}" for node in testbed.machines for end in ("qmp", CHANNEL)]
    for path in (testbed.state.path / end for end in ends):
        while not _is_open(path):
            _explain_early_death(testbed)
            if time.monotonic() > deadline:
                raise TestbedError(
                    f"QEMU did not open {path.name} within {_START_SECONDS} s",
                    cause="this machine is too busy",
                )
            time.sleep(_POLL_SECONDS)


def _is_open(path: Path) -> bool:
    """Whether somebody listens at a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(str(path)) == 0


def _stop(state: State) -> None:
    try:
        state.stop()
    except RocelabError:
        state.remove()


def wait_for_boot(testbed: QemuTestbed) -> None:
    """Wait until each machine has booted, and waits for its identity. Raises TestbedError."""
    _wait_for_qemu(testbed)
    started = time.monotonic()
    limit = _BOOT_SECONDS * testbed.patience
    with ExitStack() as stack:
        # what a machine says while nobody listens is lost
        channels = [stack.enter_context(_channel(testbed, node)) for node in testbed.machines]
        for node, channel in zip(testbed.machines, channels, strict=True):
            while not channel.waits(_SLICE_SECONDS):
                _explain_early_death(testbed)
                _explain_reports(testbed, node.name)
                if time.monotonic() - started > limit:
                    raise TestbedError(
                        f"node {node.name} did not boot within {limit:.0f} s",
                        cause=f"the end of its console:\n{testbed.state.console_tail(node.name)}",
                        action="Check whether other work keeps this machine's processors busy.",
                    )


def wait_for_load(testbed: QemuTestbed) -> None:
    """Wait until each machine has its snapshot, and let all run. Raises TestbedError."""
    _wait_for_qemu(testbed)
    deadline = time.monotonic() + _LOAD_SECONDS
    sockets = [testbed.state.path / f"{node.name}.qmp" for node in testbed.machines]
    for node, qmp in zip(testbed.machines, sockets, strict=True):
        while testbed.state.decompressor_status(node.name) is None or not snapshot.is_loaded(qmp):
            _explain_early_death(testbed)
            if time.monotonic() > deadline:
                raise TestbedError(
                    f"node {node.name} did not load its snapshot within {_LOAD_SECONDS} s",
                    cause="this machine is too busy, or its disk hangs",
                )
            time.sleep(_POLL_SECONDS)
        if testbed.state.decompressor_status(node.name):
            raise TestbedError(f"the snapshot of {node.name} is not whole", cause="a full disk")
    snapshot.go_on(sockets)


def identify(testbed: QemuTestbed) -> None:
    """Give the machines, which wait for it, new keys and names. Raises TestbedError."""
    folder, hosts = testbed.state.path, host_names(testbed.spec)
    identity.make_keys(folder)

    def one(node: SshNode) -> None:
        with _channel(testbed, node) as channel:
            lines = identity.identity(folder, node.name, hosts)
            channel.tell(lines, patience=testbed.patience)

    at_once(one, testbed.machines)


def log_in(testbed: QemuTestbed) -> None:
    """Open the connection to each machine. Raises TestbedError."""
    limit = _LOGIN_SECONDS * testbed.patience
    deadline = time.monotonic() + limit

    def one(node: SshNode) -> None:
        while not node.connect(timeout=30):
            _explain_early_death(testbed)
            if time.monotonic() > deadline:
                raise TestbedError(
                    f"node {node.name} did not answer within {limit:.0f} s",
                    cause=f"the end of its console:\n{testbed.state.console_tail(node.name)}",
                    action="Check whether other work keeps this machine's processors busy.",
                )
            time.sleep(_RETRY_SECONDS)

    at_once(one, testbed.machines)


def wait_again(testbed: QemuTestbed) -> None:
    """Have each machine forget who it is, and wait for its identity. Raises TestbedError."""

    def one(node: SshNode) -> None:
        with _channel(testbed, node) as channel:
            node.run(["sh", "-c", _WAIT_AGAIN])
            node.close()
            if not channel.waits(_AGAIN_SECONDS * testbed.patience):
                raise TestbedError(
                    f"node {node.name} does not wait for its identity",
                    cause="a session of SSH does not end on it",
                )

    at_once(one, testbed.machines)


def _channel(testbed: QemuTestbed, node: SshNode) -> Channel:
    return Channel(testbed.state.path / f"{node.name}.{CHANNEL}")


def _supervise(state: State, lifeline: bool) -> subprocess.Popen[bytes]:
    """Start the supervisor; with `lifeline` it ends with this process, even if that is killed."""
    command = [*own_process.command("rocelab.testbed.qemu.supervisor"), state.name]
    with (state.path / "supervisor.log").open("wb") as log:
        process = subprocess.Popen(
            command + (["--lifeline"] if lifeline else []),
            stdin=subprocess.PIPE if lifeline else subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )
    deadline = time.monotonic() + 20
    while not state.alive():
        if process.poll() is not None or time.monotonic() > deadline:
            reason = (state.path / "supervisor.log").read_text(errors="replace").strip()
            state.remove()
            raise TestbedError(
                "the testbed's supervisor did not start",
                cause=reason[-2000:] or "this machine is too busy",
                action="Run `rocelab doctor`, and try again.",
            )
        time.sleep(0.02)
    return process


def _explain_reports(testbed: QemuTestbed, name: str) -> None:
    report = endless_reports(testbed.state.console(name))
    if report:
        raise TestbedError(
            f"node {name} reports bugs instead of booting",
            cause="the first on its console:\n" + "\n".join(report),
            action="Correct the kernel, or what its checkers take for a fault.",
        )


def _explain_early_death(testbed: QemuTestbed) -> None:
    for name in testbed.state.exit_statuses():
        output = (testbed.state.path / f"{name}.qemu").read_text(errors="replace").strip()
        if "host forwarding rule" in output:
            raise TestbedError(
                f"QEMU could not bind the SSH port of {name}",
                cause="another program took the port in the meantime",
                action="Try again, or choose a port with --ssh-port.",
            )
        if output:
            raise TestbedError(
                f"QEMU of {name} ended",
                cause=output[-2000:],
                action="Run `rocelab doctor`: it checks QEMU, the image and the accelerator.",
            )
    testbed.alive()
