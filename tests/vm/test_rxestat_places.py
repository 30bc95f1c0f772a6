# SPDX-License-Identifier: GPL-2.0-or-later
"""Queue pairs chosen and grouped by process, cgroup and network namespace."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from forged_peer import until
from prometheus import promtool_check
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import install_probes
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rxedump_watch import Dump
from rxestat_watch import Document, Watch, by_group, packets, stage_counts
from veth_pair import PROGRAM, Pair, veth_pair
from vmlab import LINE

GROUP = "/sys/fs/cgroup/rocelab_places"
INNER = f"{GROUP}/inner"
INNER_PATH = INNER.removeprefix("/sys/fs/cgroup")
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


DENIED = ("rxe_a", "rxe_b", "rc", "write_denied", "8", "0", "1", "v2-ipv4")


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


_LAUNCHER = """
rm -f /tmp/launch
(
	until [ -e /tmp/launch ]; do sleep 0.05; done
	"$@"
	unshare --fork --pid "$@"
	rm /tmp/launch
) >/dev/null 2>&1 </dev/null &
echo $!
"""


def test_a_process_and_its_children(n1: Node, pair: Pair, tmp_path: Path) -> None:
    """What a launcher starts later is its own, also in another PID namespace; nothing else is."""
    pid = n1.run(["sh", "-c", _LAUNCHER, "sh", *loop(1)]).stdout.strip()
    watch = Watch(n1, "--pid", pid, xmit=False)
    dump = Dump(n1, "--pid", pid, "--direction", "tx")
    try:
        dump.wait_ready()
        n1.run(loop(2), timeout=180)
        n1.run(["touch", "/tmp/launch"])
        until(n1, "! [ -e /tmp/launch ]")
        document, capture = watch.stop(), dump.stop(tmp_path)
    finally:
        for process in (watch.process, dump.process):
            process.kill()
    assert document["filter"] == {"pid": pid}
    expected = {"RDMA_WRITE": 2 * 2 * CHAIN, "ACKNOWLEDGE": 2 * 2 * CHAIN}
    assert packets(document, "tx") == expected
    assert len(capture.packets) == 2 * 2 * 2 * CHAIN


ROOM = 262144
"""Queue pairs that are followed."""
# of the uapi's enum bpf_cmd: MAP_GET_FD_BY_ID, MAP_UPDATE_BATCH
_FILL = """
import ctypes, struct, sys

def bpf(command, layout, *fields):
    attributes = struct.pack(layout, *fields)
    done = ctypes.CDLL(None).syscall(321, command, attributes, len(attributes))
    assert done >= 0, command
    return done

