# SPDX-License-Identifier: GPL-2.0-or-later
"""A requester with a forged peer: events that are rare on a bad link occur in every run.

The first node has a queue pair. The second answers with forged frames, from a queue pair that its
driver does not know.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address

import corpus
from forger import send
from rocelab.measure.hostile_frames import mac
from rocelab.testbed.node import Node, Process
from rocelab.testbed.node.prepare_node import DEVICE
from rxe_trace import TRACING, tracing
from traffic import gid_index
from vmlab import PATIENCE

MTU, PEER_QPN = 1024, 0x123456
ACK, NAK_SEQUENCE = 0x1F, 0x60
"""AETH syndromes."""
HELD = 64
"""Limit of a queue pair's packets in the network stack, at which its requester waits."""
STATUS = "/tmp/forged-answers"
# posts WRITEs and READs (write:SIZE, read:SIZE), and says how each ended, and what was read
REQUESTER = """
import ipaddress, sys, time, zlib
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR
import pyverbs.enums as e

device, index, peer, qpn, timeout, *wanted = sys.argv[1:]
OPCODES = {"write": e.IBV_WR_RDMA_WRITE, "read": e.IBV_WR_RDMA_READ}
with Context(name=device) as context, PD(context) as pd, CQ(context, 16) as cq:
    mr = MR(pd, 1 << 17, e.IBV_ACCESS_LOCAL_WRITE)
    route = GlobalRoute(dgid=GID(peer), sgid_index=int(index))
    attr = QPAttr(port_num=1)
    attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
    attr.dest_qp_num = int(qpn)
    attr.path_mtu = e.IBV_MTU_1024
    attr.timeout, attr.retry_cnt, attr.rnr_retry = int(timeout), 7, 7
    attr.max_rd_atomic, attr.sq_psn = 1, 0
    init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(4, 4, 1, 1), sq_sig_all=1)
    with QP(pd, init) as qp:
        qp.to_rts(attr)
        print("qpn", qp.qp_num, flush=True)
        for operation, size in (word.split(":") for word in wanted):
            sge = SGE(mr.buf, int(size), mr.lkey)
            wr = SendWR(opcode=OPCODES[operation], num_sge=1, sg=[sge])
            wr.set_wr_rdma(0x1234, 0x5678)
            qp.post_send(wr)
        ended = 0
        while ended < len(wanted):
            n, completions = cq.poll(1)
            for completion in completions:
                print("ended", e.ibv_wc_status(completion.status).name, flush=True)
            ended += n
            time.sleep(0.01)
        print("read", zlib.crc32(mr.read(int(size), 0)), flush=True)
"""


class Peer:
    """The forged end, on a node; the other end's queue pair."""

    def __init__(self, node: Node, target: Node, qpn: int) -> None:
        self.node = node
        self.qpn = qpn
        self._net = corpus.frames.Net(kind="v2_ipv4", a=node.link.ipv4, b=target.link.ipv4)
        self._macs = mac(target.link.mac) + mac(node.link.mac)

    def packet(self, opcode: str, psn: int, syndrome: int | None, payload: bytes = b"") -> bytes:
        """Return the frame of an answer."""
        aeth = b"" if syndrome is None else corpus.frames.aeth(syndrome, 1)
        body = corpus.frames.transport(opcode, self.qpn, psn, aeth, payload)
        whole: bytes = corpus.frames.frame(self._net, "a", body)
        return self._macs + whole[12:]

    def answer(self, psn: int, syndrome: int) -> None:
        """Send an acknowledge packet."""
        self.send(self.packet("RC_ACKNOWLEDGE", psn, syndrome))

    def send(self, *packets: bytes) -> None:
        """Send frames."""
        send(self.node, self.node.link.netdev, packets)


@contextmanager
def requester(node: Node, peer: Node, timeout: int, *wanted: str) -> Iterator[Peer]:
    """Post the requests; at the end all must have succeeded."""
    gid = IPv6Address(f"::ffff:{peer.link.ipv4}").exploded
    words = [DEVICE, gid_index(node), gid, str(PEER_QPN), str(timeout), *wanted]
    # until the shell has emptied the file, it has an earlier requester's output
    node.run(["rm", "-f", STATUS])
    process: Process = node.start(
        ["sh", "-c", f'exec python3 -c "$@" >{STATUS}', "sh", REQUESTER, *words]
    )
    try:
        until(node, f"grep -sq qpn {STATUS}")
        yield Peer(peer, node, int(status(node)[0].split()[1]))
        done = process.wait(timeout=60)
        assert done.returncode == 0, done.stderr
    finally:
        process.kill()


def status(node: Node) -> list[str]:
    """Return the requester's output."""
    return node.run(["cat", STATUS]).stdout.splitlines()


def until(node: Node, condition: str) -> None:
    """Wait for a shell condition."""
    limit = round(180 * PATIENCE)
    script = f"until {condition}; do sleep 0.05; done"
    node.run(["timeout", str(limit), "sh", "-c", script], timeout=limit + 30)


