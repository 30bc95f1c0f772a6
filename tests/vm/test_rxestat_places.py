# SPDX-License-Identifier: GPL-2.0-or-later
"""Queue pairs chosen by cgroup and network namespace: rxestat, rxedump and rxetop."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rocelab.testbed import artifacts
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import install_probes
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rxedump_watch import Dump
from rxestat_watch import Watch, packets
from veth_pair import PROGRAM, Pair, veth_pair
from vmlab import LINE

GROUP = "/sys/fs/cgroup/rocelab_places"
INNER = f"{GROUP}/inner"
NETNS = "rocelab_place"
CHAIN = 16
_MAKE = f"""
set -e
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
mkdir -p {INNER}
ip netns add {NETNS}
"""
_REMOVE = f"ip netns delete {NETNS}; rmdir {INNER} {GROUP}"
INTO_GROUP = ("sh", "-c", f'echo $$ > {INNER}/cgroup.procs; exec "$0" "$@"')
INTO_NETNS = ("ip", "netns", "exec", NETNS)


@pytest.fixture(scope="module")
def pair(shared_testbed: QemuTestbed) -> Iterator[Pair]:
    """Two devices on the first node, a cgroup and a network namespace."""
    node = shared_testbed.nodes[0]
    with veth_pair(node) as pair:
        try:
            node.run(["sh", "-c", _MAKE])
            yield pair
        finally:
            node.run(["sh", "-c", _REMOVE], check=False)


def loop(batches: int) -> list[str]:
    """verbs_loop's command line: it sends CHAIN * (batches + 1) WRITEs, each acknowledged."""
    words = ["rxe_a", "rxe_b", "rc", "write", "8", str(batches), str(CHAIN), "v2-ipv4"]
    return ["env", "ACK_TIMEOUT=20", PROGRAM, *words]


def test_new_queue_pairs(n1: Node, pair: Pair, tmp_path: Path) -> None:
    """Four processes, each in other places: every filter has the packets of those that it names."""
    both = ("--netns", NETNS, "--cgroup", GROUP)
    watches = [Watch(n1, "--netns", NETNS, xmit=False), Watch(n1, "--cgroup", GROUP, xmit=False)]
    dump = Dump(n1, *both, "--direction", "tx")
    try:
        dump.wait_ready()
        n1.run(loop(1), timeout=180)
        n1.run([*INTO_NETNS, *loop(2)], timeout=180)
        n1.run([*INTO_GROUP, *loop(4)], timeout=180)
        n1.run([*INTO_GROUP, *INTO_NETNS, *loop(8)], timeout=180)
        documents = [watch.stop() for watch in watches]
        capture = dump.stop(tmp_path)
    finally:
        for process in (*[watch.process for watch in watches], dump.process):
            process.kill()
    in_netns, in_group, in_both = ((3 + 9) * CHAIN, (5 + 9) * CHAIN, 9 * CHAIN)
    assert [document["filter"] for document in documents] == [{"netns": NETNS}, {"cgroup": GROUP}]
    for document, messages in zip(documents, (in_netns, in_group), strict=True):
        for event in ("tx", "rx", "done"):
            expected = {"RDMA_WRITE": messages, "ACKNOWLEDGE": messages}
            assert packets(document, event) == expected, event
    assert len(capture.packets) == 2 * in_both


_FILL = """
n=$(bpftool map show name owned_qps | cut -d: -f1)
awk -v n="$n" 'BEGIN {
	for (i = 0; i < 262144; i++)
		printf "map update id %d key 99 0 0 0 %d %d %d 0 value 1\\n",
			n, i % 256, int(i / 256) % 256, int(i / 65536)
}' | bpftool batch file - | tail -n 1
"""


