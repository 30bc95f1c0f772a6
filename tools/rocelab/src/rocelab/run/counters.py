# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters of a node's driver and interface, read in one command, and their differences."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rocelab.errors import CellError
from rocelab.node import Node
from rocelab.run.shaping import dropped
from rocelab.run.verbs import VerbsPort

_LINE = re.compile(r"^/sys/class/(infiniband|net)/.*/([a-z0-9_]{1,64}):(-?\d{1,20})$")
# hw_counters holds the driver's counters and one setting
_SETTINGS = frozenset({"lifespan"})


@dataclass(frozen=True)
class Counters:
    """Counters by name, of the verbs device (if there is one) and of the interface."""

    rxe: Mapping[str, int]
    netdev: Mapping[str, int]
    link: Mapping[str, int] = field(default_factory=dict)
    """`dropped`: packets that a plan's link threw away before the wire; empty: it is not shaped."""

    @property
    def dropped(self) -> int:
        """Packets that never came to the wire because the plan says so."""
        return self.link.get("dropped", 0)

    def as_json(self) -> dict[str, dict[str, int]]:
        """For cell.json; a group that is not there is left out."""
        groups = {"rxe": self.rxe, "netdev": self.netdev, "link": self.link}
        return {name: dict(of) for name, of in groups.items() if of or name != "link"}

    def since(self, before: Counters) -> Counters:
        """How far each counter moved. Raises CellError when one went back (a reloaded driver)."""
        return Counters(
            _moved(before.rxe, self.rxe),
            _moved(before.netdev, self.netdev),
            _moved(before.link, self.link),
        )


def command(netdev: str, port: VerbsPort | None) -> tuple[str, ...]:
    """The command whose output `parse` reads."""
    paths = [f"/sys/class/net/{netdev}/statistics"]
    if port is not None:
        paths.append(f"/sys/class/infiniband/{port.device}/ports/{port.port}/hw_counters")
    # -r follows a path given here through its symbolic link; -s keeps quiet about unreadable ones
    return ("grep", "-rs", "", *paths)


def parse(listing: str) -> Counters:
    """Counters from lines `path:value`; other lines are left out."""
    found: dict[str, dict[str, int]] = {"infiniband": {}, "net": {}}
    for line in listing.splitlines():
        match = _LINE.match(line)
        if match is not None and match[2] not in _SETTINGS:
            found[match[1]][match[2]] = int(match[3])
    return Counters(rxe=found["infiniband"], netdev=found["net"])


def read(node: Node, port: VerbsPort | None, *, is_shaped: bool = False) -> Counters:
    """Counters of a node's data interface and verbs port, now. Raises CellError."""
    # grep says 2 when any file could not be read, so what it found is judged instead
    done = node.run(command(node.link.netdev, port), check=False)
    counters = parse(done.stdout)
    if not counters.netdev or (port is not None and "sent_pkts" not in counters.rxe):
        raise CellError(
            f"{node.name} shows no counters of {port.device if port else node.link.netdev}",
            cause=done.stderr.strip()[-200:] or "the device is gone",
            action=f"On {node.name}, look at `rdma link` and `ip link`.",
        )
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
