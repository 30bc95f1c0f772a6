# SPDX-License-Identifier: GPL-2.0-or-later
"""A testbed of virtual machines: boot it, use it, take it down.

Implements rocelab.testbed.interface.Testbed.
"""

from __future__ import annotations

import json
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rocelab import accelerators
from rocelab.errors import MissingError, RocelabError, TestbedError, UsageError
from rocelab.plans.catalog import Provider, Transport
from rocelab.testbed import artifacts, bridges
from rocelab.testbed.bridges import Port
from rocelab.testbed.control_network import ControlEnd
from rocelab.testbed.faults.link import FaultyLink
from rocelab.testbed.faults.relay import Signal
from rocelab.testbed.interface import WHOLE_FRAMES, Captured
from rocelab.testbed.node.ssh_node import SshNode, SshTarget
from rocelab.testbed.qemu import accelerator_probe, filter_dump, filter_redirector, real_time
from rocelab.testbed.qemu.machine_spec import (
    LOCKSTEP,
    MEMORY_MB,
    PEER,
    NodeSpec,
    TestbedSpec,
    data_netdev,
    guest_config,
    kernel_command_line,
    peer_port_mac,
    port_mac,
)
from rocelab.testbed.qemu.qemu_version import kernel_workarounds, qemu_version
from rocelab.testbed.qemu.state_folder import State

_SWITCH_MB = 512
"""Memory of the machine between the nodes, which only boots and forwards."""
_PEER_MTU = 1500
_HOST_RESERVE_MB = 512
_QEMU_OVERHEAD_MB = 256
_DISK_MB = 512
_BOOT_SECONDS = 240

Say = Callable[[str], None]


def _say_nothing(text: str) -> None:
    """Discard progress messages."""
    del text