room = int(sys.argv[2])
fd = bpf(14, "=III", int(sys.argv[1]), 0, 0)
keys = b"".join(struct.pack("=II", 99, number) for number in range(room))
kept = [ctypes.create_string_buffer(data) for data in (keys, b"\\1" * room)]
bpf(26, "=QQQQIIQQ", 0, 0, *map(ctypes.addressof, kept), room, fd, 0, 0)
"""


def test_more_queue_pairs_than_there_is_room(n1: Node, pair: Pair) -> None:
    """New ones that find no room are counted and named, not left out silently."""
    watch = Watch(n1, "--netns", NETNS, xmit=False)
    try:
        shown = n1.run(["bpftool", "-j", "map", "show", "name", "owned_qps"]).stdout
        n1.run(["python3", "-c", _FILL, str(json.loads(shown)["id"]), str(ROOM)])
        n1.run([*INTO_NETNS, *loop(1)], timeout=180)
        watch.process.interrupt()
        done = watch.process.wait(timeout=120)
    finally:
        watch.process.kill()
    assert json.loads(done.stdout)["packets"] == []
    match = re.search(rf"rxestat: (\d+) queue pairs are left out: {ROOM} are followed", done.stderr)
    assert match, done.stderr
    assert int(match[1]) == 2


HOSTILE = "bad \x1b[31m\\x1b\xe9"
HOSTILE_SHOWN = "bad \\x1b[31m\\x5cx1b\\xc3\\xa9"
IN_HOSTILE = f"""
mkdir -p "{GROUP}/$0"
sh -c 'echo $$ > "{GROUP}/$0/cgroup.procs"; exec "$@"' "$0" "$@"
rmdir "{GROUP}/$0"
"""


def grouped(document: Document) -> dict[str, int]:
    """WRITEs sent by each group that sent some; the other events have the same numbers."""
    sent = by_group(document, "tx")
    by_group_name = {name: counts["RDMA_WRITE"] for name, counts in sent.items()}
    for event in ("tx", "rx", "done"):
        expected = {
            name: {"RDMA_WRITE": writes, "ACKNOWLEDGE": writes}
            for name, writes in by_group_name.items()
        }
        assert by_group(document, event) == expected, event
    for row in document["rows"]:
        assert row["group"] in by_group_name
    return by_group_name


def own_places(node: Node) -> tuple[str, str]:
    """Where the commands of a test run."""
    script = "sed -n s/^0:://p /proc/self/cgroup; readlink /proc/self/ns/net"
    cgroup, netns = node.run(["sh", "-c", script]).stdout.split()
    return cgroup, netns


def test_groups(n1: Node, pair: Pair) -> None:
    """Known messages from several places: each group has its own, and all together everything."""
    cgroup, netns = own_places(n1)
    plain = Watch(n1, xmit=False)
    each = {key: Watch(n1, "--group", key, xmit=False) for key in ("cgroup", "netns")}
    filtered = Watch(n1, "--group", "netns", "--cgroup", GROUP, xmit=False)
    watches = [plain, *each.values(), filtered]
    try:
        n1.run(loop(1), timeout=180)
        n1.run([*INTO_NETNS, *loop(2)], timeout=180)
        n1.run([*INTO_GROUP, *loop(4)], timeout=180)
        n1.run([*INTO_GROUP, *INTO_NETNS, *loop(8)], timeout=180)
        # the same path twice, of different cgroups
        n1.run(["sh", "-c", IN_HOSTILE, HOSTILE, *loop(3)], timeout=180)
        n1.run(["sh", "-c", IN_HOSTILE, HOSTILE, *loop(5)], timeout=180)
        n1.run([*INTO_GROUP, "env", "ACK_TIMEOUT=20", PROGRAM, *DENIED], timeout=180)
        inode = int(n1.run(["stat", "-c", "%i", f"/run/netns/{NETNS}"]).stdout)
        whole = plain.stop()
        by_key = {key: watch.stop() for key, watch in each.items()}
        both = filtered.stop()
    finally:
        for watch in watches:
            watch.process.kill()
    hostile = f"{GROUP.removeprefix('/sys/fs/cgroup')}/{HOSTILE_SHOWN}"
    denied = packets(whole, "tx")["RDMA_WRITE"] - (2 + 3 + 5 + 9 + 4 + 6) * CHAIN
    assert denied > 0
    assert grouped(by_key["cgroup"]) == {
        cgroup: (2 + 3) * CHAIN,
        INNER_PATH: (5 + 9) * CHAIN + denied,
        hostile: (4 + 6) * CHAIN,
    }
    assert grouped(by_key["netns"]) == {
        netns: (2 + 5 + 4 + 6) * CHAIN + denied,
        f"net:[{inode}]": (3 + 9) * CHAIN,
    }
    assert grouped(both) == {
        netns: (5 + 4 + 6) * CHAIN + denied,
        f"net:[{inode}]": 9 * CHAIN,
    }
    for key, document in by_key.items():
        assert (document["group_by"], document["qps_beyond"], document["lost"]) == (key, 0, 0)
        for direction in ("tx", "rx"):
            assert stage_counts(document, direction) == stage_counts(whole, direction)
    ids = [row["id"] for row in by_key["cgroup"]["groups"] if row["group"] == hostile]
    assert len(set(ids)) == 2
    names = {row["id"]: row["name"] for row in by_key["netns"]["groups"]}
    assert names == {inode: NETNS, int(netns[5:-1]): None}
    naks = {"dev": "rxe_b", "event": "nak", "reason": "sent", "count": 1}
    assert naks in whole["losses"]
    assert {"group": INNER_PATH, **naks} in by_key["cgroup"]["losses"]
    assert {"group": netns, **naks} in by_key["netns"]["losses"]
    assert "group_by" not in whole


LEVELS = 17
DEEP = "/".join(map(str, range(1, LEVELS + 1)))


def test_a_deep_cgroup(n1: Node, pair: Pair) -> None:
    """Of a long path, the last 16 levels and the number."""
    watch = Watch(n1, "--group", "cgroup", xmit=False)
    try:
        n1.run(["mkdir", "-p", f"{GROUP}/{DEEP}"])
        inode = n1.run(["stat", "-c", "%i", f"{GROUP}/{DEEP}"]).stdout.strip()
        enter = f'echo $$ > {GROUP}/{DEEP}/cgroup.procs; exec "$0" "$@"'
        n1.run(["sh", "-c", enter, *loop(1)], timeout=180)
        document = watch.stop()
    finally:
        watch.process.kill()
        n1.run(["find", f"{GROUP}/1", "-depth", "-type", "d", "-delete"], check=False)
    last = "/".join(map(str, range(LEVELS - 15, LEVELS + 1)))
    assert grouped(document) == {f".../{last} (cgroup {inode})": 2 * CHAIN}


_OLD, _NEW = "rocelab_old", "rocelab_new"
_ONE_AFTER_ANOTHER = f"""
set -e
ip netns add {_OLD}
ip netns exec {_OLD} "$@"
ip netns delete {_OLD}
"""


def test_namespaces_one_after_another(n1: Node, pair: Pair) -> None:
    """The kernel gives a namespace's number again; that of a new one is another group."""
    each = Watch(n1, "--group", "netns", xmit=False)
    try:
        for batches in (1, 2, 4):
            n1.run(["sh", "-c", _ONE_AFTER_ANOTHER, "sh", *loop(batches)], timeout=180)
        n1.run(["ip", "netns", "add", _NEW])
        n1.run(["ip", "netns", "exec", _NEW, *loop(8)], timeout=180)
        document = each.stop()
    finally:
        each.process.kill()
        n1.run(["ip", "netns", "delete", _NEW], check=False)
    assert sorted(grouped(document).values()) == [2 * CHAIN, 3 * CHAIN, 5 * CHAIN, 9 * CHAIN]
    assert [row["name"] for row in document["groups"]] == [None, None, None, _NEW]


