# SPDX-License-Identifier: GPL-2.0-or-later
"""rxedump shows one message."""

from __future__ import annotations

import re

import traffic
from rocelab.testbed.node.prepare_node import DEVICE
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed
from rxedump_watch import HOLD

MESSAGES = 12
PACKETS = 3
SIZE = PACKETS * traffic.MTU


def test_follow(testbed: QemuTestbed) -> None:
    """The queue pair is made before it is followed: rc_pingpong says its numbers first."""
    n1, n2 = testbed.nodes
    command = ["stdbuf", "-oL", "ibv_rc_pingpong", "-d", DEVICE, "-s", str(SIZE)]
    command += ["-m", str(traffic.MTU), "-n", str(MESSAGES), "-p", "18516", "-g"]
    with traffic.server(n1, [*command, traffic.gid_index(n1)], port=18516) as pingpong:
        local = re.search(r"QPN 0x(\w+), PSN 0x(\w+)", pingpong.wait_for_line("QPN", timeout=60))
        assert local
        qpn, psn = (int(number, 16) for number in local.groups())
        fifth = (psn + 4 * PACKETS) & 0xFFFFFF
        words = {"psn": f"{qpn}:{fifth:#x}", "number": f"{qpn}:#5"}
        running = {
            name: n1.start(["rxedump", *HOLD, "--follow", message])
            for name, message in words.items()
        }
        try:
            for process in running.values():
                process.wait_for_line("rxedump: ready", timeout=180)
            n2.run([*command, traffic.gid_index(n2), n1.link.ipv4], timeout=120)
            ended = {}
            for name, process in running.items():
                process.interrupt()
                ended[name] = process.wait(timeout=120)
        finally:
            for process in running.values():
                process.kill()
    last = (fifth + PACKETS - 1) & 0xFFFFFF
    for name, done in ended.items():
        assert done.returncode == 0, done.stderr
        assert f"message of queue pair {qpn}, sent: PSN {fifth} to {last}\n" in done.stderr, name
        sent = re.findall(r"dir=tx .*op=(\w+) qpn=\d+ dqpn=\d+ psn=(\d+)", done.stdout)
        # sent again if the machine stood still: each at least once, and no other
        assert {int(number) for _, number in sent} == {fifth, (fifth + 1) & 0xFFFFFF, last}
        assert {op for op, _ in sent} == {"RC_SEND_FIRST", "RC_SEND_MIDDLE", "RC_SEND_LAST"}
        answers = re.findall(r"dir=rx .*op=(\w+) ", done.stdout)
        assert set(answers) == {"RC_ACKNOWLEDGE"}
