# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters of a node's driver and interface, read in one command, and their differences."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rocelab.bench.catalog import Maker
from rocelab.errors import CellError
from rocelab.node import Node
from rocelab.run import adapter
from rocelab.run.shaping import dropped
from rocelab.run.verbs import VerbsPort

_LINE = re.compile(
    r"^/sys/class/(?:net/[^/]+|infiniband/[^/]+/ports/\d+)/(statistics|hw_counters|counters)/"
    r"([A-Za-z0-9_]{1,64}):(-?\d{1,20})$"
)
# hw_counters holds the driver's counters and one setting
_SETTINGS = frozenset({"lifespan"})


@dataclass(frozen=True)
class Counters:
    """Counters by name, of the verbs device (if there is one) and of the interface."""

    rxe: Mapping[str, int]
    netdev: Mapping[str, int]
    link: Mapping[str, int] = field(default_factory=dict)
    """`dropped`: packets that a plan's link threw away before the wire; empty: it is not shaped."""
    adapter: Mapping[str, int] = field(default_factory=dict)
    """All counters of a device that is not ours: `hw.…`, `port.…` and `ethtool.…`."""

    @property
    def dropped(self) -> int:
        """Packets that never came to the wire because the plan says so."""
        return self.link.get("dropped", 0)

    def as_json(self) -> dict[str, dict[str, int]]:
        """For cell.json; a group that is not there is left out."""
        always = {"rxe": dict(self.rxe), "netdev": dict(self.netdev)}
        others = {"link": dict(self.link), "adapter": dict(self.adapter)}
        return always | {name: of for name, of in others.items() if of}

    def since(self, before: Counters) -> Counters:
        """How far each counter moved. Raises CellError when one went back (a reloaded driver)."""
        return Counters(
            _moved(before.rxe, self.rxe),
            _moved(before.netdev, self.netdev),
            _moved(before.link, self.link),
            adapter.since(before.adapter, self.adapter),
        )


def command(netdev: str, port: VerbsPort | None) -> tuple[str, ...]:
    """The command whose output `parse` reads."""
    paths = [f"/sys/class/net/{netdev}/statistics"]
    if port is not None:
        base = f"/sys/class/infiniband/{port.device}/ports/{port.port}"
        paths += [f"{base}/hw_counters", f"{base}/counters"]
    # -r follows a path given here through its symbolic link; -s keeps quiet about unreadable ones
    return ("grep", "-rs", "", *paths)


def parse(listing: str) -> Counters:
    """Counters from lines `path:value`; other lines, as of counters without a value, are left out.

    The driver's own are taken for rxe's; all of a device's are in `adapter`, too.
    """
    found: dict[str, dict[str, int]] = {"statistics": {}, "hw_counters": {}, "counters": {}}
    for line in listing.splitlines():
        match = _LINE.match(line)
        if match is not None and match[2] not in _SETTINGS:
            found[match[1]][match[2]] = int(match[3])
    hw, of_port = found["hw_counters"], found["counters"]
    every = {f"hw.{name}": value for name, value in hw.items()}
    every |= {f"port.{name}": value for name, value in of_port.items()}
    return Counters(rxe=hw, netdev=found["statistics"], adapter=every)


def read(
    node: Node, port: VerbsPort | None, *, is_shaped: bool = False, by: Maker = "rxe"
) -> Counters:
    """Counters of a node's data interface and verbs port, now. Raises CellError.

    `by`: who makes the packets of the cell, and so which counters must be there.
    """
    # grep says 2 when any file could not be read, so what it found is judged instead
    done = node.run(command(node.link.netdev, port), check=False)
    counters = parse(done.stdout)
    lacks = by == "rxe" and port is not None and "sent_pkts" not in counters.rxe
    if not counters.netdev or lacks:
        raise CellError(
            f"{node.name} shows no counters of {port.device if port else node.link.netdev}",
            cause=done.stderr.strip()[-200:] or "the device is gone",
            action=f"On {node.name}, look at `rdma link` and `ip link`.",
        )
    if by == "adapter":
        said = node.root.run(("ethtool", "-S", node.link.netdev), check=False).stdout
        of_nic = {f"ethtool.{n}": v for n, v in adapter.ethtool_statistics(said).items()}
        counters = replace(counters, rxe={}, adapter={**counters.adapter, **of_nic})
    else:
        counters = replace(counters, adapter={})
    return replace(counters, link={"dropped": dropped(node)}) if is_shaped else counters


def _moved(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    moved = {name: value - before[name] for name, value in after.items() if name in before}
    for name, difference in moved.items():
        if difference < 0:
            raise CellError(
                f"counter {name} went back by {-difference}",
                cause="the device was made anew while the benchmark ran",
            )
    return moved
