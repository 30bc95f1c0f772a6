# SPDX-License-Identifier: GPL-2.0-or-later
"""Ends on this machine itself, without a virtual machine: its own kernel, real time."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rocelab import accelerators
from rocelab.errors import MissingError, UsageError
from rocelab.plans.catalog import Provider, Transport
from rocelab.testbed import linktap
from rocelab.testbed.faults.traffic_control import SWEEP
from rocelab.testbed.interface import WHOLE_FRAMES, Captured
from rocelab.testbed.node import Node, local
from rocelab.testbed.node.endpoint import Endpoint
from rocelab.testbed.node.prepare_node import add_device, driver_version, remove_device
from rocelab.testbed.veth import layout, pair_setup
from rocelab.testbed.veth.layout import Layout

_LOCK = "/sys/class/net"
"""What is locked: for all users the same, root among them; for each network namespace its own."""


class NativeTestbed:
    """Ends over veth on this machine (rocelab.testbed.interface.Testbed)."""

    def __init__(self, machine: Node, plan: Layout, lock: int) -> None:
        self._machine = machine
        self._layout = plan
        self._lock = lock
        self._nodes = pair_setup.ends(machine, plan)
        self._cpuinfo = local.read_cpuinfo()

    @property
    def nodes(self) -> Sequence[Endpoint]:
        """The ends."""
        return self._nodes

    @property
    def accelerator(self) -> accelerators.Name:
        """`native`, unless this machine is itself virtual."""
        return local.accelerator(self._cpuinfo)

    @property
    def control(self) -> None:
        """None: all ends are on one machine."""
        return None

    @property
    def control_ports(self) -> frozenset[int]:
        """None: control never shares the data link."""
        return frozenset()

    def over(self, transport: Transport) -> NativeTestbed:
        """Itself: all transports share the data link."""
        del transport
        return self

    @contextmanager
    def capture(self, path: Path, *, snaplen: int = WHOLE_FRAMES) -> Iterator[Captured]:
        """Capture the link."""
        with linktap.capture(self._machine, self._layout.netdevs, path, snaplen) as captured:
            yield captured

    def alive(self) -> None:
        """Do nothing: if this machine dies, so do we."""

    def environment(self) -> dict[str, Any]:
        """Describe the testbed for run.json."""
        return {
            "provider": Provider.VETH,
            "native": True,
            "accelerator": self.accelerator,
            "data_link": self._layout.description,
            "switches": self._layout.switches,
            "witness": layout.WITNESS,
            "one_clock": True,
            "mtu": self._layout.mtu,
        }

    def down(self) -> None:
        """Remove the devices, the pair and its rules. The driver stays loaded."""
        _remove(self._machine)
        os.close(self._lock)


def up(
    *,
    mtu: int,
    verbs: bool,
    nodes: int = 2,
    switches: int = 0,
    say: Callable[[str], None] = lambda _: None,
) -> NativeTestbed:
    """Make the ends on this machine; with `verbs`, add an rxe device at each end.

    Leftovers of a killed run are removed first. Raises MissingError when this machine lacks
    permissions, the driver or a program; UsageError while another such testbed is up, or when the
    user has devices of the same names.
    """
    machine = local.machine()
    lock = _lock()
    plan = Layout(mtu, nodes, switches)
    ends = pair_setup.ends(machine, plan)
    try:
        _check(machine, verbs)
        _remove(machine)
        pair_setup.make(machine, plan)
        try:
            if verbs:
                _add_devices(ends)
        except BaseException:
            _remove(machine)
            raise
    except BaseException:
        os.close(lock)
        raise
    say(f"all ends on this machine, which runs {machine.run(['uname', '-r']).stdout.strip()}")
    return NativeTestbed(machine, plan, lock)


def _lock() -> int:
    """Make sure that there is only one such testbed: its names and routing tables are fixed."""
    lock = os.open(_LOCK, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise UsageError(
            "another run uses the veth pair on this machine",
            cause="--native allows one run at a time",
            action="Wait until it ends, or run without --native: virtual machines do not share "
            "the pair.",
        ) from error
    return lock


def _check(machine: Node, verbs: bool) -> None:
    if not shutil.which(linktap.TAP):
        raise MissingError(
            f"{linktap.TAP} is not installed on this machine",
            cause="it captures the veth pair, and is installed with the probes",
            action="Run `make -C ebpf install`.",
        )
    if verbs and not driver_version(machine):
        raise MissingError(
            "the instrumented rdma_rxe is not loaded on this machine",
            cause="it is not installed, or the stock driver is loaded",
            action="Run `make -C kernel install` and follow what it prints, or run without "
            "--native: the plan then runs in a virtual machine.",
        )


def _add_devices(ends: Sequence[Endpoint]) -> None:
    for end in ends:
        if Path(f"/sys/class/infiniband/{end.device}").exists():
            raise UsageError(
                f"this machine already has a verbs device {end.device}",
                cause="rocelab did not add it, and needs the name for its own device",
                action=f"Rename it (`rdma dev set {end.device} name ANOTHER`), or run without "
                "--native.",
            )
    for end in ends:
        add_device(end)


def _remove(machine: Node) -> None:
    """Undo any layout; a device is ours if it is on an interface with one of our names."""
    for end in pair_setup.ends(machine, Layout(0, layout.MAX_ENDS)):
        parent = Path(f"/sys/class/infiniband/{end.device}/parent")
        if parent.exists() and parent.read_text().strip() == end.link.netdev:
            remove_device(end)
    machine.run(("sh", "-c", SWEEP), check=False)
    pair_setup.remove(machine)
