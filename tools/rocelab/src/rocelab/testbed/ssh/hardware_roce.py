# SPDX-License-Identifier: GPL-2.0-or-later
"""Refuse Soft RoCE on an interface whose adapter takes the packets of RoCE v2 for itself.

While RoCE is on, mlx5 gives what arrives for UDP port 4791 to its own queue pairs; rxe receives
nothing. Linux, Documentation/networking/devlink/mlx5.rst, `enable_roce`: "When RoCE is disabled,
there is no gid table, only raw ethernet QP is supported and traffic on the well-known UDP RoCE
port is handled as raw ethernet traffic."
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rocelab import json_text
from rocelab.errors import TestbedError
from rocelab.testbed import verbs_ports
from rocelab.testbed.gid import gids_of
from rocelab.testbed.node import Node

_TAKES_PORT_4791 = "mlx5_core"
# the interface, then those below it: of a VLAN, of a bond
FUNCTIONS = (
    "sh",
    "-c",
    """
walk() {
	base=/sys/class/net/$1
	if [ -e "$base/device" ]; then
		device=$(readlink -f "$base/device")
		echo "$1 $(basename "$(readlink "$device/subsystem")")/${device##*/}" \\
			"$(basename "$(readlink "$device/driver")")"
	fi
	for lower in "$base"/lower_*; do
		[ ! -e "$lower" ] || walk "${lower##*/lower_}"
	done
}
walk "$1"
""",
    "sh",
)
"""With an interface, the command whose output `functions` reads."""
_FUNCTION = re.compile(
    r"(?P<netdev>[A-Za-z0-9_.:-]{1,15}) (?P<handle>[a-z]{1,16}/[A-Za-z0-9_.:-]{1,40}) "
    r"(?P<driver>[A-Za-z0-9_-]+)"
)


@dataclass(frozen=True)
class Function:
    """A function of an adapter, such as a PCI device."""

    netdev: str
    handle: str
    """As devlink(8) names it: `pci/0000:03:00.0`."""
    driver: str


def functions(listing: str) -> tuple[Function, ...]:
    """Parse the output of `FUNCTIONS`; skip other lines."""
    matches = (_FUNCTION.fullmatch(line) for line in listing.splitlines())
    return tuple(Function(**match.groupdict()) for match in matches if match)


def is_switched_off(parameter: str) -> bool:
    """Whether the output of `devlink -j dev param show … enable_roce` says false."""
    try:
        devices: Mapping[str, list[Mapping[str, list[Mapping[str, object]]]]]
        devices = json_text.parse_any(parameter)["param"]
        return any(
            value.get("value") is False
            for parameters in devices.values()
            for each in parameters
            for value in each["values"]
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def refuse(node: Node) -> None:
    """Raise TestbedError when rxe on the node's data interface would receive nothing."""
    netdev = node.link.netdev
    listed = functions(node.run((*FUNCTIONS, netdev), check=False).stdout)
    taking = [each for each in listed if each.driver == _TAKES_PORT_4791]
    if not taking or not _has_gids(node):
        return
    reload = [f"devlink dev reload {each.handle}" for each in taking]
    commands = []
    for each, then in zip(taking, reload, strict=True):
        asked = ("devlink", "-j", "dev", "param", "show", each.handle, "name", "enable_roce")
        if not is_switched_off(node.root.run(asked, check=False).stdout):
            commands.append(
                f"devlink dev param set {each.handle} name enable_roce value false cmode driverinit"
            )
        commands.append(then)
    raise TestbedError(
        f"rxe on {netdev} of {node.name} would receive nothing",
        cause=f"its adapter ({_TAKES_PORT_4791}) has RoCE on, and takes what arrives for UDP port "
        "4791 for itself",
        action=f"On {node.name}, as root: `{' && '.join(commands)}` (hw-* cannot use that port "
        "then), or name another interface in the inventory: transport.rxe = { netdev = … }.",
    )


def _has_gids(node: Node) -> bool:
    """Whether an adapter's port on the interface has a GID of RoCE v2: then RoCE is on."""
    ports = verbs_ports.find(node)
    return any(
        gid.type == "RoCE v2"
        for port in ports.adapters
        if port != ports.soft
        for gid in gids_of(node, port.device, port.port)
    )