def test_more_queue_pairs_than_there_is_room(n1: Node, pair: Pair) -> None:
    """New ones that find no room are counted and named, not left out silently."""
    watch = Watch(n1, "--netns", NETNS, xmit=False)
    try:
        n1.run(["sh", "-c", _FILL], timeout=300)
        n1.run([*INTO_NETNS, *loop(1)], timeout=180)
        watch.process.interrupt()
        done = watch.process.wait(timeout=120)
    finally:
        watch.process.kill()
    assert json.loads(done.stdout)["packets"] == []
    found = re.search(r"rxestat: (\d+) queue pairs are left out: 262144 are followed", done.stderr)
    assert found, done.stderr
    assert int(found[1]) == 2


@contextmanager
def stopped(node: Node) -> Iterator[str]:
    """An endless loop in the cgroup, stopped when its queue pairs are connected; its PID."""
    process = node.start([*INTO_GROUP, *loop(1_000_000)])
    script = (
        "until rdma resource show qp link rxe_a | grep -q 'type RC state RTS'; do sleep 0.05; done"
        f"; cat {INNER}/cgroup.procs"
    )
    try:
        pid = node.run(["timeout", "120", "sh", "-c", script], timeout=150).stdout.strip()
        node.run(["sh", "-c", f"kill -STOP {pid}"])
        yield pid
    finally:
        node.run(["sh", "-c", f"kill -KILL $(cat {INNER}/cgroup.procs)"], check=False)
        process.kill()


def settled(pair: Pair) -> int:
    """Packets that both devices have sent, when nothing more is on its way."""
    seen = [-1]
    while len(seen) < 4 or len(set(seen[-3:])) > 1:
        seen.append(pair.counters()["sent_pkts"])
    return seen[-1]


def test_queue_pairs_that_exist(n1: Node, pair: Pair) -> None:
    """What a process sends over queue pairs older than rxestat; nothing of it elsewhere."""
    with stopped(n1) as pid:
        ours = Watch(n1, "--cgroup", GROUP, xmit=False)
        other = Watch(n1, "--netns", NETNS, xmit=False)
        try:
            before = settled(pair)
            n1.run(["sh", "-c", f"kill -CONT {pid}"])
            while pair.counters()["sent_pkts"] < before + 500:
                pass
            n1.run(["sh", "-c", f"kill -STOP {pid}"])
            moved = settled(pair) - before
            document, nothing = ours.stop(), other.stop()
        finally:
            ours.process.kill()
            other.process.kill()
        shown, hidden, grouped = (
            rxetop(n1, *options)
            for options in (("--cgroup", GROUP), ("--netns", NETNS), ("--group", "cgroup"))
        )
    assert packets(document, "tx").total() == moved
    assert packets(nothing, "tx").total() == 0
    assert [row["pid"] for row in shown["qps"]] == [int(pid)] * 2
    assert (shown["cgroup"], shown["hidden"], hidden["netns"]) == (GROUP, 0, NETNS)
    assert hidden["qps"] == []
    rows = {row["group"]: row["qps"] for row in grouped["groups"]}
    assert rows[INNER.removeprefix("/sys/fs/cgroup")] == 2, rows


def rxetop(node: Node, *options: str) -> dict[str, Any]:
    """What one look of rxetop shows of idle queue pairs, too."""
    install_probes(node, [artifacts.probe("rxetop", LINE)])
    words = ["rxetop", "--json", "--idle", "-n", "1", "-I", "100", *options]
    document: dict[str, Any] = json.loads(node.run(words, timeout=180).stdout)
    return document


@pytest.mark.parametrize(
    ("tool", "options", "words"),
    [
        ("rxestat", ("--netns", "nowhere"), "no network namespace 'nowhere'"),
        ("rxestat", ("--netns", "/proc/self/ns/mnt"), "no network namespace '/proc/self/ns/mnt'"),
        ("rxedump", ("--cgroup", "/proc"), "no cgroup '/proc'"),
        ("rxetop", ("-b", "--cgroup", "/proc"), "no cgroup '/proc'"),
    ],
)
def test_refusals(n1: Node, tool: str, options: tuple[str, ...], words: str) -> None:
    """A place that is none is refused."""
    done = n1.run([tool, *options], check=False, timeout=180)
    assert (done.returncode, done.stdout) == (3, "")
    assert words in done.stderr
