# SPDX-License-Identifier: GPL-2.0-or-later
"""Make or attach to a testbed by its name, for any provider."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rocelab.accelerators import Counting
from rocelab.plans.catalog import Provider
from rocelab.testbed import preparation
from rocelab.testbed.package_image import NONE, Packages
from rocelab.testbed.preparation import Payload
from rocelab.testbed.qemu import bring_up, qemu_testbed
from rocelab.testbed.qemu.machine_spec import MEMORY_MB
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rocelab.testbed.qemu.state_folder import State
from rocelab.testbed.ssh.ssh_testbed import SshTestbed
from rocelab.testbed.veth import veth_testbed as veth
from rocelab.testbed.veth.native import NativeTestbed
from rocelab.testbed.veth.veth_testbed import VethTestbed

VirtualTestbed = QemuTestbed | VethTestbed
"""A testbed of virtual machines, which stays up after the command that made it."""
TransientTestbed = NativeTestbed | SshTestbed
"""A testbed that exists for the duration of one command."""
AnyTestbed = VirtualTestbed | TransientTestbed


def up(
    name: str,
    *,
    provider: Provider,
    line: str,
    mtu: int,
    icount: bool = False,
    lockstep: bool = False,
    emulation: Counting = "icount",
    nodes: int = 2,
    switches: int = 0,
    memory_mb: int = MEMORY_MB,
    ssh_port: int | None = None,
    packages: Packages = NONE,
    payload: Payload | None = None,
    fresh: bool = False,
    lifeline: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> VirtualTestbed:
    """Make a testbed with `payload` on its nodes; for the rest see `bring_up.up`."""
    make: Callable[..., VirtualTestbed]
    if provider == Provider.VETH:
        make = partial(veth.up, payload=payload)
    else:
        node_preparation = preparation.of_nodes(payload) if payload else None
        make = partial(
            bring_up.up, lockstep=lockstep, emulation=emulation, preparation=node_preparation
        )
    testbed = make(
        name,
        line=line,
        mtu=mtu,
        icount=icount,
        nodes=nodes,
        switches=switches,
        memory_mb=memory_mb,
        ssh_port=ssh_port,
        packages=packages,
        fresh=fresh,
        lifeline=lifeline,
        say=say,
    )
    if payload:
        testbed.state.mark_prepared()
        say(f"on each node: {payload.text}")
    return testbed


def from_state(state: State) -> VirtualTestbed:
    """Return the testbed of a state folder."""
    host = QemuTestbed(state)
    return VethTestbed(host) if host.spec.provider == Provider.VETH else host


def attach(name: str) -> VirtualTestbed:
    """Return a testbed that is up. Raises UsageError when no testbed has that name."""
    return from_state(qemu_testbed.attach(name).state)
