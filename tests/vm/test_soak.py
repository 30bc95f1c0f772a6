# SPDX-License-Identifier: GPL-2.0-or-later
"""Verified traffic both ways over both RoCE versions, on a link that loses, reorders and is cut.

ROCELAB_SOAK_MINUTES sets the duration (`make soak`: 30). Each kind of cut occurs at least once.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import slab
from node_program import compile_program
from rocelab.testbed.node import Node, Process
from rocelab.testbed.node.prepare_node import (
    DEVICE,
    add_device,
    offer_roce_v1,
    remove_device,
    unload,
)
from rocelab.testbed.qemu import qemu_testbed as qemu
from rocelab.testbed.qemu.qmp import execute
from traffic import gid_index
from vmlab import PATIENCE

SOURCE = Path(__file__).parent / "verbs_soak.c"
MINUTES = float(os.environ.get("ROCELAB_SOAK_MINUTES", "1"))
LOSS = ["loss", "1%", "delay", "2ms", "1ms", "reorder", "10%", "50%"]
"""netem's options for each direction: packets without the delay overtake delayed ones."""
VERSIONS = {"RoCE v2": 18600, "IB/RoCE v1": 18601}
"""GID types, and the TCP ports where the ends meet."""
SHORT, LONG = 0.3, 6.0
"""Seconds of a cut: shorter and much longer than the queue pairs' seven tries of 0.27 s."""
STALL = 120 * PATIENCE
COUNTERS = f"/sys/class/infiniband/{DEVICE}/ports/1/hw_counters"
SPARE_SKBS = 32
"""Tolerance in socket buffers of an idle node, whose SSH connection stays open."""


class End:
    """verbs_soak on a node."""

    def __init__(self, node: Node, gid_type: str, peer: Node | None) -> None:
        self.node = node
        port = VERSIONS[gid_type]
        self.status = f"/tmp/soak-{port}"
        index = gid_index(node, gid_type=gid_type)
        argv = ["env", f"STALL_SECONDS={STALL:.0f}", compile_program(node, SOURCE, "-libverbs")]
        argv += [DEVICE, index, str(port), self.status]
        self.process: Process = node.start([*argv, peer.link.ipv4] if peer else argv)

    def counts(self) -> dict[str, int]:
        """Return its counts so far."""
        said = self.node.run(["cat", self.status], check=False).stdout
        assert "verbs_soak:" not in said, f"{self.node.name}: {said}"
        return parse(said)

    def finish(self) -> dict[str, int]:
        """Return its final counts; fail unless it succeeded."""
        done = self.process.wait(timeout=STALL)
        assert done.returncode == 0, done.stderr
        return parse(done.stdout)


def parse(line: str) -> dict[str, int]:
    """Parse a status line of verbs_soak."""
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", line)}


@contextmanager
def bad_link(*nodes: Node) -> Iterator[None]:
    """Lose and reorder packets that these nodes send."""
    try:
        for node in nodes:
            node.run(["tc", "qdisc", "add", "dev", node.link.netdev, "root", "netem", *LOSS])
        yield
    finally:
        for node in nodes:
            node.run(["tc", "qdisc", "del", "dev", node.link.netdev, "root"], check=False)


@contextmanager
def soaking(server: Node, client: Node) -> Iterator[list[End]]:
    """Start both ends of both versions."""
    ends: list[End] = []
    try:
        for gid_type in VERSIONS:
            ends += [End(server, gid_type, None), End(client, gid_type, server)]
        yield ends
    finally:
        for end in ends:
            end.process.kill()


def all_move(ends: list[End], messages: int = 30) -> None:
    """Wait until every end has received this many more messages."""
    before = [end.counts().get("received", 0) for end in ends]
    deadline = time.monotonic() + STALL
    for end, was in zip(ends, before, strict=True):
        while end.counts().get("received", 0) < was + messages:
            assert time.monotonic() < deadline, f"no message arrives at {end.node.name}"


def pull_cable(testbed: qemu.QemuTestbed, node: Node, seconds: float) -> None:
    """Disconnect a node's card for a while."""
    qmp = testbed.state.path / f"{node.name}.qmp"
    execute(qmp, "set_link", {"name": "data", "up": False})
    try:
        time.sleep(seconds)  # the length of the cut
    finally:
        execute(qmp, "set_link", {"name": "data", "up": True})


def set_down(testbed: qemu.QemuTestbed, node: Node, seconds: float) -> None:
    """Take a node's interface down for a while."""
    del testbed
    flap = 'ip link set "$1" down && sleep "$2" && ip link set "$1" up'
    node.run(["sh", "-c", flap, "sh", node.link.netdev, str(seconds)])


Cut = Callable[[qemu.QemuTestbed, Node, float], None]
CUTS: list[tuple[Cut, float]] = [
    (cut, seconds) for seconds in (SHORT, LONG) for cut in (pull_cable, set_down)
]


def queue_pairs(node: Node) -> list[str]:
    """Return the existing queue pairs, without the fields that change."""
    listing = node.run(["rdma", "resource", "show", "qp"]).stdout
    return sorted(re.sub(r"(lqpn|[rs]q-psn) \d+ ?", "", listing).splitlines())


def counter(node: Node, name: str) -> int:
    """Return a counter of the driver."""
    return int(node.run(["cat", f"{COUNTERS}/{name}"]).stdout)


@pytest.mark.soak
def test_soak(testbed: qemu.QemuTestbed) -> None:
    """All data is correct, nothing hangs or leaks, and the driver unloads."""
    n1, n2 = nodes = testbed.nodes
    offer_roce_v1(nodes)
    # the first traffic makes permanent allocations: neighbours, the programs' page cache
    with soaking(n1, n2) as ends:
        all_move(ends)
    idle = [(queue_pairs(node), slab.skbs(node)) for node in nodes]

    cuts = 0
    started = time.monotonic()
    with bad_link(*nodes), soaking(n1, n2) as ends:
        all_move(ends)
        # the other node in the next round
        sides = (*nodes, *reversed(nodes)) * 2
        schedule = zip(itertools.cycle(CUTS), itertools.cycle(sides), strict=False)
        while time.monotonic() < started + 60 * MINUTES or cuts < len(CUTS):
            (cut, seconds), node = next(schedule)
            cut(testbed, node, seconds)
            cuts += 1
            all_move(ends)
        reordered = [counter(node, "out_of_seq_request") for node in nodes]
        for end in ends:
            end.process.interrupt()
        results = [end.finish() for end in ends]
    print(f"{(time.monotonic() - started) / 60:.1f} minutes, {cuts} cuts")
    for end, result in zip(ends, results, strict=True):
        print(end.node.name, end.status, result)

    for there, back in zip(results[::2], results[1::2], strict=True):
        assert there["connections"] == back["connections"] > 1, "no cut ended a connection"
    assert min(reordered) > 0, "nothing was lost or reordered"
    for node, (qps, skbs) in zip(nodes, idle, strict=True):
        assert queue_pairs(node) == qps
        deadline = time.monotonic() + STALL
        while abs(left := slab.skbs(node) - skbs) > SPARE_SKBS:
            assert time.monotonic() < deadline, f"{left} socket buffers more than before"
        remove_device(node)
        unload(node)
        add_device(node)
