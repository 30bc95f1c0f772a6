# SPDX-License-Identifier: GPL-2.0-or-later
"""A responder with a forged peer: READs that are repeated, and a FLUSH that it cannot answer.

The first node has a queue pair and memory. The second sends forged requests.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest

import corpus
from forged_peer import request, responder, until
from forger import send
from rocelab.testbed.node import Node
from rxe_trace import TRACING, tracing
from vmlab import LINE

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
    with (
        responder(n1, n2) as (qpn, va, rkey, window),
        tracing(n1, "rxe_tx_packet", "rxe_nak") as trace,
    ):
        frames = [
            request(n2, n1, opcode, qpn, psn, header, data)
            for opcode, psn, header, data in messages(va, rkey, window)
        ]
        send(n2, n2.link.netdev, frames)
        until(n1, f"[ $(grep -cE 'READ_RESPONSE_ONLY|rxe_nak:' {TRACING}/trace) -ge 2 ]")
    assert not trace.named("rxe_nak")
    responses = [
        (event.number("psn"), event.number("payload"))
        for event in trace.named("rxe_tx_packet")
        if event["op"] == "RC_RDMA_READ_RESPONSE_ONLY"
    ]
    assert responses == [(0, payload)] * 2


@pytest.mark.skipif(LINE == "6.1", reason="the driver has no FLUSH")
def test_a_flush_without_responder_resources(n1: Node, n2: Node) -> None:
    """A queue pair whose max_dest_rd_atomic is 0 refuses a FLUSH, which needs no access rights."""
    with responder(n1, n2, resources=0) as (qpn, va, rkey, _), tracing(n1, "rxe_nak") as trace:
        header = bytes(4) + corpus.frames.reth(va, rkey, 64)
        frame = request(n2, n1, "RC_FLUSH", qpn, 0, header, b"")
        send(n2, n2.link.netdev, [frame, headers_twice(frame, 12 + len(header))])
        until(n1, f"grep -q rxe_nak: {TRACING}/trace")
    (nak,) = trace.named("rxe_nak")
    assert (nak["dir"], nak["psn"], nak["syndrome"]) == ("sent", "0", "invalid_request")


def headers_twice(frame: bytes, length: int) -> bytes:
    """The frame with the ICRC that rxe checks: for it a FLUSH's payload begins at the BTH."""
    crc = zlib.crc32(frame[-4 - length : -4], int.from_bytes(frame[-4:], "little"))
    return frame[:-4] + crc.to_bytes(4, "little")
