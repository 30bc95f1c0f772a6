# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the verbs ports of a node: which devices there are, on which interfaces, of which kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rocelab import json_text
from rocelab.errors import CellError
from rocelab.plans.catalog import Transport
from rocelab.testbed.node import Node
from rocelab.testbed.node.endpoint import Endpoint
from rocelab.testbed.node.outputs import outputs

_DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,63}")
LINKS = ("rdma", "-j", "link", "show")
"""The command whose output `on_interfaces` reads."""
# `ndevs` has the interface of each GID: of a VLAN or a bond, too, which `rdma link` does not name.
# Empty entries of the table cannot be read: hence -s. Of rxe, `parent` is all: its table has 1,024.
SYSFS = (
    "sh",
    "-c",
    """cd /sys/class/infiniband 2>/dev/null && for device in *; do
    set -- "$device"/parent
    [ -e "$1" ] || set -- "$device"/ports/*/gid_attrs/ndevs/*
    grep -Hs '' "$device"/node_type "$device"/ports/*/link_layer "$@"
done""",
)
"""The command whose output `Sysfs.parse` reads."""
_SYSFS_LINE = re.compile(
    r"(?P<device>[A-Za-z0-9_.-]{1,63})/(?:(?P<of>parent|node_type)|ports/(?P<port>\d{1,3})/"
    r"(?P<what>link_layer|gid_attrs/ndevs/\d{1,5})):(?P<value>[A-Za-z0-9_.: -]{1,32})"
)
_RNIC = "4: RNIC"
IWARP = "iWARP"


@dataclass(frozen=True)
class VerbsPort:
    """A port of a verbs device."""

    device: str
    port: int
    link_layer: str = field(default="", compare=False)
    """As in sysfs: `Ethernet`, `InfiniBand`, or `Unspecified`, as EFA's. `iWARP` for an adapter
    (RNIC) that speaks this and no RoCE over its Ethernet."""


@dataclass(frozen=True)
class Sysfs:
    """What /sys/class/infiniband says about a node's devices."""

    soft: frozenset[str]
    """rxe devices: only they have the attribute `parent`."""
    link_layers: Mapping[tuple[str, int], str]
    netdevs: Mapping[tuple[str, int], frozenset[str]]
    """The interfaces of each port's GIDs."""

    @classmethod
    def parse(cls, listing: str) -> Sysfs:
        """Parse the output of `SYSFS`; skip other lines."""
        soft: set[str] = set()
        iwarp: set[str] = set()
        layers: dict[tuple[str, int], str] = {}
        netdevs: dict[tuple[str, int], frozenset[str]] = {}
        for line in listing.splitlines():
            match = _SYSFS_LINE.fullmatch(line)
            if match is None:
                continue
            if match["of"] == "parent":
                soft.add(match["device"])
            elif match["value"] == _RNIC:
                iwarp.add(match["device"])
            if match["of"]:
                continue
            key = match["device"], int(match["port"])
            if match["what"] == "link_layer":
                layers[key] = match["value"]
            else:
                netdevs[key] = netdevs.get(key, frozenset()) | {match["value"]}
        layers |= {key: IWARP for key in layers if key[0] in iwarp}
        return cls(frozenset(soft), layers, netdevs)


def on_interfaces(listing: str) -> dict[tuple[str, int], str]:
    """Return the interface of each port, empty for none, from the output of `LINKS`.

    Raises ValueError when the output is not a JSON list.
    """
    links = json_text.parse_any(listing)
    if not isinstance(links, list):
        raise ValueError("not a list")
    interfaces: dict[tuple[str, int], str] = {}
    for link in links:
        if not isinstance(link, dict):
            continue
        name, port = link.get("ifname"), link.get("port")
        # goes into paths and command lines: accept only valid device names
        if isinstance(name, str) and _DEVICE.fullmatch(name) and isinstance(port, int):
            interfaces[name, port] = str(link.get("netdev", ""))
    return interfaces


@dataclass(frozen=True)
class Ports:
    """A node's verbs ports for the data link."""

    soft: VerbsPort | None = None
    """The port of its rxe device."""
    adapters: tuple[VerbsPort, ...] = ()
    """The ports of other devices, the best choice first; if there are none, of the rxe device,
    which may run the stock driver."""

    def of(self, transport: Transport) -> VerbsPort | None:
        """Return the port that makes a transport's packets; None if the node has no such port.

        Of an adapter whose ports differ, as mlx4's may, it is the first of the transport's kind.
        """
        if transport.by != "adapter":
            return self.soft
        fit = (port for port in self.adapters if port.link_layer == transport.link_layer)
        return next(fit, next(iter(self.adapters), None))


def find(node: Node) -> Ports:
    """Find the ports on a node's data interface and of the device that the inventory names."""
    listed, devices = outputs(node, (LINKS, SYSFS))
    try:
        links = on_interfaces(listed)
    except ValueError:
        return Ports()
    named = node.adapter if isinstance(node, Endpoint) else ""
    number = node.adapter_port if isinstance(node, Endpoint) else 0
    return choose(
        links,
        Sysfs.parse(devices),
        node.link.netdev,
        device=named,
        port=number,
    )


def choose(
    links: Mapping[tuple[str, int], str],
    sysfs: Sysfs,
    netdev: str,
    *,
    device: str = "",
    port: int = 0,
) -> Ports:
    """Choose the ports on an interface, and of `device`, if given (and only its `port`, if not 0).

    A device that is named comes alone: InfiniBand's can only be found so, because no interface is
    theirs. Of several ports, those on the interface come first.
    """

    def is_on_it(key: tuple[str, int]) -> bool:
        return links[key] == netdev or netdev in sysfs.netdevs.get(key, ())

    def is_named(key: tuple[str, int]) -> bool:
        return key[0] == device and port in (0, key[1])

    def port_of(key: tuple[str, int]) -> VerbsPort:
        return VerbsPort(*key, sysfs.link_layers.get(key, ""))

    soft = [key for key in links if key[0] in sysfs.soft and links[key] == netdev]
    others = [
        key
        for key in links
        if (is_named(key) if device else is_on_it(key) and key[0] not in sysfs.soft)
    ]
    others.sort(key=lambda key: not is_on_it(key))
    chosen = others or ([] if device else soft)
    return Ports(port_of(soft[0]) if soft else None, tuple(map(port_of, chosen)))


def check_kind(node: Node, port: VerbsPort, transport: Transport) -> None:
    """Raise CellError when a port is of another kind than the transport's name says."""
    if port.link_layer == transport.link_layer:
        return
    key = "rxe" if transport.is_rxe else transport.name
    raise CellError(
        f"port {port.port} of {port.device} on {node.name} is no port for {transport.name}: its "
        f"link layer is {port.link_layer or 'unknown'}, not {transport.link_layer}",
        cause="the inventory names another device, or a port that is set to the other kind",
        action=f"Name the right one in the inventory: transport.{key} = "
        '{ device = "…", port = … }; `ibv_devinfo` lists them.',
    )
