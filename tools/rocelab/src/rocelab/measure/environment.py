# SPDX-License-Identifier: GPL-2.0-or-later
"""Describe each node for run.json: hardware, kernel, driver, settings, packages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from rocelab import json_text
from rocelab.measure import machine_settings
from rocelab.testbed import verbs_ports
from rocelab.testbed.node import Node
from rocelab.testbed.node.outputs import outputs
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.verbs_ports import VerbsPort

SYSCTLS = (
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.netdev_budget",
    "net.core.default_qdisc",
    "kernel.perf_event_paranoid",
    "kernel.bpf_stats_enabled",
)
PACKAGES = (
    *("perftest", "qperf", "iperf3", "rdma-core", "libibverbs1", "ibverbs-providers"),
    *("iproute2", "ethtool", "rdmacm-utils", "vsftpd", "curl", "fio"),
    *("ucx-utils", "libfabric-bin"),
)
_DPKG = r"""exec dpkg-query -W -f '${Package}\t${Version}\n' "$@" "linux-image-$(uname -r)" """
_INTERRUPTS = {"-c": "coalescing", "-l": "channels", "-g": "rings"}
"""ethtool's options and the groups of settings that they show."""
_MODULE = "/sys/module/rdma_rxe"
_TIMEOUT = 300


def describe(nodes: Sequence[Node]) -> dict[str, dict[str, Any]]:
    """Describe every node, by name (docs/formats/run.md); what cannot be read is None."""
    return dict(zip((node.name for node in nodes), at_once(_node, nodes), strict=True))


def _node(node: Node) -> dict[str, Any]:
    ports = verbs_ports.find(node)
    soft, adapter = ports.soft, next((p for p in ports.adapters if p != ports.soft), None)
    netdev = node.link.netdev
    commands: dict[str, Sequence[str]] = {
        "kernel": ("uname", "-rv"),
        "cpu": ("cat", "/proc/cpuinfo"),
        "module": ("grep", "-rs", "", f"{_MODULE}/version", f"{_MODULE}/srcversion"),
        "path": ("modinfo", "-n", "rdma_rxe"),
        "nic": ("ethtool", "-i", netdev),
        "offloads": ("ethtool", "--json", "-k", netdev),
        "settings": machine_settings.command(node.link, next(iter(ports.adapters), None)),
        **{f"ethtool {letter}": ("ethtool", "--json", letter, netdev) for letter in _INTERRUPTS},
        "sysctls": ("sysctl", "-e", *SYSCTLS),
        "crypto": ("cat", "/proc/crypto"),
        "packages": ("sh", "-c", _DPKG, "sh", *PACKAGES),
    }
    for port in (soft, adapter):
        if port is not None:
            commands[f"driver of {port}"] = ("sh", "-c", _VERBS_DRIVER, "sh", port.device)
            commands[f"{port}"] = ("ibv_devinfo", "-d", port.device, "-i", str(port.port))
    answers = outputs(node, list(commands.values()), timeout=_TIMEOUT)
    printed = dict(zip(commands, answers, strict=True))

    def describe(port: VerbsPort | None) -> dict[str, Any] | None:
        if port is None:
            return None
        return {
            "device": port.device,
            "port": port.port,
            "driver": verbs_driver(printed[f"driver of {port}"]),
            "active_mtu": active_mtu(printed[f"{port}"]),
        }

    return {
        "kernel": printed["kernel"].strip() or None,
        "cpu": _or_none(cpu, printed["cpu"]),
        "driver": {**module_ids(printed["module"]), "path": printed["path"].strip() or None},
        "verbs": describe(soft),
        "adapter": describe(adapter),
        "nic": {
            "netdev": netdev,
            "driver": nic_driver(printed["nic"]),
            "mtu": node.link.mtu,
            "ipv4": node.link.ipv4,
            "mac": node.link.mac,
            "offloads": _or_none(offloads, printed["offloads"]),
        },
        "settings": machine_settings.parse(printed["settings"]),
        "interrupts": {
            name: value
            for letter, group in _INTERRUPTS.items()
            for name, value in settings(group, printed[f"ethtool {letter}"]).items()
        },
        "sysctls": sysctls(printed["sysctls"]),
        "crc32_drivers": crc32_drivers(printed["crypto"]),
        "packages": packages(printed["packages"]),
    }