def test_tables_and_metrics_of_groups(n1: Node, pair: Pair) -> None:
    """A section and a label for each; a hostile name reaches neither the terminal nor a scraper."""
    cgroup, _ = own_places(n1)
    table = n1.start(["rxestat", "--group", "cgroup", "--work-requests"])
    served = n1.start(["rxestat", "--group", "cgroup", "--openmetrics", ":9491"])
    try:
        for process in (table, served):
            process.wait_for_line("rxestat: ready", timeout=120)
        n1.run(loop(1), timeout=180)
        n1.run(["sh", "-c", IN_HOSTILE, HOSTILE, *loop(2)], timeout=180)
        metrics = n1.run(["curl", "-sSf", "http://127.0.0.1:9491/metrics"]).stdout
        ended = []
        for process in (table, served):
            process.interrupt()
            ended.append(process.wait(timeout=120))
    finally:
        table.kill()
        served.kill()
    hostile = f"{GROUP.removeprefix('/sys/fs/cgroup')}/{HOSTILE_SHOWN}"
    sections = re.split(r"\n-{80}\ncgroup ", ended[0].stdout)
    assert [section.split("\n", 1)[0] for section in sections[1:]] == [cgroup, hostile]
    for section, messages in zip(sections[1:], (2 * CHAIN, 3 * CHAIN), strict=True):
        assert f"\n  sent: {messages} packets\n" in section
    assert f"\n  cgroup {hostile}\n  rxe_a" in sections[-1]
    for text in (ended[0].stdout, metrics):
        assert text.isascii()
        assert not re.search(r"[^\n -~]", text)
    escaped = hostile.replace("\\", "\\\\")
    sent = re.findall(
        r'rxe_packets_total\{.*event="sent".*opcode="RC_RDMA_WRITE",cgroup="(.*)"\} (\d+)', metrics
    )
    assert dict(sent) == {cgroup: str(2 * CHAIN), escaped: str(3 * CHAIN)}
    assert "rxe_probe_queue_pairs_not_grouped_total 0\n" in metrics
    promtool_check(metrics)


_MANY = f"""
import os
import pyverbs.enums as e
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr

context = Context(name="rxe_a")
pd, cq = PD(context), CQ(context, 2)
init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(max_send_wr=1, max_recv_wr=1))
for number in range(130):
    folder = f"{GROUP}/many{{number}}"
    os.mkdir(folder)
    open(f"{{folder}}/cgroup.procs", "w").write("0")
    QP(pd, init, QPAttr(port_num=1)).close()
    open("{INNER}/cgroup.procs", "w").write("0")
    os.rmdir(folder)
"""


