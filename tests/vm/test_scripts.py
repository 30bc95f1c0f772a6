# SPDX-License-Identifier: GPL-2.0-or-later
"""The bpftrace scripts (ebpf/scripts/), with traffic that triggers what each shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hostile import HOSTILE, send
from rocelab.testbed.node import Node
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from veth_pair import Pair, veth_pair

SCRIPTS = Path(__file__).resolve().parents[2] / "ebpf/scripts"


@pytest.fixture(scope="module")
def pair(shared_testbed: QemuTestbed) -> Iterator[Pair]:
    """Two devices on the first node."""
    with veth_pair(shared_testbed.nodes[0]) as pair:
        yield pair


class Script:
    """A script on a node; has its maps and lines when it has ended."""

    def __init__(self, node: Node, name: str) -> None:
        node.put(SCRIPTS / name, f"/tmp/{name}")
        self.process = node.start(["bpftrace", "-f", "json", f"/tmp/{name}"])
        self.maps: dict[str, Any] = {}
        self.lines: list[str] = []

    def stop(self) -> None:
        """End it and read its output."""
        self.process.interrupt()
        done = self.process.wait(timeout=120)
        assert done.returncode == 0, done.stderr
        for line in done.stdout.splitlines():
            if not line.startswith("{"):
                continue
            message = json.loads(line)
            if message["type"] == "printf":
                self.lines += message["data"].splitlines()
            elif message["type"] in ("map", "hist"):
                self.maps.update(message["data"])

    def histogram(self, key: str) -> int:
        """Return the number of values in a histogram."""
        return sum(int(bucket["count"]) for bucket in self.maps["@ns"][key])


@contextmanager
def scripts(node: Node, *names: str) -> Iterator[list[Script]]:
    """Run the scripts while the context lasts, then read their output."""
    with ExitStack() as stack:
        started = [Script(node, name) for name in names]
        for script in started:
            stack.callback(script.process.kill)
        for script in started:
            script.process.wait_for_line("Tracing rxe", timeout=180)
        yield started
        for script in started:
            script.stop()


def test_under_loss(pair: Pair) -> None:
    """Latencies, retransmissions, NAKs and drops agree with the driver's counters."""
    # netem uses its own seeded generator: the same losses for the same packets
    loss = ("netem", "loss", "4%", "seed", "7")
    for end in "ab":
        pair.node.run(["tc", "qdisc", "add", "dev", f"veth_{end}", "root", *loss])
    before = pair.counters()
    try:
        with scripts(pair.node, "rxelat.bt", "rxeretrans.bt", "rxedrops.bt") as started:
            pair.loop("rc", "write", 64, batches=16)
            pair.loop("rc", "read", 64, batches=4)
    finally:
        for end in "ab":
            pair.node.run(["tc", "qdisc", "delete", "dev", f"veth_{end}", "root"])
    counted = {name: value - before[name] for name, value in pair.counters().items()}
    latencies, retransmissions, drops = started

    packets, switched = latencies.maps["@packets"], latencies.maps.get("@switched", {})
    assert packets["tx"] == counted["sent_pkts"] + counted["send_err"]
    assert packets["done"] == counted["rcvd_pkts"]
    # arrival is in a softirq: where that interrupts another program, the kernel leaves ours out
    assert 0 <= counted["rcvd_pkts"] - packets["rx"] <= 3
    for event, stages in (
        ("tx", ("tx 2 alloc", "tx 3 bth", "tx 4 route", "tx 5 net", "tx 6 copy", "tx 7 icrc")),
        ("rx", ("rx 1 parse", "rx 2 icrc")),
        ("done", ("rx 3 queue", "rx 4 exec")),
    ):
        for stage in stages:
            assert latencies.histogram(stage) == packets[event] - switched.get(event, 0), stage
    # packets dropped by netem reached no device
    assert 0 < latencies.histogram("tx 8 xmit") < latencies.histogram("tx 7 icrc")

    again = retransmissions.maps["@retransmissions"]
    naks = retransmissions.maps["@naks"]
    assert sum(again.values()) == counted["completer_retry_err"] > 0
    assert set(again) <= {"timeout", "seq_nak", "implied_nak"}
    assert set(naks) <= {"sent,psn_sequence_error", "received,psn_sequence_error"}
    assert naks["sent,psn_sequence_error"] == counted["out_of_seq_request"]
    assert retransmissions.maps["@retransmitted_packets"] >= sum(again.values())
    listed = [line for line in retransmissions.lines if " retransmit " in line]
    assert len(listed) == sum(again.values())

    reasons = drops.maps["@drops"]
    assert set(reasons) <= {"sequence", "unexpected"}
    assert reasons["sequence"] >= counted["out_of_seq_request"]


def test_errors(pair: Pair) -> None:
    """Shows RNR NAKs with their waits, a refused key, a full completion queue, and every state."""
    before = pair.counters()
    with scripts(pair.node, "rxeretrans.bt", "rxeqp.bt") as (retransmissions, queue_pairs):
        for operation in ("send_late", "write_denied"):
            pair.loop("rc", operation, 64, batches=1, chain=1)
        pair.loop("rc", "cq_full", 64, batches=1, chain=16)
    counted = {name: value - before[name] for name, value in pair.counters().items()}

    rnr = retransmissions.maps["@rnr"]
    assert rnr["sent"] == counted["send_rnr_err"] >= 2
    assert rnr["received"] == counted["rcvd_rnr_err"]
    assert retransmissions.maps["@retransmissions"] == {"rnr": rnr["expired"]}
    assert retransmissions.maps["@naks"] == {
        "sent,remote_access_error": 1,
        "received,remote_access_error": 1,
    }

    # two queue pairs in each of three processes
    changes = queue_pairs.maps["@changes"]
    for step in ("RESET,INIT,modify", "INIT,RTR,modify", "RTR,RTS,modify"):
        assert changes[step] == 6, changes
    assert changes["RTS,ERR,completer"] >= 1
    assert changes["RTS,ERR,responder"] == 1
    assert queue_pairs.maps["@lost_completions"] > 0
    assert sum("INIT -> RTR (modify)" in line for line in queue_pairs.lines) == 6
    assert any("completion lost" in line for line in queue_pairs.lines)


def test_drops_of_hostile_packets(testbed: QemuTestbed) -> None:
    """Shows one drop with its reason for each invalid packet."""
    n1, n2 = testbed.nodes
    with scripts(n1, "rxedrops.bt") as (drops,):
        # one at a time: after each line bpftrace reads how many it lost, and the kernel leaves out
        # what arrives meanwhile
        for reason, (options, body) in HOSTILE.items():
            send(n2, (options, n1.link.ipv4, body))
            drops.process.wait_for_line(f" {reason}", timeout=60)
    assert drops.maps["@drops"] == dict.fromkeys(HOSTILE, 1)
    words = [line.split()[-1] for line in drops.lines if "0x" in line]
    assert words == list(HOSTILE)
