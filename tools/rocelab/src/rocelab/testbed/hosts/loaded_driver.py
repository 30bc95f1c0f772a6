# SPDX-License-Identifier: GPL-2.0-or-later
"""The rdma_rxe that a host has loaded: which one, its parameters and devices, and who uses them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rocelab import json_text
from rocelab.errors import TestbedError
from rocelab.testbed.hosts.host_build import SBIN
from rocelab.testbed.node import Node

MODULE = "/sys/module/rdma_rxe"
_DEVICES = "/sys/class/infiniband"
# `find` knows which parameters root can write; the others say something of the machine. Entries
# without a GID cannot be read.
_READ = f"""
grep -Hs '' {MODULE}/srcversion
find {MODULE}/parameters -type f -perm -200 -exec grep -Hs '' {{}} + 2>/dev/null
grep -Hs '' {_DEVICES}/*/parent
grep -rHs '' {_DEVICES}/*/ports/1/gid_attrs/types
true
"""
_SOURCE = re.compile(rf"{MODULE}/srcversion:([0-9A-F]{{1,64}})")
_PARAMETER = re.compile(rf"{MODULE}/parameters/([A-Za-z0-9_]{{1,63}}):([ -~]{{0,200}})")
_PARENT = re.compile(rf"{_DEVICES}/([A-Za-z0-9_.-]{{1,63}})/parent:([A-Za-z0-9_.:-]{{1,15}})")
_V1 = re.compile(rf"{_DEVICES}/([A-Za-z0-9_.-]{{1,63}})/ports/1/gid_attrs/types/\d+:IB/RoCE v1")
_OWN_QPS = ("GSI", "SMI")
"""Types of the queue pairs that the RDMA core itself makes on each device."""
_MAX_NAMED = 5


@dataclass(frozen=True)
class Device:
    """An rxe device."""

    name: str
    netdev: str
    roce_v1: bool
    """Whether it has RoCE v1 GIDs."""


@dataclass(frozen=True)
class LoadedDriver:
    """What has to be there again after another driver was loaded."""

    source: str
    """The module's srcversion, a hash of what it was built from."""
    parameters: tuple[tuple[str, str], ...]
    """Those that root can change, and their values."""
    devices: tuple[Device, ...]


def read(node: Node) -> LoadedDriver | None:
    """Return what is loaded, None if nothing is. Raises TestbedError when the host is silent."""
    lines = node.run(["sh", "-c", _READ]).stdout.splitlines()
    sources = [match[1] for match in map(_SOURCE.fullmatch, lines) if match]
    if not sources:
        return None
    parameters = [(m[1], m[2]) for m in map(_PARAMETER.fullmatch, lines) if m]
    v1 = {match[1] for match in map(_V1.fullmatch, lines) if match}
    parents = [match for match in map(_PARENT.fullmatch, lines) if match]
    devices = sorted((match[1], match[2], match[1] in v1) for match in parents)
    return LoadedDriver(
        sources[0], tuple(sorted(parameters)), tuple(Device(*device) for device in devices)
    )


def source_of(node: Node, module: str) -> str:
    """Return the srcversion of a module's file, or of the one that modprobe takes for a name."""
    done = node.run(["env", SBIN, "modinfo", "-F", "srcversion", module], check=False)
    return done.stdout.strip()


def borrow(node: Node) -> LoadedDriver:
    """Return what is loaded, if it may be exchanged for a while and be brought back.

    Raises TestbedError if somebody uses it, or if modprobe would load another one.
    """
    now = read(node)
    if now is None or now.source != source_of(node, "rdma_rxe"):
        raise TestbedError(
            f"the rdma_rxe of {node.name} could not be brought back",
            cause="it is not the one that modprobe loads: it was loaded by hand, or replaced since",
            action="Run `rocelab hosts prepare`, which loads the one that it installs.",
        )
    if users := _users(node, now.devices):
        raise TestbedError(
            f"rdma_rxe on {node.name} is in use",
            cause=f"by {users}, which would lose their connections",
            action="Stop them, or measure when they have ended.",
        )
    return now


def _users(node: Node, devices: Sequence[Device]) -> str:
    """Name who uses the devices or the module; empty if nobody does."""
    if named := users(node, {device.name for device in devices}):
        return named
    references = node.run(["cat", f"{MODULE}/refcnt"], check=False).stdout.strip()
    return "" if references in ("", "0") else "programs that have a device or its events open"


def users(node: Node, devices: set[str]) -> str:
    """Name the programs that have the devices open; empty if there are none."""
    programs: dict[str, None] = {}
    # a program has a context from when it opens a device
    for kind in ("qp", "cm_id", "ctx"):
        listing = node.root.run(["rdma", "-j", "resource", "show", kind], check=False).stdout
        programs |= dict.fromkeys(owners(listing, devices))
    named = list(programs)[:_MAX_NAMED]
    return ", ".join(named + ["…"] * (len(programs) > len(named)))


def owners(listing: str, devices: set[str]) -> Iterator[str]:
    """Yield who owns what is in a listing of `rdma -j resource show`."""
    try:
        listed = json_text.parse_any(listing or "[]")
    except ValueError:
        listed = None
    if not isinstance(listed, list):
        yield "somebody that `rdma resource show` does not name"
        return
    for one in listed:
        if not isinstance(one, dict) or one.get("ifname") not in devices:
            continue
        if one.get("type") in _OWN_QPS:
            continue
        name = re.sub(r"[^!-~]", "?", str(one.get("comm", "?")))[:32]
        pid = one.get("pid")
        yield f"{name} (process {pid})" if isinstance(pid, int) else f"the kernel's {name}"
