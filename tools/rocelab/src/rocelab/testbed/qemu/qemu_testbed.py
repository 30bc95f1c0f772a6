# SPDX-License-Identifier: GPL-2.0-or-later
"""A testbed of virtual machines that is up: use it, take it down.

Implements rocelab.testbed.interface.Testbed.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rocelab import accelerators
from rocelab.errors import TestbedError, UsageError
from rocelab.plans.catalog import Provider, Transport
from rocelab.testbed import artifacts, bridges
from rocelab.testbed.control_network import ControlEnd
from rocelab.testbed.faults.link import FaultyLink
from rocelab.testbed.faults.relay import Signal
from rocelab.testbed.interface import WHOLE_FRAMES, Captured
from rocelab.testbed.node.ssh_node import SshNode, SshTarget
from rocelab.testbed.qemu import filter_dump, filter_redirector
from rocelab.testbed.qemu.machine_spec import (
    LOCKSTEP,
    PEER,
    NodeSpec,
    TestbedSpec,
    data_netdev,
    kernel_command_line,
)
from rocelab.testbed.qemu.qemu_exit import exit_text
from rocelab.testbed.qemu.qemu_version import qemu_version
from rocelab.testbed.qemu.state_folder import State

# words of the memory that the machines share (struct shared of tools/lockstep/lockstep.c)
_LOCK, _HURRIES = 0, 1


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
            of_testbed=f"rocelab ssh --name {self.spec.name} {node.name}",
        )
        # a session costs an emulated machine more than most commands
        waiting = replace(target, shells=target.waiting_shells(at_first=0))
        return SshNode(node.name, node.link, waiting, self.patience)

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
        with filter_redirector.insert(qmp, "data", link, signal):
            yield

    @contextmanager
    def one_clock(self) -> Iterator[None]:
        """Keep the machines on one virtual clock meanwhile, if they can (`lockstep`)."""
        if not self.spec.lockstep:
            yield
            return
        # greater than any number before
        with self._shared_word(_LOCK, time.monotonic_ns() // 1_000_000 % 2**32 or 1):
            yield

    @contextmanager
    def hurry(self) -> Iterator[None]:
        """Have idle machines jump ahead of the host's clock meanwhile, if they can (`lockstep`)."""
        if not self.spec.lockstep or not self.state.alive():
            yield
            return
        with self._shared_word(_HURRIES, 1):
            yield

    @contextmanager
    def _shared_word(self, index: int, value: int) -> Iterator[None]:
        """Set a word of the memory that machines in lockstep share; reset it to 0."""

        def put(number: int) -> None:
            os.pwrite(shared.fileno(), struct.pack("=I", number), 4 * index)

        try:
            shared = (self.state.path / LOCKSTEP).open("r+b", buffering=0)
        except FileNotFoundError:
            self.alive()  # says who ended the testbed
            raise
        with shared:
            put(value)
            try:
                yield
            finally:
                put(0)

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
        for name, status in self.state.exit_statuses().items():
            console = self.state.console_tail(name) or "its console is empty"
            raise TestbedError(
                f"node {name} died (QEMU: {exit_text(status)})",
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
            "kernel_command_line": kernel_command_line(self.spec.kernel_parameters),
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
