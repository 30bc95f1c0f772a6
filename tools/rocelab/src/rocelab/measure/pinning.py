# SPDX-License-Identifier: GPL-2.0-or-later
"""Keep a benchmark's processes on the processors of their adapter's NUMA node.

A process on another node pays for each access to the adapter and to what it wrote, and the
scheduler places it anew in each run. taskset(1) suffices: Linux gives a process memory of the node
that it runs on.
"""

from __future__ import annotations

import re

from rocelab.testbed.node import Node

_CPUS = re.compile(r"\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*")
# An interface without a device, such as a VLAN or a bond, is on others. The device may be on a bus
# of its own, as virtio's is: then the nearest one above it is on PCI.
_SCRIPT = """
sys=$1 netdev=$2 verbs=$3
for top in ${verbs:+"$sys/class/infiniband/$verbs"} "$sys/class/net/$netdev" \\
	"$sys/class/net/$netdev"/lower_*; do
	at=$(readlink -f "$top/device") || continue
	while [ "${at#"$sys"/}" != "$at" ]; do
		[ ! -s "$at/local_cpulist" ] || break 2
		at=${at%/*}
	done
	at=
done
[ -n "$at" ] && cat "$at/local_cpulist" "$sys/devices/system/cpu/online"
"""


def command(netdev: str, device: str, sysfs: str = "/sys") -> tuple[str, ...]:
    """Return the command whose output `parse` reads; `device`: a verbs device that is no rxe."""
    return ("sh", "-c", _SCRIPT, "sh", sysfs, netdev, device)


def parse(listing: str) -> str:
    """Return the list of processors near the adapter; empty if those are all, or not known."""
    lines = listing.split()
    if len(lines) != 2 or not all(map(_CPUS.fullmatch, lines)):
        return ""
    near, online = lines
    return "" if near == online else near


def near(node: Node, device: str) -> str:
    """Return the processors near a node's data interface or its verbs device, as `parse` does."""
    return parse(node.run(command(node.link.netdev, device), check=False).stdout)


def on(cpus: str) -> tuple[str, ...]:
    """Return what precedes a command so that it runs on these processors; nothing for all."""
    return ("taskset", "--cpu-list", cpus) if cpus else ()
