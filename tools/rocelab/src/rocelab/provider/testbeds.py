# SPDX-License-Identifier: GPL-2.0-or-later
"""Testbeds by name, whichever provider made them."""

from __future__ import annotations

from collections.abc import Callable

from rocelab.provider.qemu import testbed as qemu
from rocelab.provider.qemu.spec import Provider
from rocelab.provider.qemu.state import State
from rocelab.provider.qemu.testbed import QemuTestbed
from rocelab.provider.ssh.testbed import SshTestbed
from rocelab.provider.veth import testbed as veth
from rocelab.provider.veth.native import NativeTestbed
from rocelab.provider.veth.testbed import VethTestbed

VirtualTestbed = QemuTestbed | VethTestbed
"""A testbed of virtual machines, which outlives a command."""
PassingTestbed = NativeTestbed | SshTestbed
"""A testbed that is there for one command."""
AnyTestbed = VirtualTestbed | PassingTestbed


def up(
    name: str,
    *,
    provider: Provider,
    line: str,
    mtu: int,
    icount: bool = False,
    nodes: int = 2,
    switches: int = 0,
    memory_mb: int = qemu.MEMORY_MB,
    ssh_port: int | None = None,
    lifeline: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> VirtualTestbed:
    """Make a testbed; parameters and errors as `qemu.testbed.up`."""
    if provider == "veth":
        return veth.up(
            name,
            line=line,
            mtu=mtu,
            icount=icount,
            nodes=nodes,
            switches=switches,
            memory_mb=memory_mb,
            ssh_port=ssh_port,
            lifeline=lifeline,
            say=say,
        )
    return qemu.up(
        name,
        line=line,
        mtu=mtu,
        nodes=nodes,
        switches=switches,
        memory_mb=memory_mb,
        ssh_port=ssh_port,
        lifeline=lifeline,
        say=say,
    )


def of(state: State) -> VirtualTestbed:
    """The testbed of a state folder."""
    host = QemuTestbed(state)
    return VethTestbed(host) if host.spec.provider == "veth" else host


def attach(name: str) -> VirtualTestbed:
    """A testbed that is up. Raises UsageError when there is none of that name."""
    return of(qemu.attach(name).state)
