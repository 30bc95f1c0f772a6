# SPDX-License-Identifier: GPL-2.0-or-later
"""Ends on this machine itself: no virtual machine, its own kernel, real time."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rocelab.errors import MissingError, UsageError
from rocelab.node import Node, local
from rocelab.node.endpoint import Endpoint
from rocelab.node.prepare import add_device, driver_version, remove_device
from rocelab.provider import tap
from rocelab.provider.base import WHOLE_FRAMES, Accelerator
from rocelab.provider.qemu.state import base
from rocelab.provider.veth import layout, pair
from rocelab.provider.veth.layout import Layout

_LOCK = "native.lock"


class NativeTestbed:
    """Ends over veth on this machine (rocelab.provider.base.Testbed)."""

    def __init__(self, machine: Node, plan: Layout, lock: int) -> None:
        self._machine = machine
        self._layout = plan
        self._lock = lock
        self._nodes = pair.ends(machine, plan)
        self._cpuinfo = local.read_cpuinfo()

    @property
    def nodes(self) -> Sequence[Endpoint]:
        """The ends."""
        return self._nodes

    @property
    def accelerator(self) -> Accelerator:
        """`native`, unless this machine is a virtual one."""
        return local.executes(self._cpuinfo)

    @property
    def control(self) -> None:
        """All ends are one machine."""
        return None

    @contextmanager
    def capture(self, path: Path, *, snaplen: int = WHOLE_FRAMES) -> Iterator[None]:
        """Capture the link."""
        with tap.capture(self._machine, self._layout.netdevs, path, snaplen):
            yield

    def alive(self) -> None:
        """Nothing to say: when this machine dies, so do we."""

    def environment(self) -> dict[str, Any]:
        """Facts for run.json."""
        return {
            "provider": "veth",
            "native": True,
            "accelerator": self.accelerator,
            "data_link": self._layout.words,
            "switches": self._layout.switches,
            "witness": layout.WITNESS,
            "one_clock": True,
            "mtu": self._layout.mtu,
        }

    def down(self) -> None:
        """Take away the devices, the pair and its rules. The driver stays as it was loaded."""
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
    """Make the ends on this machine; with `verbs`, an rxe device at each end.

    What an earlier one left behind when it was killed goes first. Raises MissingError when this
    machine lacks the rights, the driver or a program, UsageError while another one is up or
    devices of those names are somebody else's.
    """
    machine = local.machine()
    lock = _only_one()
    plan = Layout(mtu, nodes, switches)
    ends = pair.ends(machine, plan)
    try:
        _check(machine, verbs)
        _remove(machine)
        pair.make(machine, plan)
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


def _only_one() -> int:
    """The names and the routing table are there once: so is the pair."""
    lock = os.open(base() / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise UsageError(
            "another run has its veth pair on this machine",
            action="wait for its end, or leave --native out: virtual machines have their own",
        ) from error
    return lock


def _check(machine: Node, verbs: bool) -> None:
    if not shutil.which(tap.TAP):
        raise MissingError(
            f"{tap.TAP} is not installed on this machine",
            cause="it captures the pair, and comes with the probes",
            action="make -C ebpf install",
        )
    if verbs and not driver_version(machine):
        raise MissingError(
            "this machine's kernel has not loaded the instrumented rdma_rxe",
            cause="it is not installed, or the stock one is loaded",
            action="make -C kernel install, and what that says; "
            "without --native the same plan runs in a virtual machine",
        )


def _add_devices(ends: Sequence[Endpoint]) -> None:
    for end in ends:
        if Path(f"/sys/class/infiniband/{end.device}").exists():
            raise UsageError(
                f"this machine has a verbs device {end.device} already",
                cause="it is yours: rocelab's would have the same name",
                action=f"rdma dev set {end.device} name ANOTHER, or leave --native out",
            )
    for end in ends:
        add_device(end)


def _remove(machine: Node) -> None:
    """Undo everything, if it is ours, of any layout: the names of our interfaces say so."""
    for end in pair.ends(machine, Layout(0, layout.MOST_ENDS)):
        parent = Path(f"/sys/class/infiniband/{end.device}/parent")
        if parent.exists() and parent.read_text().strip() == end.link.netdev:
            remove_device(end)
    pair.remove(machine)
