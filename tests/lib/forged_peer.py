# SPDX-License-Identifier: GPL-2.0-or-later
"""A queue pair whose peer is forged: it answers requests that another node makes up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address

import corpus
from rocelab.measure.hostile_frames import mac
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import DEVICE
from traffic import gid_index
from vmlab import PATIENCE

_STATUS = "/tmp/forged-peer"
# prints number, address and key, and waits
_RESPONDER = """
import sys, time
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, MW, MWBindInfo
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SendWR
import pyverbs.enums as e

device, index, peer, resources = sys.argv[1:]
allowed = e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_WRITE
zero_based = e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_ZERO_BASED
with Context(name=device) as context, PD(context) as pd, CQ(context, 16) as cq:
    mr = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_MW_BIND | allowed)
    attr = QPAttr(port_num=1)
    route = GlobalRoute(dgid=GID(peer), sgid_index=int(index))
    attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
    attr.dest_qp_num, attr.path_mtu, attr.rq_psn = 17, e.IBV_MTU_1024, 0
    attr.qp_access_flags, attr.max_dest_rd_atomic = allowed, int(resources)
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


@contextmanager
def responder(node: Node, peer: Node, *, resources: int = 4) -> Iterator[tuple[int, int, int, int]]:
    """RC queue pair that expects PSN 0 and has no receive request.

    `resources` is its max_dest_rd_atomic.

    Its number, the address and key of its memory, and the key of a zero-based window on it.
    """
    gid = IPv6Address(f"::ffff:{peer.link.ipv4}").exploded
    words = [DEVICE, gid_index(node), gid, str(resources)]
    node.run(["rm", "-f", _STATUS])
    script = f'exec python3 -c "$@" >{_STATUS} 2>&1'
    process = node.start(["sh", "-c", script, "sh", _RESPONDER, *words])
    try:
        until(node, f"test -s {_STATUS}")
        qpn, va, rkey, window = map(int, node.run(["cat", _STATUS]).stdout.split())
        yield qpn, va, rkey, window
    finally:
        process.kill()


def request(
    sender: Node, receiver: Node, opcode: str, qpn: int, psn: int, header: bytes, data: bytes
) -> bytes:
    """Return the Ethernet frame of a request, with a correct ICRC."""
    net = corpus.frames.Net(kind="v2_ipv4", a=sender.link.ipv4, b=receiver.link.ipv4)
    frame = corpus.frames.frame(net, "a", corpus.frames.transport(opcode, qpn, psn, header, data))
    whole: bytes = mac(receiver.link.mac) + mac(sender.link.mac) + frame[12:]
    return whole


def until(node: Node, condition: str) -> None:
    """Wait for a shell condition."""
    limit = round(400 * PATIENCE)
    script = f"until {condition}; do sleep 0.05; done"
    node.run(["timeout", str(limit), "sh", "-c", script], timeout=limit + 30)
