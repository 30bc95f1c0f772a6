# SPDX-License-Identifier: GPL-2.0-or-later
"""The bpftrace scripts (ebpf/scripts/), around traffic that provokes what each shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hostile import HOSTILE, send
from rocelab.node import Node
from rocelab.provider.qemu.testbed import QemuTestbed
from veth_pair import Pair, veth_pair

SCRIPTS = Path(__file__).resolve().parents[2] / "ebpf/scripts"


@pytest.fixture(scope="module")
def pair(shared_testbed: QemuTestbed) -> Iterator[Pair]:
    """Two devices on the first node."""
    with veth_pair(shared_testbed.nodes[0]) as pair:
        yield pair


class Script:
    """A script on a node; when it has ended, its maps and its lines."""

    def __init__(self, node: Node, name: str) -> None:
        node.put(SCRIPTS / name, f"/tmp/{name}")
        self.process = node.start(["bpftrace", "-f", "json", f"/tmp/{name}"])
        self.maps: dict[str, Any] = {}
        self.lines: list[str] = []

    def stop(self) -> None:
        """End it, and read what it printed."""
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


@contextmanager
def scripts(node: Node, *names: str) -> Iterator[list[Script]]:
    """The scripts run while the context lasts; afterwards they have been read."""
    with ExitStack() as stack:
        started = [Script(node, name) for name in names]
        for script in started:
            stack.callback(script.process.kill)
        for script in started:
            script.process.wait_for_line("Tracing rxe", timeout=180)
        yield started
        for script in started:
            script.stop()


def test_errors(pair: Pair) -> None:
    """RNR NAKs with their waits, a refused key, a full completion queue, and every state."""
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
    """One drop for each packet that is none, with its reason."""
    n1, n2 = testbed.nodes
    with scripts(n1, "rxedrops.bt") as (drops,):
        send(n2, *((options, n1.link.ipv4, body) for options, body in HOSTILE.values()))
        # the last to be sent is the last to be dropped: one link, one queue
        drops.process.wait_for_line(" icrc", timeout=60)
    assert drops.maps["@drops"] == dict.fromkeys(HOSTILE, 1)
    words = [line.split()[-1] for line in drops.lines if "0x" in line]
    assert words == list(HOSTILE)
