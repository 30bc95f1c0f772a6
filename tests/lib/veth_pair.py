# SPDX-License-Identifier: GPL-2.0-or-later
"""Two rxe devices on one node, over a veth pair in one namespace: one clock, real frames."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from node_program import compile_program, remote
from rocelab.testbed.node import Completed, Node

SOURCE = Path(__file__).parents[1] / "vm" / "verbs_loop.c"
PROGRAM = remote(SOURCE)
ROCE_V1 = "/sys/module/rdma_rxe/parameters/roce_v1"
COUNTERS = (
    "sent_pkts",
    "rcvd_pkts",
    "send_err",
    "duplicate_request",
    "out_of_seq_request",
    "rcvd_seq_err",
    "rcvd_rnr_err",
    "send_rnr_err",
    "completer_retry_err",
    "rcvd_drops",
)


@dataclass(frozen=True)
class Pair:
    """Devices `rxe_a` on `veth_a`, `rxe_b` on `veth_b`."""

    node: Node
    mtu: int = 4096

    def loop(
        self,
        transport: str,
        operation: str,
        size: int,
        batches: int,
        chain: int = 16,
        *,
        peer: str = "rxe_b",
        gid: str = "v2-ipv4",
        ack_timeout: int = 20,
        service_level: int = 0,
        check: bool = True,
    ) -> Completed:
        """Run verbs_loop from rxe_a; it sends (batches + 1) * chain messages.

        `ack_timeout` (4.096 µs times 2^ack_timeout) is long by default: on a machine with much
        else to do nothing shall be sent twice.
        """
        words = (transport, operation, str(size), str(batches), str(chain), gid)
        env = ["env", f"ACK_TIMEOUT={ack_timeout}", f"SERVICE_LEVEL={service_level}"]
        return self.node.run([*env, PROGRAM, "rxe_a", peer, *words], timeout=180, check=check)

    def counters(self) -> dict[str, int]:
        """The driver's counters, both devices together."""
        total = dict.fromkeys(COUNTERS, 0)
        paths = [
            f"/sys/class/infiniband/{device}/ports/1/hw_counters/{name}"
            for device in ("rxe_a", "rxe_b")
            for name in COUNTERS
        ]
        # not every kernel line counts all of them
        for line in self.node.run(["grep", "-s", "", *paths], check=False).stdout.splitlines():
            path, value = line.rsplit(":", 1)
            total[path.rsplit("/", 1)[1]] += int(value)
        return total


# One command for each: on a kernel that checks itself a program takes seconds to start. Both
# addresses are this machine's own: frames leave and come back only where packets from an own
# address are let in, and where the route by interface wins over the local one. Neighbours are
# permanent: a test that loses all packets would lose the ARP of one that has expired, too.
_MAKE = """
set -e
ip -batch - <<END
link add veth_a address 02:00:00:45:00:0a mtu 4400 type veth \
	peer name veth_b address 02:00:00:45:00:0b mtu 4400
addr add 10.45.0.1/24 dev veth_a
addr add 10.45.0.2/24 dev veth_b
link set veth_a up
link set veth_b up
neigh replace 10.45.0.2 lladdr 02:00:00:45:00:0b dev veth_a nud permanent
neigh replace 10.45.0.1 lladdr 02:00:00:45:00:0a dev veth_b nud permanent
END
sysctl -qw net.ipv4.conf.all.rp_filter=0 \\
	net.ipv4.conf.veth_a.rp_filter=0 net.ipv4.conf.veth_a.accept_local=1 \\
	net.ipv4.conf.veth_b.rp_filter=0 net.ipv4.conf.veth_b.accept_local=1
if [ "$1" ]; then
	trap 'echo N >"$1"' EXIT
	echo Y >"$1"
fi
for end in a b; do rdma link add "rxe_$end" type rxe netdev "veth_$end"; done
"""
_REMOVE = "for end in a b; do rdma link delete rxe_$end; done; ip link delete veth_a"


@contextmanager
def veth_pair(node: Node, *, roce_v1: bool = False) -> Iterator[Pair]:
    """Make the pair and compile verbs_loop; remove the pair at the end.

    With `roce_v1` the devices have GIDs of RoCE v1, too.
    """
    try:
        node.run(["sh", "-c", _MAKE, "sh", ROCE_V1 if roce_v1 else ""])
        compile_program(node, SOURCE, "-libverbs")
        yield Pair(node)
    finally:
        node.run(["sh", "-c", _REMOVE], check=False)
