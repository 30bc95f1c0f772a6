# SPDX-License-Identifier: GPL-2.0-or-later
"""What decides a measurement on a machine apart from its software: processors, bus, link, adapter.

One command reads all of it. A setting that a machine does not have is absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocelab.testbed.node import DataLink
from rocelab.testbed.verbs_ports import VerbsPort

LINK_SPEED = "link speed"
# Each fact of ethtool and dcb follows a line `== NAME`; the others are `path:value`.
_SCRIPT = """
netdev=$1 device=$2 port=$3
cd /sys/devices/system/cpu && grep -Hs '' cpu[0-9]*/cpufreq/scaling_governor \\
	intel_pstate/no_turbo cpufreq/boost smt/active cpuidle/current_driver \\
	cpu0/cpuidle/state*/name cpu0/cpuidle/state*/disable vulnerabilities/*
cd /sys/class/net && grep -Hs '' "$netdev/speed" "$netdev/duplex" "$netdev/device/numa_node" \\
	"$netdev/device/current_link_speed" "$netdev/device/current_link_width" \\
	"$netdev/device/max_link_speed" "$netdev/device/max_link_width" \\
	"$netdev/ecn/roce_np/enable/"* "$netdev/ecn/roce_rp/enable/"*
for irq in "/sys/class/net/$netdev/device/msi_irqs/"*; do
	grep -Hs '' "/proc/irq/${irq##*/}/smp_affinity_list"
done
[ -z "$device" ] || { cd /sys/class/infiniband && grep -Hs '' "$device/device/numa_node" \\
	"$device/fw_ver" "$device/ports/$port/rate"; }
echo "== fec" && ethtool --show-fec "$netdev" 2>/dev/null
echo "== pause" && ethtool -a "$netdev" 2>/dev/null
echo "== driver" && ethtool -i "$netdev" 2>/dev/null
echo "== pfc" && dcb pfc show dev "$netdev" prio-pfc 2>/dev/null
echo "== trust" && dcb app show dev "$netdev" dscp-prio 2>/dev/null
"""
_SYSFS = re.compile(r"(?P<path>[A-Za-z0-9_./:-]{1,120}?):(?P<value>[^\n]{1,160})")
_CPU = re.compile(r"cpu\d+/cpufreq/scaling_governor")
_STATE = re.compile(r"cpu0/cpuidle/state(\d{1,2})/(name|disable)")
_IRQ = re.compile(r"/proc/irq/\d+/smp_affinity_list")


def command(link: DataLink, port: VerbsPort | None) -> tuple[str, ...]:
    """Return the command whose output `parse` reads."""
    device, number = (port.device, str(port.port)) if port else ("", "1")
    return ("sh", "-c", _SCRIPT, "sh", link.netdev, device, number)


def parse(listing: str) -> dict[str, str]:
    """Return the settings by name, as text. Skips lines that are not `command`'s."""
    head, *sections = re.split(r"^== ", listing, flags=re.MULTILINE)
    lines = (_SYSFS.fullmatch(line) for line in head.splitlines())
    sysfs = {line["path"]: line["value"].strip() for line in lines if line}
    named = {name.strip(): text for name, _, text in (part.partition("\n") for part in sections)}
    return {
        name: value
        for name, value in (*_processors(sysfs), *_interface(sysfs), *_tool_settings(named))
        if value
    }


def _processors(sysfs: dict[str, str]) -> Iterator[tuple[str, str]]:
    yield "governor", _all(sysfs, _CPU)
    no_turbo, boost = sysfs.get("intel_pstate/no_turbo"), sysfs.get("cpufreq/boost")
    if no_turbo is not None or boost is not None:
        yield "turbo", "on" if no_turbo == "0" or boost == "1" else "off"
    yield "SMT", {"1": "on", "0": "off"}.get(sysfs.get("smt/active", ""), "")
    states: dict[int, dict[str, str]] = {}
    for path, value in sysfs.items():
        if match := _STATE.fullmatch(path):
            states.setdefault(int(match[1]), {})[match[2]] = value
    yield (
        "C-states",
        ", ".join(
            state.get("name", "?")
            for _, state in sorted(states.items())
            if state.get("disable", "0") == "0"
        ),
    )
    yield "C-state driver", sysfs.get("cpuidle/current_driver", "")
    for path, value in sorted(sysfs.items()):
        if path.startswith("vulnerabilities/") and value != "Not affected":
            yield f"mitigation {path.removeprefix('vulnerabilities/')}", value


def _interface(sysfs: dict[str, str]) -> Iterator[tuple[str, str]]:
    by_end = {path.partition("/")[2]: value for path, value in sysfs.items()}
    speed = by_end.get("speed", "")
    # -1 is a virtual interface's, or of one that is down
    yield LINK_SPEED, f"{speed} Mbit/s" if speed.isdecimal() else ""
    yield "duplex", by_end.get("duplex", "") if speed.isdecimal() else ""
    node = by_end.get("device/numa_node", "")
    yield "NUMA node of the adapter", node if node.isdecimal() else ""
    now, most = (
        " x".join(
            by_end.get(f"device/{which}_link_{quantity}", "") for quantity in ("speed", "width")
        )
        for which in ("current", "max")
    )
    if now != " x":
        yield "PCIe", now if now == most else f"{now} (of {most})"
    yield "port rate", next((v for p, v in sysfs.items() if re.search(r"/ports/\d+/rate$", p)), "")
    yield "device firmware", next((v for p, v in sysfs.items() if p.endswith("/fw_ver")), "")
    yield "interrupts' processors", _all(sysfs, _IRQ)
    for which, name in (("np", "ECN notification point"), ("rp", "ECN reaction point")):
        enabled = {
            path.rpartition("/")[2]: value
            for path, value in sysfs.items()
            if f"/ecn/roce_{which}/enable/" in path
        }
        yield name, ", ".join(sorted(prio for prio, value in enabled.items() if value == "1"))


def _tool_settings(sections: dict[str, str]) -> Iterator[tuple[str, str]]:
    """What ethtool and dcb print."""
    for section, label, name in (
        ("fec", r"Active FEC encodings?", "FEC"),
        ("pause", "RX", "pause, received"),
        ("pause", "TX", "pause, sent"),
        ("driver", "firmware-version", "firmware"),
    ):
        match = re.search(rf"^{label}:[ \t]*(\S[^\n]*)$", sections.get(section, ""), re.MULTILINE)
        yield name, match[1].strip()[:80] if match else ""
    for section, name in (("pfc", "PFC"), ("trust", "DSCP priorities")):
        yield name, " ".join(sections.get(section, "").split())[:160]


def _all(sysfs: dict[str, str], pattern: re.Pattern[str]) -> str:
    """The values of all such paths, each once."""
    values = {value for path, value in sysfs.items() if pattern.fullmatch(path)}
    return ", ".join(sorted(values, key=lambda value: (len(value), value)))[:160]
