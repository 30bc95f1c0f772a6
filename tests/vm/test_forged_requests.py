# SPDX-License-Identifier: GPL-2.0-or-later
"""A responder with a forged peer: a READ is repeated whatever came after it, and from its address.

The first node has a queue pair and memory. The second sends forged requests.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address

import pytest

import corpus
from forger import send
from rocelab.measure.hostile_frames import mac
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import DEVICE
from rxe_trace import TRACING, tracing
from traffic import gid_index
from vmlab import PATIENCE

STATUS = "/tmp/forged-requests"
# prints number, address and key, and waits
RESPONDER = """
import sys, time
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, MW, MWBindInfo
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SendWR
import pyverbs.enums as e

device, index, peer = sys.argv[1:]
allowed = e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_WRITE
zero_based = e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_ZERO_BASED
with Context(name=device) as context, PD(context) as pd, CQ(context, 16) as cq:
    mr = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_MW_BIND | allowed)
    attr = QPAttr(port_num=1)
    route = GlobalRoute(dgid=GID(peer), sgid_index=int(index))
    attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
    attr.dest_qp_num, attr.path_mtu, attr.rq_psn = 17, e.IBV_MTU_1024, 0
    attr.qp_access_flags, attr.max_dest_rd_atomic = allowed, 4
    init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(1, 1, 1, 1))
    with QP(pd, init) as qp:
        qp.to_rts(attr)
        with MW(pd, e.IBV_MW_TYPE_2) as mw:
            bind = SendWR(opcode=e.IBV_WR_BIND_MW, send_flags=e.IBV_SEND_SIGNALED)
            bind.set_bind_wr(mw, MWBindInfo(mr, mr.buf + 64, 1024, zero_based))
            qp.post_send(bind)
            while not (polled := cq.poll(1))[0]:
                pass
            assert polled[1][0].status == e.IBV_WC_SUCCESS
            window = mw.rkey & ~0xff | mw.rkey + 1 & 0xff  # as set_bind_wr() chose it
            print(qp.qp_num, mr.buf, mr.rkey, window, flush=True)
            time.sleep(3600)
"""
Messages = list[tuple[str, int, bytes, bytes]]
"""Opcode, PSN, extended header and payload."""


def before_a_write_of_nothing(va: int, rkey: int, _window: int) -> Messages:
    """A READ, a WRITE of 0 bytes, and the READ again, as if its response was lost."""
    reth = corpus.frames.reth
    read = ("RC_RDMA_READ_REQUEST", 0, reth(va, rkey, 64), b"")
    return [read, ("RC_RDMA_WRITE_ONLY", 1, reth(va, rkey, 0), b""), read]


def of_nothing_before_a_write(va: int, rkey: int, _window: int) -> Messages:
    """A READ of 0 bytes, whose key need not be valid, a WRITE, and the READ again."""
    reth = corpus.frames.reth
    read = ("RC_RDMA_READ_REQUEST", 0, reth(0, 0, 0), b"")
    return [read, ("RC_RDMA_WRITE_ONLY", 1, reth(va, rkey, 64), bytes(64)), read]


def through_a_zero_based_window(_va: int, _rkey: int, window: int) -> Messages:
    """A READ from the window's first bytes, twice."""
    read = ("RC_RDMA_READ_REQUEST", 0, corpus.frames.reth(0, window, 64), b"")
    return [read, read]


@pytest.mark.parametrize(
    ("messages", "payload"),
    [
        (before_a_write_of_nothing, 64),
        (of_nothing_before_a_write, 0),
        (through_a_zero_based_window, 64),
    ],
)
def test_a_repeated_read(
    n1: Node, n2: Node, messages: Callable[[int, int, int], Messages], payload: int
) -> None:
    """The repeated READ has the same answer, and no request is refused."""
    gid = IPv6Address(f"::ffff:{n2.link.ipv4}").exploded
    words = [DEVICE, gid_index(n1), gid]
    n1.run(["rm", "-f", STATUS])
    script = f'exec python3 -c "$@" >{STATUS} 2>&1'
    process = n1.start(["sh", "-c", script, "sh", RESPONDER, *words])
    try:
        until(n1, f"test -s {STATUS}")
        qpn, va, rkey, window = map(int, n1.run(["cat", STATUS]).stdout.split())
        with tracing(n1, "rxe_tx_packet", "rxe_nak") as trace:
            net = corpus.frames.Net(kind="v2_ipv4", a=n2.link.ipv4, b=n1.link.ipv4)
            frames = []
            for opcode, psn, header, data in messages(va, rkey, window):
                body = corpus.frames.transport(opcode, qpn, psn, header, data)
                frame = corpus.frames.frame(net, "a", body)
                frames.append(mac(n1.link.mac) + mac(n2.link.mac) + frame[12:])
            send(n2, n2.link.netdev, frames)
            until(n1, f"[ $(grep -cE 'READ_RESPONSE_ONLY|rxe_nak:' {TRACING}/trace) -ge 2 ]")
    finally:
        process.kill()
    assert not trace.named("rxe_nak")
    responses = [
        (event.number("psn"), event.number("payload"))
        for event in trace.named("rxe_tx_packet")
        if event["op"] == "RC_RDMA_READ_RESPONSE_ONLY"
    ]
    assert responses == [(0, payload)] * 2


def until(node: Node, condition: str) -> None:
    """Wait for a shell condition."""
    limit = round(400 * PATIENCE)
    script = f"until {condition}; do sleep 0.05; done"
    node.run(["timeout", str(limit), "sh", "-c", script], timeout=limit + 30)