def test_more_groups_than_there_are_numbers(n1: Node, pair: Pair) -> None:
    """The packets of later ones are together, and it is said."""
    each = Watch(n1, "--group", "cgroup", xmit=False)
    try:
        n1.run(["python3", "-c", _MANY], timeout=300)
        n1.run([*INTO_GROUP, *loop(1)], timeout=180)
        each.process.interrupt()
        done = each.process.wait(timeout=120)
    finally:
        each.process.kill()
    document = json.loads(done.stdout)
    assert grouped(document) == {"(others)": 2 * CHAIN}
    assert (len(document["groups"]), document["qps_beyond"]) == (126, 130 - 126 + 2)
    assert "6 queue pairs are in the group (others): 126 groups are told apart" in done.stderr


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
        each = Watch(n1, "--group", "cgroup", xmit=False)
        named = Watch(n1, "--pid", pid, xmit=False)
        try:
            before = settled(pair)
            n1.run(["sh", "-c", f"kill -CONT {pid}"])
            while pair.counters()["sent_pkts"] < before + 500:
                pass
            n1.run(["sh", "-c", f"kill -STOP {pid}"])
            moved = settled(pair) - before
            document, nothing, groups = ours.stop(), other.stop(), each.stop()
            by_pid = named.stop()
        finally:
            for watch in (ours, other, each, named):
                watch.process.kill()
        chosen = ("--cgroup", GROUP), ("--netns", NETNS), ("--group", "cgroup"), ("--pid", pid)
        shown, hidden, grouped, process = (rxetop(n1, *options) for options in chosen)
    assert packets(document, "tx").total() == packets(by_pid, "tx").total() == moved
    assert {name: counts.total() for name, counts in by_group(groups, "tx").items()} == {
        INNER_PATH: moved
    }
    assert packets(nothing, "tx").total() == 0
    assert [row["pid"] for row in shown["qps"]] == [int(pid)] * 2
    assert (process["pid"], identities(process)) == (pid, identities(shown))
    assert (shown["cgroup"], shown["hidden"], hidden["netns"]) == (GROUP, 0, NETNS)
    assert hidden["qps"] == []
    rows = {row["group"]: row["qps"] for row in grouped["groups"]}
    assert rows[INNER_PATH] == 2, rows


def identities(document: dict[str, Any]) -> list[tuple[object, ...]]:
    """Which queue pairs these are; a timer may expire between two looks, and count."""
    keys = ("dev", "qpn", "type", "state", "pid", "command", "peer")
    return [tuple(row[key] for key in keys) for row in document["qps"]]


def rxetop(node: Node, *options: str) -> dict[str, Any]:
    """What one look of rxetop shows of idle queue pairs, too."""
    install_probes(node, [artifacts.probe("rxetop", LINE)])
    words = ["rxetop", "--json", "--idle", "-n", "1", "-I", "100", *options]
    document: dict[str, Any] = json.loads(node.run(words, timeout=180).stdout)
    return document


@pytest.mark.parametrize(
    ("tool", "options", "status", "words"),
    [
        ("rxestat", ("--netns", "nowhere"), 3, "no network namespace 'nowhere'"),
        ("rxestat", ("-N", "/proc/self/ns/mnt"), 3, "no network namespace '/proc/self/ns/mnt'"),
        ("rxedump", ("--cgroup", "/proc"), 3, "no cgroup '/proc'"),
        ("rxetop", ("-b", "--cgroup", "/proc"), 3, "no cgroup '/proc'"),
        ("rxestat", ("--pid", "4194303"), 3, "no process 4194303"),
        ("rxetop", ("-b", "-p", "1,x"), 2, "--pid takes process IDs, not: 'x'"),
        ("rxestat", ("--group", "pid"), 2, "--group takes cgroup or netns, not: 'pid'"),
    ],
)
def test_refusals(n1: Node, tool: str, options: tuple[str, ...], status: int, words: str) -> None:
    """A place that is none is refused."""
    done = n1.run([tool, *options], check=False, timeout=180)
    assert (done.returncode, done.stdout) == (status, "")
    assert words in done.stderr
