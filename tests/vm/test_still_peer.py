# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine goes on while the other one does not receive, as on a network between real machines."""

from __future__ import annotations

import os
import signal

import pytest

import disturbances
from rocelab.testbed.qemu import real_time
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed

FRAMES = 1000
"""More than the link's buffers hold: a socket's 212,992 bytes, and both cards' rings."""


@pytest.mark.parametrize(("still", "sends"), [("n2", "n1"), ("n1", "n2")])
def test_a_machine_goes_on_while_its_peer_stands_still(
    testbed: QemuTestbed, still: str, sends: str
) -> None:
    """It answers, and its clock runs on; when the peer is back, so is the link."""
    nodes = {node.name: node for node in testbed.nodes}
    sender, peer = nodes[sends], nodes[still].link.ipv4
    sender.run(("ping", "-q", "-c", "1", peer))
    qemu = disturbances.qemu_of(testbed, still)
    os.kill(qemu, signal.SIGSTOP)
    try:
        # the link takes no more after some hundred frames, and ping waits for it
        flood = ("ping", "-q", "-c", str(FRAMES), "-l", str(FRAMES), "-s", "1400", peer)
        sender.run(("timeout", "-s", "KILL", "3", *flood), check=False)
        assert real_time.runs_true(sender)
    finally:
        os.kill(qemu, signal.SIGCONT)
    sender.run(("ping", "-q", "-c", "3", "-w", "20", peer))