class QemuTestbed:
    """A testbed that is up."""

    def __init__(
        self,
        state: State,
        owner: subprocess.Popen[bytes] | None = None,
        *,
        patience: float = 1,
    ) -> None:
        self.state = state
        self.patience = patience
        # the supervisor, if this process started it; the pipe to it is the lifeline
        self._owner = owner
        self.spec = state.spec()
        self._nodes = [self._node(node) for node in self.spec.nodes]
        self._switch = self._node(self.spec.switch) if self.spec.switch else None

    def _node(self, node: NodeSpec) -> SshNode:
        path = self.state.path
        target = SshTarget(
            "127.0.0.1",
            path / f"{node.name}.ssh",
            port=node.ssh_port,
            user="root",
            identity=path / "id_ed25519",
            known_hosts=path / "known_hosts",
            configured=False,
        )
        return SshNode(node.name, node.link, target, self.patience)

    @property
    def nodes(self) -> Sequence[SshNode]:
        """The nodes in the order of their names."""
        return self._nodes

    @property
    def switch(self) -> SshNode | None:
        """The machine between the nodes, if there is one."""
        return self._switch

    @property
    def machines(self) -> Sequence[SshNode]:
        """All machines."""
        return self._nodes if self._switch is None else [*self._nodes, self._switch]

    def target(self, name: str) -> SshTarget:
        """Return how to log in to a machine. Raises StopIteration for an unknown name."""
        return next(node.target for node in self.machines if node.name == name)

    @property
    def accelerator(self) -> accelerators.Name:
        """`kvm`, `icount` or `tcg`."""
        return self.spec.accelerator

    @property
    def control(self) -> tuple[ControlEnd, ...]:
        """The control network between the nodes."""
        return tuple(ControlEnd(PEER, node.peer_ipv4) for node in self.spec.nodes)

    @property
    def control_ports(self) -> frozenset[int]:
        """None: control never shares the data link."""
        return frozenset()

    def over(self, transport: Transport) -> QemuTestbed:
        """Itself: all transports share the data link."""
        del transport
        return self

    @contextmanager
    def capture(self, path: Path, *, snaplen: int = WHOLE_FRAMES) -> Iterator[Captured]:
        """Capture the data link in QEMU, outside every guest.

        With two nodes at the first node's card, with more where frames arrive at the switch.
        """
        two = len(self.spec.nodes) == 2
        machine = self.spec.nodes[0] if two or self.spec.switch is None else self.spec.switch
        qmp = self.state.path / f"{machine.name}.qmp"
        capture = (
            filter_dump.both_directions(qmp, path, snaplen)
            if two
            else filter_dump.arrivals(
                qmp, [data_netdev(node) for node in self.spec.nodes], path, snaplen
            )
        )
        try:
            with capture:
                yield Captured()  # QEMU waits until a frame is written
        except TestbedError:
            self.alive()  # if a node died, say that instead
            raise

    @contextmanager
    def faulty(self, link: FaultyLink, signal: Signal) -> Iterator[None]:
        """Have faults happen on the data link, between the first node's capture and the second."""
        qmp = self.state.path / f"{self.spec.nodes[0].name}.qmp"
        with filter_redirector.inserted(qmp, "data", link, signal):
            yield

    @contextmanager
    def one_clock(self) -> Iterator[None]:
        """Keep the machines on one virtual clock meanwhile, if they can (`lockstep`)."""
        if not self.spec.lockstep:
            yield
            return
        with (self.state.path / LOCKSTEP).open("r+b", buffering=0) as shared:
            # greater than any number before
            shared.write(struct.pack("=I", time.monotonic_ns() // 1_000_000 % 2**32 or 1))
            try:
                yield
            finally:
                shared.seek(0)
                shared.write(struct.pack("=I", 0))

    def take_over(self) -> None:
        """Remove the captures and faults that a killed run left. Raises TestbedError."""
        for machine in self.spec.machines:
            qmp = self.state.path / f"{machine.name}.qmp"
            filter_dump.remove_all(qmp)
            filter_redirector.remove_all(qmp)
        for folder in self.state.path.glob(f"{filter_redirector.PREFIX}*"):
            shutil.rmtree(folder, ignore_errors=True)

    def alive(self) -> None:
        """Raise TestbedError when a node has died; the error quotes its console."""
        if not self.state.alive():
            raise TestbedError(
                f"testbed {self.spec.name} is gone",
                cause="its supervisor was killed, or `rocelab down` was called",
                action="Bring it up again with `rocelab up`.",
            )
        for name, status in self.state.died().items():
            console = self.state.console_tail(name) or "its console is empty"
            raise TestbedError(
                f"node {name} died (QEMU exited with {status})",
                cause=f"the end of its console:\n{console}",
                action="Take the testbed down with `rocelab down` and start again.",
            )

    def environment(self) -> dict[str, Any]:
        """Describe the testbed for run.json."""
        facts = artifacts.facts(Path(self.spec.image) / "image.json")
        return {
            "provider": Provider.QEMU,
            "qemu": qemu_version(),
            "accelerator": self.spec.accelerator,
            "host_cpu": _host_cpu(),
            "image": facts,
            "kernel_command_line": kernel_command_line(self.spec.kernel_workarounds),
            "memory_mb": self.spec.nodes[0].memory_mb,
            "vcpus": self.spec.vcpus,
            "data_link": _data_link(self.spec),
            "switches": self.spec.switches,
            "witness": _witness(self.spec),
            "one_clock": False,
            "mtu": self.spec.nodes[0].mtu,
        }

    def down(self) -> None:
        """Stop all machines and remove the state folder."""
        for node in self.machines:
            node.close()
        self.state.stop()
        if self._owner:
            self._owner.communicate()


def _data_link(spec: TestbedSpec) -> str:
    if spec.lockstep:
        return (
            f"QEMU stream and memory that both machines share; frames arrive every "
            f"{accelerators.QUANTUM_NS:,} ns of virtual time (lossless), virtio-net"
        )
    stream = "QEMU stream over a pair of Unix sockets (lossless), virtio-net"
    if not spec.switches:
        return stream
    return f"{stream}, to a machine between the nodes that is {bridges.describe(spec.switches)}"


def _witness(spec: TestbedSpec) -> str:
    if len(spec.nodes) == 2:
        return "QEMU's filter-dump at the first node's card, outside every node"
    return "QEMU's filter-dump where frames arrive at the switch, outside every node"


def _host_cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def _memory_available_mb() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    raise MissingError(
        "cannot find out how much memory is available",
        cause="/proc/meminfo has no MemAvailable",
        action="Make /proc/meminfo readable, as on any Linux since 3.14.",
    )


def check_host(nodes: int, memory_mb: int, folder: Path, *, more_mb: int = 0) -> None:
    """Raise MissingError when this machine lacks a program, memory or disk space."""
    for tool, package in (
        ("qemu-system-x86_64", "qemu-system-x86"),
        ("ssh", "openssh-client"),
        ("ssh-keygen", "openssh-client"),
        ("setpriv", "util-linux"),
    ):
        if not shutil.which(tool):
            raise MissingError(
                f"{tool} is not installed",
                cause="`make setup` has not run on this machine",
                action=f"Run `make setup`, or install Debian's package {package}.",
            )
    free = shutil.disk_usage(folder).free // 2**20
    if free < _DISK_MB:
        raise MissingError(
            f"{folder} has {free} MiB free, captures and consoles need {_DISK_MB} MiB",
            cause="the disk is nearly full",
            action="Free some space on that disk.",
        )
    need = nodes * (memory_mb + _QEMU_OVERHEAD_MB) + _HOST_RESERVE_MB
    need += more_mb + _QEMU_OVERHEAD_MB if more_mb else 0
    have = _memory_available_mb()
    if have < need:
        raise MissingError(
            f"{nodes} nodes of {memory_mb} MiB need {need} MiB of memory, {have} MiB are available",
            cause="other programs use the memory",
            action="Close some, or give the nodes less with `rocelab up --memory MIB`.",
        )


def _port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _ports(count: int, first: int | None) -> list[int]:
    """Return ports on 127.0.0.1 for SSH: consecutive ones from `first`, or any free ones."""
    if first is None:
        probes = [socket.socket() for _ in range(count)]
        try:
            for probe in probes:
                probe.bind(("127.0.0.1", 0))
            return [int(probe.getsockname()[1]) for probe in probes]
        finally:
            for probe in probes:
                probe.close()
    ports = list(range(first, first + count))
    for port in ports:
        if not _port_is_free(port):
            raise TestbedError(
                f"port {port} on 127.0.0.1 is in use",
                cause="another program or another testbed listens on it",
                action="Choose another with --ssh-port, or omit the option to get free ports.",
            )
    return ports


def _write_keys(state: State) -> None:
    """Generate the login key and the host key; they are deleted with the testbed."""
    make_key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "rocelab", "-f"]
    for name in ("id_ed25519", "host_key"):
        subprocess.run([*make_key, state.path / name], check=True, stdin=subprocess.DEVNULL)
    host_key = (state.path / "host_key.pub").read_text().split()[:2]
    (state.path / "known_hosts").write_text(f"[127.0.0.1]:* {' '.join(host_key)}\n")


def _supervise(state: State, lifeline: bool) -> subprocess.Popen[bytes]:
    """Start the supervisor; with `lifeline` it ends with this process, even if that is killed."""
    command = [sys.executable, "-m", "rocelab.testbed.qemu.supervisor", state.name]
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


def _wait_for_boot(testbed: QemuTestbed, say: Say) -> None:
    started = time.monotonic()
    limit = _BOOT_SECONDS * testbed.patience
    for node in testbed.machines:
        while not node.connect(timeout=30):
            _explain_early_death(testbed)
            if time.monotonic() - started > limit:
                raise TestbedError(
                    f"node {node.name} did not answer within {limit:.0f} s",
                    cause=f"the end of its console:\n{testbed.state.console_tail(node.name)}",
                    action="Check whether other work keeps this machine's processors busy.",
                )
            time.sleep(0.2)
        say(f"{node.name} booted in {time.monotonic() - started:.0f} s")


def _explain_early_death(testbed: QemuTestbed) -> None:
    for name in testbed.state.died():
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


def up(
    name: str,
    *,
    line: str,
    mtu: int,
    provider: Provider = Provider.QEMU,
    icount: bool = False,
    lockstep: bool = False,
    emulation: accelerators.Name = "icount",
    nodes: int = 2,
    switches: int = 0,
    vcpus: int | None = None,
    last_line: str = "",
    memory_mb: int = MEMORY_MB,
    ssh_port: int | None = None,
    lifeline: bool = False,
    patience: float = 1,
    say: Say = _say_nothing,
) -> QemuTestbed:
    """Boot a testbed's machines and wait until all of them answer.

    Provider `veth` has one machine. Provider `qemu` has one for each of `nodes`, and one more for
    the `switches` between them; more than two nodes need a switch. The last node runs the kernel
    line `last_line`, if given. Where KVM does not work, or with `icount`, machines are emulated and
    count instructions, with `lockstep` on one clock (two nodes without a switch); `emulation` is
    for machines that need real time, or processors in parallel, and no count. With `lifeline` the
    testbed ends with this process, else with `down`. `patience` multiplies every time limit. Raises
    UsageError for a name in use, MissingError when this machine lacks resources, TestbedError when
    a node fails.
    """
    state = State(name)
    if state.alive():
        raise UsageError(
            f"testbed {name} is already up",
            cause="an earlier `rocelab up` made it",
            action="Use it, or take it down with `rocelab down`.",
        )
    machines = 1 if provider == Provider.VETH else nodes
    between = switches > 0 and provider == Provider.QEMU
    check_host(machines, memory_mb, state.path.parent, more_mb=_SWITCH_MB if between else 0)
    image = artifacts.image(line)
    last = str(artifacts.image(last_line)) if last_line else ""
    ports = _ports(machines + between, ssh_port)
    accelerator: accelerators.Name
    if lockstep:
        accelerator = "lockstep"
    else:
        accelerator = "icount" if icount else accelerator_probe.choose(image, emulation)
    spec = TestbedSpec(
        name,
        line,
        str(image),
        accelerator,
        tuple(
            NodeSpec(i + 1, ports[i], memory_mb, mtu, image=last if i == machines - 1 else "")
            for i in range(machines)
        ),
        provider,
        ends=nodes,
        switches=switches,
        switch=NodeSpec(machines + 1, ports[-1], _SWITCH_MB, mtu, True) if between else None,
        processors=vcpus,
        lockstep=str(artifacts.lockstep()) if lockstep else "",
        kernel_workarounds=kernel_workarounds(accelerator, qemu_version()),
    )
    what = f"{nodes} nodes" if provider == Provider.QEMU else f"1 machine with {nodes} ends"
    path = f" over {bridges.describe(switches)}" if switches else ""
    say(f"booting {what}{path}, kernel line {line}, accelerator {accelerator}")
    for _ in range(max(real_time.BOOTS, len(spec.machines))):
        testbed = _boot(state, spec, lifeline, patience, say)
        if accelerator != "tcg" or real_time.settled(testbed.machines):
            return testbed
        testbed.down()
        say("the clock of a node runs wrong: booting again")
    raise TestbedError(
        "the clock of a node ran wrong after each boot",
        cause="this machine is too busy for an emulated one to measure its TSC's frequency",
        action="Try again when less runs on it.",
    )


def _boot(
    state: State, spec: TestbedSpec, lifeline: bool, patience: float, say: Say
) -> QemuTestbed:
    state.create(spec)
    try:
        _write_keys(state)
        for node in spec.machines:
            (state.path / f"{node.name}.conf").write_text(guest_config(spec, node))
        testbed = QemuTestbed(state, _supervise(state, lifeline), patience=patience)
        _wait_for_boot(testbed, say)
        if testbed.switch is not None:
            _connect(testbed.switch, spec)
    except BaseException:
        try:
            state.stop()
        except RocelabError:
            state.remove()
        raise
    return testbed


def _connect(switch: SshNode, spec: TestbedSpec) -> None:
    """Make the bridges on the machine between the nodes."""
    links = json.loads(switch.run(("ip", "-j", "link", "show")).stdout)
    names = {link["address"]: link["ifname"] for link in links}
    data = [Port(names[port_mac(node)], node.link.mac) for node in spec.nodes]
    peer = [Port(names[peer_port_mac(node)], node.peer_mac) for node in spec.nodes]
    for argv in (
        *bridges.make(data, spec.switches, spec.nodes[0].mtu),
        *bridges.make(peer, 1, _PEER_MTU, name="peer"),
    ):
        switch.run(argv)


def attach(name: str) -> QemuTestbed:
    """Return a testbed that is up. Raises UsageError when no testbed has that name."""
    state = State(name)
    if not state.alive():
        raise UsageError(
            f"no testbed {name} is up",
            cause="it was never brought up, or was taken down",
            action="Bring it up with `rocelab up`; `rocelab status` lists those that are up.",
        )
    return QemuTestbed(state)