# an adapter's driver is that of its parent device; rxe and soft iWARP have no parent device
_VERBS_DRIVER = """
link=$(readlink "/sys/class/infiniband/$1/device/driver") && echo "${link##*/}" && exit
if [ -e "/sys/class/infiniband/$1/parent" ]; then
	echo rdma_rxe
elif [ -d /sys/module/siw ] && grep -q RNIC "/sys/class/infiniband/$1/node_type"; then
	echo siw
fi
"""


def verbs_driver(output: str) -> str | None:
    """Return the driver's name, or None if it is not a valid name."""
    name = output.strip()
    return name if re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name) else None


def active_mtu(listing: str) -> int | None:
    """Parse the port's active MTU from the output of `ibv_devinfo`."""
    match = re.search(r"active_mtu:\s+(\d{3,4})", listing)
    return int(match[1]) if match else None


def settings(group: str, listing: str) -> dict[str, int | bool | str]:
    """Parse ethtool's JSON into `<group> <setting>`: value; empty if the driver lacks the group."""
    try:
        (values,) = json_text.parse_any(listing)
        return {
            f"{group} {name}": value
            for name, value in values.items()
            if name != "ifname" and isinstance(value, int | bool | str)
        }
    except (ValueError, TypeError, AttributeError):
        return {}


def cpu(cpuinfo: str) -> dict[str, Any]:
    """Parse the model and the number of CPUs from /proc/cpuinfo."""
    models = re.findall(r"^model name\s*: (.*)$", cpuinfo, re.MULTILINE)
    return {"model": models[0] if models else None, "count": len(models) or None}


def module_ids(listing: str) -> dict[str, str | None]:
    """Parse a module's `version` and `srcversion` from `grep -r ""`; missing ones are None."""
    ids: dict[str, str | None] = {"version": None, "srcversion": None}
    for line in listing.splitlines():
        path, _, value = line.partition(":")
        name = path.rpartition("/")[2]
        if name in ids:
            ids[name] = value.strip()
    return ids


def nic_driver(listing: str) -> str | None:
    """Parse the driver from the output of `ethtool -i`."""
    match = re.search(r"^driver: (\S+)$", listing, re.MULTILINE)
    return match[1] if match else None


def offloads(listing: str) -> dict[str, bool]:
    """Parse `ethtool --json -k` into name: whether on. Raises ValueError, LookupError."""
    features = json_text.parse_any(listing)[0]
    return {
        name: feature["active"]
        for name, feature in features.items()
        if isinstance(feature, dict) and isinstance(feature.get("active"), bool)
    }


def sysctls(listing: str) -> dict[str, str | None]:
    """Parse the output of `sysctl` into name: value; None where the kernel lacks the name."""
    values: dict[str, str | None] = dict.fromkeys(SYSCTLS)
    for line in listing.splitlines():
        name, separator, value = line.partition(" = ")
        if separator and name in values:
            values[name] = value.strip()
    return values


def crc32_drivers(crypto: str) -> list[str]:
    """Parse the drivers of `crc32` from /proc/crypto, the kernel's preferred one first."""
    drivers = []
    for block in crypto.split("\n\n"):
        lines = (line.partition(":") for line in block.splitlines())
        fields = {key.strip(): value.strip() for key, _, value in lines}
        if fields.get("name") == "crc32" and fields.get("priority", "").isdecimal():
            drivers.append((int(fields["priority"]), fields.get("driver", "?")))
    return [driver for _, driver in sorted(drivers, reverse=True)]


def packages(listing: str) -> dict[str, str]:
    """Parse `dpkg-query -W` into package: version; packages that are not installed are absent."""
    pairs = (line.partition("\t") for line in listing.splitlines())
    return {name: version for name, _, version in pairs if version}


def _or_none(read: Callable[[str], dict[str, Any]], text: str) -> dict[str, Any] | None:
    try:
        return read(text)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
