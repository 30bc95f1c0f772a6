# SPDX-License-Identifier: GPL-2.0-or-later
"""Two rxe devices on one node, over a veth pair in one namespace: one clock, real frames."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rocelab.node import Completed, Node

SOURCE = Path(__file__).parents[1] / "vm" / "verbs_loop.c"
PROGRAM = f"/tmp/verbs_loop-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}"
"""Where it lies on a node: compiled once, for as long as its source stays the same."""
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
        ack_timeout: int = 20,
        check: bool = True,
    ) -> Completed:
        """Run verbs_loop from rxe_a; it sends (batches + 1) * chain messages.

        `ack_timeout` (4.096 µs times 2^ack_timeout) is long by default: on a machine with much
        else to do nothing shall be sent twice.
        """
        words = (transport, operation, str(size), str(batches), str(chain))
        patience = ["env", f"ACK_TIMEOUT={ack_timeout}"]
        return self.node.run([*patience, PROGRAM, "rxe_a", peer, *words], timeout=180, check=check)

    def counters(self) -> dict[str, int]:
        """The driver's counters, both devices together."""
        total = dict.fromkeys(COUNTERS, 0)
        paths = [
            f"/sys/class/infiniband/{device}/ports/1/hw_counters/{name}"
            for device in ("rxe_a", "rxe_b")
            for name in COUNTERS
        ]
        for line in self.node.run(["grep", "", *paths]).stdout.splitlines():
            path, value = line.rsplit(":", 1)
            total[path.rsplit("/", 1)[1]] += int(value)
        return total


def _devices(node: Node) -> None:
    for end in "ab":
        node.run(["rdma", "link", "add", f"rxe_{end}", "type", "rxe", "netdev", f"veth_{end}"])


def _compile(node: Node) -> None:
    if node.run(["test", "-x", PROGRAM], check=False).returncode:
        node.put(SOURCE, f"{PROGRAM}.c")
        node.run(["gcc", "-O2", "-o", PROGRAM, f"{PROGRAM}.c", "-libverbs"], timeout=120)


@contextmanager
def veth_pair(node: Node) -> Iterator[Pair]:
    """Make the pair and compile verbs_loop; remove the pair at the end.

    Both addresses are this machine's own: frames leave and come back only where packets from an
    own address are let in, and where the route by interface wins over the local one.
    """
    node.run(
        [
            "ip",
            "link",
            "add",
            "veth_a",
            "mtu",
            "4400",
            "type",
            "veth",
            "peer",
            "name",
            "veth_b",
            "mtu",
            "4400",
        ]
    )
    try:
        settings = ["net.ipv4.conf.all.rp_filter=0"]
        for end, address in (("a", "10.45.0.1"), ("b", "10.45.0.2")):
            node.run(["ip", "addr", "add", f"{address}/24", "dev", f"veth_{end}"])
            node.run(["ip", "link", "set", f"veth_{end}", "up"])
            settings += [
                f"net.ipv4.conf.veth_{end}.{key}" for key in ("rp_filter=0", "accept_local=1")
            ]
        node.run(["sysctl", "-qw", *settings])
        _devices(node)
        _compile(node)
        yield Pair(node)
    finally:
        for end in "ab":
            node.run(["rdma", "link", "delete", f"rxe_{end}"], check=False)
        node.run(["ip", "link", "delete", "veth_a"], check=False)
