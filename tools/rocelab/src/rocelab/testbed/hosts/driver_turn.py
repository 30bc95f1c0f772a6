# SPDX-License-Identifier: GPL-2.0-or-later
"""Load another rdma_rxe on a host for a while. No file of the host's changes.

The module is loaded from a temporary folder, so a host that is reset boots with its own driver. The
lease brings back what was loaded before, however rocelab ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rocelab.errors import TestbedError
from rocelab.testbed import lease
from rocelab.testbed.hosts import loaded_driver
from rocelab.testbed.hosts.host_build import SBIN
from rocelab.testbed.hosts.loaded_driver import MODULE, Device, LoadedDriver
from rocelab.testbed.node import Node
from rocelab.testbed.node.interface import mark
from rocelab.testbed.node.prepare_node import check_parameters

_PARAMETERS = f"{MODULE}/parameters"
_TRIES = 50
_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}")
_IN_USE = 16
# One line each, as the lease wants it. Programs that were killed hold a device for a moment; who
# uses it longer keeps it.
_UNLOAD = (
    f'n=0; while [ "$(cat {MODULE}/refcnt 2>/dev/null || echo 0)" != 0 ]; do '
    f'n=$((n + 1)); [ "$n" -lt {_TRIES} ] || exit {_IN_USE}; sleep 0.2; done; '
    "for each in /sys/class/infiniband/*/parent; do "
    '[ ! -e "$each" ] || rdma link delete "$(basename "${each%/parent}")"; done; '
    f"n=0; while [ -d {MODULE} ] && ! rmmod rdma_rxe; do "
    f'n=$((n + 1)); [ "$n" -lt {_TRIES} ] || break; sleep 0.2; done'
)
# arguments: how many devices, each as name, netdev, and Y or N for RoCE v1
_ADD = (
    "count=$1; shift; bad=0; "
    'while [ "$count" -gt 0 ]; do '
    f'[ ! -e {_PARAMETERS}/roce_v1 ] || echo "$3" >{_PARAMETERS}/roce_v1; '
    'rdma link add "$1" type rxe netdev "$2" || bad=1; shift 3; count=$((count - 1)); done'
)
# further arguments: parameters, each as name and value
_SET = (
    f'while [ "$#" -gt 1 ]; do [ "$(cat {_PARAMETERS}/"$1")" = "$2" ] || '
    f'printf "%s\\n" "$2" >{_PARAMETERS}/"$1"; shift 2; done'
)
_UNLOAD_ALL = f"{_UNLOAD}; [ ! -d {MODULE} ] || exit {_IN_USE}"
_ADD_ALL = f"{_ADD}; exit $bad"
_RESTORE = f"{_UNLOAD}; modprobe rdma_rxe; {_ADD}; {_SET}"


@dataclass(frozen=True)
class Placed:
    """A module that lies on a host, ready to be loaded."""

    path: str
    source: str
    """Its srcversion."""


def place(node: Node, path: str) -> Placed:
    """Look at a module that was put on the host, and load what it depends on."""
    depends = node.run(["env", SBIN, "modinfo", "-F", "depends", path]).stdout.strip()
    names = [name for name in depends.split(",") if name]
    source = loaded_driver.source_of(node, path)
    if not source or not all(map(_NAME.fullmatch, names)):
        raise TestbedError(
            f"{path} on {node.name} is no module that can be loaded",
            cause=f"it depends on {depends!a:.80}, and its srcversion is {source!a:.40}",
            action="Build it again.",
        )
    if names:
        node.root.run(["modprobe", "-a", *names])
    return Placed(path, source)


def note(node: Node, before: LoadedDriver) -> None:
    """Have the lease bring back what is loaded, when it ends."""
    words = [word for parameter in before.parameters for word in parameter]
    lease.at_end(node, ("sh", "-c", _RESTORE, "sh", *_device_words(before.devices), *words))


def exchange(
    node: Node,
    module: Placed,
    devices: Sequence[Device],
    parameters: Sequence[tuple[str, str]] = (),
) -> None:
    """Load a module instead of the one that is loaded, and add the devices.

    Raises TestbedError if the loaded one is in use, or the host refuses the module; UsageError if
    the module does not have one of the parameters.
    """
    # marked: after a kill none of this may run while the lease restores
    done = node.root.run(mark(("sh", "-c", _UNLOAD_ALL)), check=False, timeout=120)
    if done.returncode:
        raise TestbedError(
            f"rdma_rxe on {node.name} cannot be unloaded",
            cause=done.stderr.strip()[-200:] or "a program that started since uses it",
            action="Stop the programs that use its devices or its events, and try again.",
        )
    settings = [f"{name}={value}" for name, value in parameters]
    done = node.root.run(mark(("insmod", module.path, *settings)), check=False)
    if done.returncode:
        raise TestbedError(
            f"{node.name} does not load the driver",
            cause=done.stderr.strip()[-200:],
            action="See `dmesg` there. With Secure Boot or kernel lockdown only signed modules "
            "load, and rocelab does not sign these.",
        )
    check_parameters(node, parameters)
    node.root.run(mark(("sh", "-c", _ADD_ALL, "sh", *_device_words(devices))))
    now = loaded_driver.read(node)
    if now is None or now.source != module.source:
        raise TestbedError(
            f"{node.name} does not run the driver that was loaded",
            cause="somebody else exchanged it",
            action="Leave rdma_rxe alone while rocelab measures.",
        )


def check_restored(node: Node, before: LoadedDriver) -> None:
    """Raise TestbedError unless what was loaded before is loaded again."""
    now = loaded_driver.read(node)
    if now != before:
        raise TestbedError(
            f"{node.name} does not have the driver back that it had",
            cause=f"it was {before}, and is {now}",
            action=f"On {node.name}: stop what uses rxe devices, then `rmmod rdma_rxe`, "
            "`modprobe rdma_rxe`, and add the devices with `rdma link add`.",
        )


def _device_words(devices: Sequence[Device]) -> list[str]:
    words = [str(len(devices))]
    for device in devices:
        words += [device.name, device.netdev, "Y" if device.roce_v1 else "N"]
    return words
