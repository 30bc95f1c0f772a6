# SPDX-License-Identifier: GPL-2.0-or-later
"""What decides a measurement, from the files and commands of a host with mlx5.

The listing is made after the kernel's documentation of each file, and ethtool's and dcb's formats.
"""

from __future__ import annotations

import subprocess

from hypothesis import given
from hypothesis import strategies as st

from rocelab.measure import machine_settings
from rocelab.testbed.node import DataLink
from rocelab.testbed.verbs_ports import VerbsPort

LISTING = """\
cpu0/cpufreq/scaling_governor:performance
cpu1/cpufreq/scaling_governor:powersave
intel_pstate/no_turbo:1
smt/active:1
cpuidle/current_driver:intel_idle
cpu0/cpuidle/state0/name:POLL
cpu0/cpuidle/state1/name:C1
cpu0/cpuidle/state2/name:C6
cpu0/cpuidle/state0/disable:0
cpu0/cpuidle/state1/disable:0
cpu0/cpuidle/state2/disable:1
vulnerabilities/meltdown:Not affected
vulnerabilities/spectre_v2:Mitigation: Enhanced / Automatic IBRS; IBPB: conditional
eth1/speed:100000
eth1/duplex:full
eth1/device/numa_node:1
eth1/device/current_link_speed:8.0 GT/s PCIe
eth1/device/current_link_width:8
eth1/device/max_link_speed:16.0 GT/s PCIe
eth1/device/max_link_width:16
eth1/ecn/roce_np/enable/0:0
eth1/ecn/roce_np/enable/3:1
/proc/irq/41/smp_affinity_list:8-15
/proc/irq/42/smp_affinity_list:8-15
/proc/irq/43/smp_affinity_list:0
mlx5_0/device/numa_node:1
mlx5_0/fw_ver:22.38.1002
mlx5_0/ports/1/rate:100 Gb/sec (4X EDR)
== fec
FEC parameters for eth1:
Supported/Configured FEC encodings: Auto
Active FEC encoding: RS
== pause
Pause parameters for eth1:
Autonegotiate:\toff
RX:\t\ton
TX:\t\toff

== driver
driver: mlx5_core
firmware-version: 22.38.1002 (MT_0000000359)
== pfc
prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off
== trust
dscp-prio 26:3
"""


def test_the_settings_of_a_host() -> None:
    assert machine_settings.parse(LISTING) == {
        "governor": "powersave, performance",
        "turbo": "off",
        "SMT": "on",
        "C-states": "POLL, C1",
        "C-state driver": "intel_idle",
        "mitigation spectre_v2": "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional",
        "link speed": "100000 Mbit/s",
        "duplex": "full",
        "NUMA node of the adapter": "1",
        "PCIe": "8.0 GT/s PCIe x8 (of 16.0 GT/s PCIe x16)",
        "port rate": "100 Gb/sec (4X EDR)",
        "device firmware": "22.38.1002",
        "interrupts' processors": "0, 8-15",
        "ECN notification point": "3",
        "FEC": "RS",
        "pause, received": "on",
        "pause, sent": "off",
        "firmware": "22.38.1002 (MT_0000000359)",
        "PFC": "prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off",
        "DSCP priorities": "dscp-prio 26:3",
    }


def test_a_virtual_interface_has_no_speed() -> None:
    assert machine_settings.parse("eth0/speed:-1\neth0/duplex:unknown\n== fec\n") == {}


@given(st.text())
def test_any_listing_is_read(listing: str) -> None:
    machine_settings.parse(listing)


def test_the_command_works_on_this_machine() -> None:
    """Each part may be missing here; the shell must understand all of it."""
    link = DataLink("lo", "127.0.0.1", "00:00:00:00:00:00", 65536)
    for port in (None, VerbsPort("absent", 1)):
        done = subprocess.run(
            machine_settings.command(link, port), capture_output=True, text=True, check=False
        )
        assert "== trust" in done.stdout
        assert not done.stderr.replace("cd: can't cd to", "").count("syntax")
        machine_settings.parse(done.stdout)
