# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCE v1 and v2 over network devices that are stacked on others, and one that is no Ethernet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import witness
from rocelab.measure.hostile_frames import mac
from rocelab.testbed import artifacts, linktap
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import install_probes
from veth_pair import ROCE_V1, Pair, veth_pair
from vmlab import LINE

V2_PORT = 4791
RUNS = (("rc", "write"), ("rc", "read"), ("uc", "send"), ("ud", "send"))
SL, PCP, VID = 3, 5, 7


@pytest.fixture
def pair(n1: Node) -> Iterator[Pair]:
    """Two devices on the first node, with GIDs of both versions."""
    with veth_pair(n1, roce_v1=True) as pair:
        yield pair


def traffic(pair: Pair, gid: str, service_level: int = 0) -> None:
    """Some messages by every service; verbs_loop checks what arrives."""
    for transport, operation in RUNS:
        pair.loop(transport, operation, 1000, 2, 4, gid=gid, service_level=service_level)


_VLANS = """
set -e
for end in a b; do
	ip link add link veth_$end name veth_$end.$1 type vlan id $1 reorder_hdr $2 egress-qos-map $3
	sysctl -qw net.ipv4.conf.veth_$end/$1.rp_filter=0 net.ipv4.conf.veth_$end/$1.accept_local=1
done
ip addr add 10.46.7.1/24 dev veth_a.$1
ip addr add 10.46.7.2/24 dev veth_b.$1
ip link set veth_a.$1 up
ip link set veth_b.$1 up
"""


def address(node: Node, netdev: str) -> bytes:
    """The Ethernet address of an interface."""
    return mac(node.run(["cat", f"/sys/class/net/{netdev}/address"]).stdout.strip())


def is_roce(frame: bytes, version: str) -> bool:
    """Whether a frame is a RoCE packet of that version."""
    kind, body = witness.network(frame)
    if version == "v1":
        return kind == witness.IBOE
    return kind == 0x0800 and body[9] == 17 and int.from_bytes(body[22:24], "big") == V2_PORT


@pytest.mark.parametrize("reorder_hdr", ["on", "off"])
def test_vlan(pair: Pair, tmp_path: Path, reorder_hdr: str) -> None:
    """Packets have the VLAN's tag, and the priority that its map makes of the service level.

    Where reorder_hdr is off the VLAN device writes the tag into the frame, and rewrites the
    packet's protocol; where it is on the tag lies apart from the frame, and linktap puts it back.
    """
    node, path = pair.node, tmp_path / "vlan.pcap"
    words = (str(VID), reorder_hdr, f"{SL}:{PCP}")
    node.run(["sh", "-c", _VLANS, "sh", *words])
    install_probes(node, [artifacts.probe(linktap.TAP, LINE)])
    with linktap.capture(node, ["veth_a", "veth_b"], path, 65535):
        for version in ("v1", "v2"):
            traffic(pair, f"{version}-ipv4-vlan", SL)
    sender = address(node, "veth_a")
    for version in ("v1", "v2"):
        frames = [frame for frame in witness.frames(path) if is_roce(frame, version)]
        tags = {(frame[6:12] == sender, frame[12:16].hex()) for frame in frames}
        assert tags == {(True, f"8100{PCP << 13 | VID:04x}"), (False, f"8100{VID:04x}")}, version
    witness.check_v1(path, sum(is_roce(frame, "v1") for frame in witness.frames(path)))


_ABOVE = {
    "bridge": "ip link add top9 type bridge; ip link set veth_a master top9",
    # bonding makes a device of its own when it is loaded
    "bond": """
        modprobe bonding max_bonds=0
        ip link add top9 mtu 4400 type bond mode active-backup miimon 10
        ip link set veth_a down
        ip link set veth_a master top9
    """,
    "macvlan": "ip link add top9 link veth_a type macvlan mode bridge",
}
_MOVE = """
set -e
rdma link delete rxe_a
ip addr flush dev veth_a
# a macvlan has another Ethernet address than veth_a
ip neigh delete 10.45.0.1 dev veth_b
%s
ip link set veth_a up
ip addr add 10.45.0.1/24 dev top9
sysctl -qw net.ipv4.conf.top9.rp_filter=0 net.ipv4.conf.top9.accept_local=1
ip link set top9 up
until [ "$(cat /sys/class/net/top9/operstate)" = up ]; do sleep 0.1; done
trap 'echo N >"$1"' EXIT
echo Y >"$1"
rdma link add rxe_a type rxe netdev top9
"""


@contextmanager
def above(pair: Pair, kind: str) -> Iterator[None]:
    """rxe_a lies on a device of that kind, which lies on veth_a."""
    try:
        script = ["timeout", "60", "sh", "-c", _MOVE % _ABOVE[kind], "sh", ROCE_V1]
        pair.node.run(script, timeout=90)
        yield
    finally:
        pair.node.run(["rdma", "link", "delete", "rxe_a"], check=False)
        pair.node.run(["ip", "link", "delete", "top9"], check=False)


@pytest.mark.parametrize("kind", list(_ABOVE))
def test_above(pair: Pair, tmp_path: Path, kind: str) -> None:
    """Both versions carry data, and what is on the wire is right."""
    path = tmp_path / f"{kind}.pcap"
    with above(pair, kind), witness.sniff(pair.node, "veth_b", path):
        for version in ("v1", "v2"):
            traffic(pair, f"{version}-ipv4")
    for version in ("v1", "v2"):
        judged = [is_roce(frame, version) for frame in witness.frames(path)]
        assert sum(judged) >= 2 * len(RUNS), version
    witness.check_v1(path, sum(is_roce(frame, "v1") for frame in witness.frames(path)))


_TUN = """
modprobe -q tun || true
ip tuntap add mode tun name tun9
ip addr add 10.47.0.1/24 dev tun9
ip link set tun9 up
trap 'echo N >"$1"' EXIT
echo Y >"$1"
rdma link add rxe_t type rxe netdev tun9
"""


def test_no_ethernet(n1: Node) -> None:
    """A device without Ethernet addresses has RoCE v2 only, and the kernel log says so."""
    try:
        n1.run(["sh", "-ec", _TUN, "sh", ROCE_V1])
        listing = "grep -hs . /sys/class/infiniband/rxe_t/ports/1/gid_attrs/types/*"
        types = n1.run(["sh", "-c", listing], check=False).stdout.splitlines()
        assert set(types) == {"RoCE v2"}
        assert "tun9: no Ethernet device: RoCE v2 only" in n1.run(["dmesg"]).stdout
        assert "8915" not in n1.run(["cat", "/proc/net/ptype"]).stdout
    finally:
        n1.run(["rdma", "link", "delete", "rxe_t"], check=False)
        n1.run(["ip", "link", "delete", "tun9"], check=False)