def until_sent(node: Node, packets: int) -> None:
    """Wait until the trace has this many packets of the requester."""
    until(node, f"[ $(grep -c rxe_tx_packet: {TRACING}/trace) -ge {packets} ]")


@contextmanager
def held_back(node: Node) -> Iterator[None]:
    """Hold nearly all packets of a node, and lose those held at the end."""
    netdev = node.link.netdev
    slow = ["tbf", "rate", "8kbit", "burst", "6000", "limit", "10000000"]
    node.run(["tc", "qdisc", "add", "dev", netdev, "root", *slow])
    try:
        yield
    finally:
        node.run(["tc", "qdisc", "delete", "dev", netdev, "root"])


def test_acknowledged_while_sent_again(n1: Node, n2: Node) -> None:
    """An ACK for a whole message during its retransmission leaves no partial message.

    All answers to the repetition are lost, and the requester goes back once more: to a packet of
    this message, or of the next, and never to an empty one in between.
    """
    packets = 80
    sizes = (packets * MTU, 64)
    sent_twice = "/rxe_retransmit:/ {n++} n > 1 && /rxe_tx_packet:/ {seen = 1} END {exit !seen}"
    with (
        tracing(n1, "rxe_tx_packet", "rxe_rx_done", "rxe_retransmit", buffer_kb=65536) as trace,
        requester(n1, n2, 20, *(f"write:{size}" for size in sizes)) as peer,
    ):
        until_sent(n1, packets + 1)
        with held_back(n1):
            peer.answer(0, NAK_SEQUENCE)
            until_sent(n1, packets + 1 + HELD)
            peer.answer(packets - 1, ACK)
            until(n1, f"[ $(grep -c rxe_rx_done: {TRACING}/trace) -ge 2 ]")
        until(n1, f"awk '{sent_twice}' {TRACING}/trace")
        deadline = time.monotonic() + 180 * PATIENCE
        while len(said := status(n1)) < 1 + len(sizes):
            assert time.monotonic() < deadline, said
            peer.answer(packets, ACK)
    assert said[1:3] == ["ended IBV_WC_SUCCESS"] * 2
    right = {0: ("RC_RDMA_WRITE_FIRST", MTU), packets - 1: ("RC_RDMA_WRITE_LAST", MTU)}
    right |= dict.fromkeys(range(1, packets - 1), ("RC_RDMA_WRITE_MIDDLE", MTU))
    right |= {packets: ("RC_RDMA_WRITE_ONLY", sizes[1])}
    for event in trace.named("rxe_tx_packet"):
        psn = event.number("psn")
        assert (event["op"], event.number("payload")) == right[psn], event
    assert "timeout" in {event["reason"] for event in trace.named("rxe_retransmit")}


def test_late_ack_in_a_read(n1: Node, n2: Node) -> None:
    """An ACK for requests before a READ is ignored when the first response has overtaken it."""
    data = bytes(i * 7 % 256 for i in range(3 * MTU - 72))
    parts = [data[at : at + MTU] for at in range(0, len(data), MTU)]
    with (
        tracing(n1, "rxe_tx_packet", "rxe_drop") as trace,
        requester(n1, n2, 0, "write:64", f"read:{len(data)}") as peer,
    ):
        until_sent(n1, 2)
        peer.send(
            peer.packet("RC_RDMA_READ_RESPONSE_FIRST", 1, ACK, parts[0]),
            peer.packet("RC_ACKNOWLEDGE", 0, ACK),
            peer.packet("RC_RDMA_READ_RESPONSE_MIDDLE", 2, None, parts[1]),
            peer.packet("RC_RDMA_READ_RESPONSE_LAST", 3, ACK, parts[2]),
        )
        until(n1, f"grep -q read {STATUS}")
    assert status(n1)[1:] == ["ended IBV_WC_SUCCESS"] * 2 + [f"read {zlib.crc32(data)}"]
    assert [event["reason"] for event in trace.named("rxe_drop")] == ["unexpected"]


def test_nak_behind_a_read(n1: Node, n2: Node) -> None:
    """A NAK that overtakes the response to a READ is reported, and so is its retry."""
    data = bytes(range(64))
    with (
        tracing(n1, "rxe_tx_packet", "rxe_nak", "rxe_retransmit") as trace,
        requester(n1, n2, 0, "read:64", "write:64") as peer,
    ):
        until_sent(n1, 2)
        peer.answer(1, NAK_SEQUENCE)
        until_sent(n1, 4)
        peer.send(
            peer.packet("RC_RDMA_READ_RESPONSE_ONLY", 0, ACK, data),
            peer.packet("RC_ACKNOWLEDGE", 1, ACK),
        )
        until(n1, f"grep -q read {STATUS}")
    assert status(n1)[1:] == ["ended IBV_WC_SUCCESS"] * 2 + [f"read {zlib.crc32(data)}"]
    (nak,) = trace.named("rxe_nak")
    assert (nak["dir"], nak["psn"], nak["syndrome"]) == ("received", "1", "psn_sequence_error")
    (again,) = trace.named("rxe_retransmit")
    assert (again["psn"], again["reason"]) == ("0", "seq_nak")
