# SPDX-License-Identifier: GPL-2.0-or-later
"""Drop monitors, which listen to skb:kfree_skb, see what the driver drops, and nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from bpftrace_maps import bpftrace
from hostile import HOSTILE, send
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import DEVICE
from rxe_trace import TRACING
from veth_pair import veth_pair

PROGRAM = "tracepoint:skb:kfree_skb { @[ksym(args->location), args->reason] = count(); }"
COUNTER = f"/sys/class/infiniband/{DEVICE}/ports/1/hw_counters/rcvd_drops"
NAMED = {
    "short": "HDR_TRUNC",
    "opcode": "UNHANDLED_PROTO",
    "version": "UNHANDLED_PROTO",
    "qpn": "NO_SOCKET",
    "mcast_group": "NO_SOCKET",
    "icrc": "SKB_CSUM",
}
"""The core's names of the driver's reasons; it has none for the others."""


def dropped(node: Node, workload: Callable[[], object]) -> Counter[str]:
    """How many packets the driver drops meanwhile, by the core's name of the reason."""
    format_ = node.run(["cat", f"{TRACING}/events/skb/kfree_skb/format"]).stdout
    names = dict(re.findall(r'\{ ?(\w+), ?"(\w+)" ?\}', format_))
    counts: Counter[str] = Counter()
    for key, number in bpftrace(node, PROGRAM, workload).get("@", {}).items():
        function, reason = key.rsplit(",", 1)
        if function.startswith("rxe_"):
            counts[names[reason.strip()]] += number
    return counts


def test_good_packets_are_no_drops(n1: Node) -> None:
    """Requests and answers are consumed; the request that the peer is not ready for is dropped."""
    with veth_pair(n1) as pair:
        assert not dropped(n1, lambda: pair.loop("rc", "write", 64, batches=4))
        late = dropped(n1, lambda: pair.loop("rc", "send_late", 64, batches=1, chain=1))
    assert set(late) == {"SOCKET_RCVBUFF"}


def test_reasons(n1: Node, n2: Node) -> None:
    """A packet that is dropped on arrival has the core's name of the reason, if there is one."""
    before = int(n1.run(["cat", COUNTER]).stdout)
    wait = f"until [ $(cat {COUNTER}) -ge {before + len(HOSTILE)} ]; do sleep 0.05; done"

    def hostile_packets() -> None:
        send(n2, *[(options, n1.link.ipv4, body) for options, body in HOSTILE.values()])
        n1.run(["timeout", "180", "sh", "-c", wait], timeout=210)

    expected = Counter(NAMED.get(reason, "NOT_SPECIFIED") for reason in HOSTILE)
    assert dropped(n1, hostile_packets) == expected
