# SPDX-License-Identifier: GPL-2.0-or-later
"""Where rxedump can run: this machine, nodes of testbeds that are up, hosts of the inventory.

Nothing here connects to anything: Wireshark lists interfaces each time it starts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rocelab.errors import RocelabError, UsageError
from rocelab.testbed.by_name import from_state
from rocelab.testbed.node.prepare_node import device_of
from rocelab.testbed.node.ssh_node import SshTarget
from rocelab.testbed.qemu.state_folder import State
from rocelab.testbed.ssh import inventory
from rocelab.testbed.ssh.connect import target_of

_DEVICES = Path("/sys/class/infiniband")
_NOT_SHARED = Path("none")
"""ssh(1)'s word for no shared connection: this one ends with the capture."""


@dataclass(frozen=True)
class Interface:
    """One interface of Wireshark."""

    value: str
    """Its name, also on tshark's command line."""
    title: str
    device: str | None
    """The RDMA device; None: all of that machine."""
    node: str | None
    """Name of the machine in the file; None: its host name."""
    ssh: tuple[str, ...] | None
    """The local command that reaches it, to which a command's text is added; None: no need."""


def _here() -> Iterator[Interface]:
    if not _DEVICES.is_dir():
        return
    for path in sorted(_DEVICES.iterdir()):
        # rxe says what it lies on
        if (path / "parent").exists():
            name = path.name
            yield Interface(f"rocelab-{name}", f"Soft RoCE {name}", name, None, None)


def _testbed(state: State) -> Iterator[Interface]:
    testbed = from_state(state)
    for name, device in ((node.name, device_of(node)) for node in testbed.nodes):
        target = testbed.target(name)
        yield Interface(
            f"rocelab-{state.name}-{name}-{device}",
            f"Soft RoCE {device} on {name} of testbed {state.name}",
            device,
            name,
            _login(target),
        )


def _testbeds() -> Iterator[Interface]:
    for state in State.all():
        if state.alive():
            # one may be going down just now
            yield from _readable(_testbed(state))


def _login(target: SshTarget) -> tuple[str, ...]:
    return ("ssh", *target.options(), "--", target.host)


def _ssh(host: inventory.Host) -> tuple[str, ...]:
    return _login(target_of(host, _NOT_SHARED))


def _hosts() -> Iterator[Interface]:
    path = inventory.default_path()
    if not path.exists():
        return
    for host in inventory.load(path):
        # its `verbs` is an adapter, whose packets no driver of ours sees: all rxe devices there
        title = f"Soft RoCE devices on {host.name} ({host.host})"
        value = f"rocelab-host-{host.name}"
        yield Interface(value, title, None, host.name, _ssh(host))


def _readable(source: Iterator[Interface]) -> Iterator[Interface]:
    """Return its interfaces; report unreadable ones on standard error."""
    try:
        yield from source
    except (RocelabError, OSError) as error:
        print(f"rocelab: {error}", file=sys.stderr)


def all_interfaces() -> list[Interface]:
    """Return all interfaces; report unreadable ones on standard error and continue."""
    return [interface for source in (_here, _testbeds, _hosts) for interface in _readable(source())]


def find(value: str) -> Interface:
    """The interface of that name. Raises UsageError if there is none (any more)."""
    for interface in all_interfaces():
        if interface.value == value:
            return interface
    raise UsageError(
        f"there is no interface {value!r}",
        cause="its device, testbed or host is gone since Wireshark listed it",
        action="Refresh the interfaces (F5), or see `rocelab status` and "
        f"{inventory.default_path()}.",
    )
