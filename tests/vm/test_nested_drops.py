# SPDX-License-Identifier: GPL-2.0-or-later
"""Drops that interrupt the count of another one: the kernel skips a program that is at work.

The responder drops requests of a wrong PSN in a work queue. Packets with a wrong ICRC arrive
meanwhile and are dropped in the interrupt, on the same CPU.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forged_peer import request, responder, until
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import DEVICE, install_probes
from rxe_trace import TRACING
from rxedump_watch import dumping
from rxestat_watch import watching
from slowed_programs import slow
from vmlab import LINE, PATIENCE

FLOOD, MAX_FLOODS = 1000, 10
"""Frames of each kind in a flood, and how many floods may pass without what is provoked."""
# unequal delays: packets arrive while others are being dropped, whatever the two nodes' speed
DELAYS = ("delay", "2ms", "2ms", "limit", str(4 * FLOOD))
_FLOOD = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
frames = [bytes.fromhex(word) for word in sys.argv[3:]]
for _ in range(int(sys.argv[2])):
    for frame in frames:
        s.send(frame)
"""
TRIGGER = f"{TRACING}/events/rxe/rxe_drop/trigger"
HISTOGRAM = f"{TRACING}/events/rxe/rxe_drop/hist"
TOOLS, LATE = 3, "rxe_drop_late"


@contextmanager
def at_odd_times(node: Node) -> Iterator[None]:
    """Make a node's packets leave at odd times."""
    qdisc = ("dev", node.link.netdev, "root")
    node.run(["tc", "qdisc", "add", *qdisc, "netem", *DELAYS])
    try:
        yield
    finally:
        node.run(["tc", "qdisc", "del", *qdisc])


@contextmanager
def counted_by_the_kernel(node: Node) -> Iterator[None]:
    """Keep the kernel's own histogram of the event, which nothing interrupts."""
    node.run(["sh", "-c", f"echo hist:keys=reason > {TRIGGER}"])
    try:
        yield
    finally:
        node.run(["sh", "-c", f"echo '!hist:keys=reason' > {TRIGGER}"])


def interrupted(node: Node) -> bool:
    """Whether interrupts have found every tool's program for late drops at work."""
    programs = json.loads(node.run(["bpftool", "-j", "prog", "show"]).stdout)
    late = [row for row in programs if row.get("name") == LATE]
    assert len(late) == TOOLS
    return all(row.get("recursion_misses") for row in late)


def flood(sender: Node, receiver: Node, qpn: int) -> int:
    """Send late and early drops in turn until some of each tool's are nested; how many of each."""
    late = request(sender, receiver, "RC_SEND_ONLY", qpn, 1000, b"", bytes(64))
    early = late[:-4] + bytes(byte ^ 0xFF for byte in late[-4:])
    words = [sender.link.netdev, str(FLOOD), late.hex(), early.hex()]
    floods = 0

    def provoke() -> None:
        nonlocal floods
        while not interrupted(receiver):
            assert floods < MAX_FLOODS, f"some program was never found at work in {floods} floods"
            sender.run(["python3", "-c", _FLOOD, *words], timeout=300 * PATIENCE)
            floods += 1
            until(receiver, f"grep -q 'Hits: {2 * floods * FLOOD}' {HISTOGRAM}")

    with counted_by_the_kernel(receiver), at_odd_times(sender):
        slow(receiver, LATE, provoke)
    return floods * FLOOD


def test_each_drop_is_counted_or_missed(n1: Node, n2: Node, tmp_path: Path) -> None:
    """Of rxestat, rxetop and rxedump: what they count and what they miss are all of it."""
    install_probes(n1, [artifacts.probe("rxetop", LINE)])
    with (
        responder(n1, n2) as (qpn, *_),
        watching(n1) as (watch,),
        dumping(n1, options=("-s", "64")) as (dump,),
    ):
        top = n1.start(["rxetop", "--json", "--idle", "--interval", "1000"])
        try:
            top.wait_for_line("rxetop: ready", timeout=120)
            of_each = flood(n2, n1, qpn)
            document = watch.stop()
            top.interrupt()
            shown = json.loads(top.wait(timeout=60).stdout.splitlines()[-1])
            capture = dump.stop(tmp_path)
        finally:
            top.kill()
    losses = {(row["event"], row["reason"]): row["count"] for row in document["losses"]}
    assert losses["drop", "sequence"] == of_each
    assert losses["drop", "icrc"] + document["losses_missed"] == of_each
    assert document["lost"] == 0

    (mine,) = (row for row in shown["qps"] if row["qpn"] == qpn and row["dev"] == DEVICE)
    drops = Counter(mine["total"]["drops"]) + Counter(shown["other_drops"])
    assert drops["sequence"] == of_each
    assert drops["icrc"] + shown["lost"] == of_each

    counters = capture.counters(capture.names().index(DEVICE))
    recorded = sum(packet.fields.get("drop") == "icrc" for packet in capture.packets)
    assert counters["lost_ring"] == 0
    assert recorded + counters["lost_nested"] == of_each
