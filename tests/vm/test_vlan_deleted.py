# SPDX-License-Identifier: GPL-2.0-or-later
"""A VLAN device is deleted while a packet that came over it waits for a user in the kernel."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from forged_peer import until
from node_program import compile_program
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import install_driver, unload
from rxe_trace import TRACING, tracing
from veth_pair import Pair, veth_pair
from vmlab import LINE, PATIENCE, boot_alone, healthy

SOURCE = Path(__file__).parent / "verbs_gsi.c"
DELAY = 4_000_000_000
"""How long the packet waits, ns: the deletion takes a second where the kernel checks itself."""
_VLANS = """
set -e
cd /sys/module/rdma_rxe/parameters
echo off >delay_stage
for end in a b; do
	ip link add link veth_$end name veth_$end.7 type vlan id 7
	sysctl -qw net.ipv4.conf.veth_$end/7.rp_filter=0 net.ipv4.conf.veth_$end/7.accept_local=1
done
ip addr add 10.46.7.1/24 dev veth_a.7
ip addr add 10.46.7.2/24 dev veth_b.7
ip link set veth_a.7 up
ip link set veth_b.7 up
ip neigh replace 10.46.7.2 lladdr 02:00:00:45:00:0b dev veth_a.7 nud permanent
echo $1 >delay_ns
echo done.exec >delay_stage
"""
_DELETE = """
set -e
arrived() { cat /sys/class/infiniband/rxe_b/ports/1/hw_counters/rcvd_pkts; }
before=$(arrived)
"$1" rxe_a rxe_b veth_a.7 "$2" veth_b.7
until [ "$(arrived)" -gt $before ]; do :; done
ip link delete veth_b.7
cut -d' ' -f1 /proc/uptime
ip link delete veth_a.7
"""


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Two devices on one machine whose driver can be delayed."""
    facts = json.loads((artifacts.image(LINE) / "image.json").read_text())
    if "debug_kernel" not in facts:
        pytest.skip("only a kernel with KASAN sees that freed memory is read: `make test-debug`")
    with boot_alone(name="vlan", vcpus=2) as machine, healthy([machine], "VLAN"):
        unload(machine)
        install_driver(machine, artifacts.driver(LINE, "delay"))
        with veth_pair(machine, roce_v1=True) as pair:
            yield pair
        unload(machine)


def waited(node: Node, version: str) -> bool:
    """Delete the device under a packet; return whether the packet was waiting to the end of it."""
    program = compile_program(node, SOURCE, "-libverbs")
    node.run(["sh", "-c", _VLANS, "sh", str(DELAY)])
    with healthy([node], f"VLAN, v{version}"), tracing(node, "rxe_rx_done") as trace:
        done = node.run(["sh", "-c", _DELETE, "sh", program, version], timeout=60 * PATIENCE)
        until(node, f"grep -q 'rxe_rx_done: .*SEND_ONLY' {TRACING}/trace")
    deleted = re.fullmatch(r"sent\n(\d+\.\d+)\n", done.stdout)
    assert deleted, done.stdout
    (packet,) = trace.events
    return packet.time_us > float(deleted[1]) * 1e6


@pytest.mark.parametrize("version", ["1", "2"])
def test_the_packet_outlives_its_device(pair: Pair, version: str) -> None:
    """The kernel's own queue pair, the GSI's, looks for the packet's VLAN when it gets to it."""
    # where this machine is busy, the deletion takes longer than the longest delay
    assert any(waited(pair.node, version) for _ in range(5))
