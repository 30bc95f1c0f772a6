# SPDX-License-Identifier: GPL-2.0-or-later
"""What a healthy kernel does not print: complaints, and the way that led to them."""

from __future__ import annotations

from rocelab.testbed.node.kernel_log import complaints

WARNING = (
    "WARNING: CPU: 0 PID: 718 at rxe_pool.c:212 __rxe_cleanup+0x115/0x150 [rdma_rxe]\n"
    "Modules linked in: rdma_rxe(O) ib_uverbs\n"
    "RIP: 0010:__rxe_cleanup+0x115/0x150 [rdma_rxe]\n"
    "RSP: 0018:ffffa1e100b4bd10 EFLAGS: 00000246\n"
    "Call Trace:\n"
    " <TASK>\n"
    " ? __warn+0x81/0x130\n"
    " rxe_destroy_qp+0x2a/0x40 [rdma_rxe]\n"
    " ib_destroy_qp_user+0x97/0x1e0 [ib_core]\n"
    " </TASK>\n"
    "---[ end trace 0000000000000000 ]---\n"
    " not_a_frame+0x1/0x2\n"
    "rxe0: cleaned up"
).splitlines()
FOUND = [
    WARNING[0],
    "Call Trace:",
    " rxe_destroy_qp+0x2a/0x40 [rdma_rxe]",
    " ib_destroy_qp_user+0x97/0x1e0 [ib_core]",
]


def test_a_complaint_has_its_trace() -> None:
    """Of a log and of a console, which has times; guesses of the unwinder (`?`) are left out."""
    assert complaints(WARNING) == FOUND
    assert complaints(f"[   12.345678] {line}" for line in WARNING) == FOUND


def test_what_was_going_on() -> None:
    """A program's mark stands behind the complaint."""
    assert complaints(["rocelab-test: test_atomic", WARNING[0]]) == [f"{WARNING[0]} (test_atomic)"]


def test_a_healthy_log() -> None:
    log = ["rxe0: added eth0", "traps: ib_write_bw general protection ip:1 sp:2"]
    assert complaints(log) == []


def test_a_program_that_debugs_is_no_bug() -> None:
    """What sshd says where it has lost its peer; a node without a syslog shows it."""
    assert not complaints(["ssh_packet_send_debug: send DEBUG: Broken pipe"])
    assert complaints(["[    1.2] BUG: KASAN: wild-memory-access", "BUG at mm/slub.c:1"])
