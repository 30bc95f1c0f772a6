# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the counters of a node's driver and interface with one command, and subtract them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from rocelab.errors import CellError
from rocelab.plans.catalog import Maker
from rocelab.record import adapter
from rocelab.testbed.node import Node
from rocelab.testbed.shaping import drop_count
from rocelab.testbed.verbs_ports import VerbsPort

_LINE = re.compile(
    r"^/sys/class/(?:net/[^/]+|infiniband/[^/]+/ports/\d+)/(statistics|hw_counters|counters)/"
    r"([A-Za-z0-9_]{1,64}):(-?\d{1,20})$"
)
# hw_counters contains the driver's counters and one setting
_SETTINGS = frozenset({"lifespan"})
_SNMP = "/proc/net/snmp"
_TCP = f"{_SNMP}:Tcp: "
# Linux, Documentation/networking/snmp_counter.rst; RFC 4022 has the others of the line
_SEGMENTS = frozenset({"InSegs", "OutSegs", "RetransSegs"})
# where plain users' PATH lacks the folder of the administrator's programs
_ETHTOOL = ("sh", "-c", 'PATH=$PATH:/usr/sbin:/sbin; exec ethtool -S "$1"', "sh")


@dataclass(frozen=True)
class Counters:
    """Counters by name, of the interface and of the verbs device, if there is one."""

    rxe: Mapping[str, int]
    netdev: Mapping[str, int]
    link: Mapping[str, int] = field(default_factory=dict)
    """`dropped`: packets that the interface's queueing discipline dropped; empty if not read."""
    adapter: Mapping[str, int] = field(default_factory=dict)
    """All counters of a device that is not rxe: `hw.…`, `port.…` and `ethtool.…`."""
    tcp: Mapping[str, int] = field(default_factory=dict)
    """Segments of the whole node; empty where a capture shows the benchmark's, except for iWARP,
    whose soft devices count nothing."""

    @property
    def dropped(self) -> int:
        """Packets that never reached the wire: the sender's queueing discipline dropped them."""
        return self.link.get("dropped", 0)

    def as_json(self) -> dict[str, dict[str, int]]:
        """Return the counters for cell.json, without the empty optional groups."""
        always = {"rxe": dict(self.rxe), "netdev": dict(self.netdev)}
        others = {"link": dict(self.link), "adapter": dict(self.adapter), "tcp": dict(self.tcp)}
        return always | {name: values for name, values in others.items() if values}

    def since(self, before: Counters) -> Counters:
        """Return each counter's increase. Raises CellError if one decreased (driver reloaded)."""
        return Counters(
            _increases(before.rxe, self.rxe),
            _increases(before.netdev, self.netdev),
            _increases(before.link, self.link),
            adapter.since(before.adapter, self.adapter),
            _increases(before.tcp, self.tcp),
        )


def command(netdev: str, port: VerbsPort | None, *, segments: bool = False) -> tuple[str, ...]:
    """Return the command whose output `parse` reads, with TCP's `segments` if asked."""
    paths = [f"/sys/class/net/{netdev}/statistics", *([_SNMP] if segments else [])]
    if port is not None:
        base = f"/sys/class/infiniband/{port.device}/ports/{port.port}"
        paths += [f"{base}/hw_counters", f"{base}/counters"]
    # -r follows symbolic links given as arguments; -s suppresses errors about unreadable files
    return ("grep", "-rs", "", *paths)


def parse(listing: str) -> Counters:
    """Parse lines `path:value`; skip others, such as those of counters without a value.

    The device's hw_counters go into `rxe`, and all of its counters also into `adapter`.
    """
    groups: dict[str, dict[str, int]] = {"statistics": {}, "hw_counters": {}, "counters": {}}
    for line in listing.splitlines():
        match = _LINE.match(line)
        if match is not None and match[2] not in _SETTINGS:
            groups[match[1]][match[2]] = int(match[3])
    hw, port = groups["hw_counters"], groups["counters"]
    device = {f"hw.{name}": value for name, value in hw.items()}
    device |= {f"port.{name}": value for name, value in port.items()}
    return Counters(
        rxe=hw, netdev=groups["statistics"], adapter=device, tcp=_segments(listing.splitlines())
    )


def _segments(listing: Iterable[str]) -> dict[str, int]:
    """Parse the two lines on TCP, of names and of values, from what /proc/net/snmp says."""
    lines = [line.removeprefix(_TCP).split() for line in listing if line.startswith(_TCP)]
    if len(lines) != 2 or len(lines[0]) != len(lines[1]):
        return {}
    named = zip(*lines, strict=True)
    return {name: int(value) for name, value in named if name in _SEGMENTS and value.isdecimal()}


def read(
    node: Node,
    port: VerbsPort | None,
    *,
    by: Maker = "rxe",
    segments: bool = False,
) -> Counters:
    """Read the counters of a node's data interface and verbs port. Raises CellError.

    `by` says what makes the cell's packets, and so which counters must exist. TCP's `segments` are
    read where asked, and where there is no root to capture those of the benchmark.
    """
    # grep fails if it cannot read a single file, so we check its output instead
    listed = command(node.link.netdev, port, segments=segments or not node.has_root)
    done = node.run(listed, check=False)
    counters = parse(done.stdout)
    lacks = by == "rxe" and port is not None and "sent_pkts" not in counters.rxe
    if not counters.netdev or lacks:
        raise CellError(
            f"{node.name} has no counters of {port.device if port else node.link.netdev}",
            cause=done.stderr.strip()[-200:] or "the device was removed",
            action=f"On {node.name}: look at `rdma link` and `ip link`.",
        )
    if by == "adapter":
        listing = node.run((*_ETHTOOL, node.link.netdev), check=False).stdout
        nic = {f"ethtool.{n}": v for n, v in adapter.ethtool_statistics(listing).items()}
        counters = replace(counters, rxe={}, adapter={**counters.adapter, **nic})
    else:
        counters = replace(counters, adapter={})
    return counters


def with_drops(counters: Counters, node: Node, *, is_shaped: bool) -> Counters:
    """Add what a node's queueing discipline has dropped. Raises CellError; see `drop_count`."""
    dropped = drop_count(node, is_shaped=is_shaped)
    return counters if dropped is None else replace(counters, link={"dropped": dropped})


def _increases(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    moved = {name: value - before[name] for name, value in after.items() if name in before}
    for name, difference in moved.items():
        if difference < 0:
            raise CellError(
                f"counter {name} decreased by {-difference}",
                cause="the device was recreated while the benchmark ran",
                action="Run it again, and leave the devices and the driver alone meanwhile.",
            )
    return moved
