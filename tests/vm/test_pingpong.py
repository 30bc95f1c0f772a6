# SPDX-License-Identifier: GPL-2.0-or-later
"""Our ping-pong over verbs: each message is there and answered, also by who sleeps."""

from __future__ import annotations

import json
from typing import Any

import pytest

import traffic
import vmlab
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import install_probes
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rxestat_watch import counter
from traffic import DEVICE, gid_index

COUNT, SIZE, MTU = 200, 5000, 1024
_PORT = 18600


@pytest.fixture(scope="module")
def ends(shared_testbed: QemuTestbed) -> tuple[Node, Node]:
    """The client's and the server's node."""
    first, second = shared_testbed.nodes
    for node in (first, second):
        install_probes(node, [artifacts.pingpong(vmlab.LINE)])
    return first, second


def pingpong(ends: tuple[Node, Node], *options: str, verbs: bool) -> dict[str, Any]:
    """Run it; returns what the client printed."""
    client, server = ends

    def command(node: Node) -> list[str]:
        over = ["-d", DEVICE, "-x", gid_index(node), "-u", "21", "-m", str(MTU)]
        return ["pingpong", *(over if verbs else ())]

    with traffic.server(server, command(server), port=_PORT) as process:
        words = [*command(client), server.link.ipv4, "-n", str(COUNT), "-s", str(SIZE), *options]
        said: dict[str, Any] = json.loads(client.run(words, timeout=180).stdout)
        assert process.wait(timeout=60).returncode == 0
    return said


@pytest.mark.parametrize("wait", ["sleep", "poll"])
def test_each_message_is_answered(testbed: QemuTestbed, ends: tuple[Node, Node], wait: str) -> None:
    """Both drivers send as many packets as messages have, and as many as the other receives."""
    del testbed
    before = [(counter(node, "sent_pkts"), counter(node, "rcvd_pkts")) for node in ends]
    said = pingpong(ends, *(["-P"] if wait == "poll" else []), verbs=True)
    after = [(counter(node, "sent_pkts"), counter(node, "rcvd_pkts")) for node in ends]
    assert said.pop("elapsed_ns") > 0
    assert said == {
        "schema": "rocelab.pingpong/1",
        "carrier": "verbs",
        "operation": "pingpong",
        "wait": wait,
        "size": SIZE,
        "sent": COUNT,
        "path_mtu": MTU,
        "received": COUNT,
    }
    moved = [(a[0] - b[0], a[1] - b[1]) for a, b in zip(after, before, strict=True)]
    assert moved[0] == moved[1][::-1]
    data = COUNT * -(-SIZE // MTU)
    # with one acknowledgement a message at least, and at most one a packet
    assert data + COUNT <= moved[0][0] <= 2 * data
